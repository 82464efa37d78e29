package issuing

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/veil"
)

// allows refuses settings in which a namespace that is served would begin to repeat its
// ids: segments and sequences count in places of their own, stripes of one counter
// overlap, the ids of two pools may be equal, and so may serials of two zones or checks.
func (s *snapshot) allows(cfg settings.Config) error {
	for _, name := range slices.Sorted(maps.Keys(s.namespaces)) {
		now, declared := cfg.Namespaces[name]
		if !declared && len(cfg.Namespaces) > 0 {
			continue // it is taken out; without any it would go on as one made on first use
		}
		old := s.namespaces[name].settings
		fixed := func(key string, old, now any) error {
			if old == now {
				return nil
			}
			return fmt.Errorf("namespaces.%s: %s cannot change from %v to %v while it is served, since its ids could repeat earlier ones: "+
				"take a new name, or start the server anew if you know that they cannot", name, key, old, now)
		}
		if err := fixed("kind", old.KindName(), now.KindName()); err != nil {
			return err
		}
		if old.Generated() {
			if err := fixed("pool", old.PoolName(), now.PoolName()); err != nil {
				return err
			}
		}
		if old.Of().Format != nil { // an hour ago in one zone is now in another
			if err := fixed("zone", cmp.Or(old.Zone, "UTC"), cmp.Or(now.Zone, "UTC")); err != nil {
				return err
			}
			// With a check, the other digits stand where those of ten times the number do without.
			if err := fixed("check", cmp.Or(old.Check, "none"), cmp.Or(now.Check, "none")); err != nil {
				return err
			}
		}
		if err := fixed("template", old.Template, now.Template); err != nil {
			return err
		}
		if err := fixed("veil", veilForm(old.Veil), veilForm(now.Veil)); err != nil {
			return err
		}
		if err := fixed("offset", old.Offset, now.Offset); err != nil {
			return err
		}
		if err := fixed("stride", max(old.Stride, 1), max(now.Stride, 1)); err != nil {
			return err
		}
	}
	return nil
}

// errRepeats is a change of keys that [snapshot.allows] would refuse too, but it does not read keys.
var errRepeats = errors.New("veil: the newest key differs from an earlier one with the same version bits, or without any: ids could repeat earlier ones. " +
	"Set version_bits from the start, and give each key a version that differs in them; take a new name, or restart the server if you are sure that no id can repeat")

// veilForm says which numbers ids are mapped to which: with more, fewer or other bits, or
// none, a later id may be what an earlier one was veiled as. For keys see errRepeats.
func veilForm(v *settings.Veil) string {
	if v == nil {
		return "none"
	}
	bits := v.Bits
	if bits == 0 {
		bits = veil.DefaultBits
	}
	return fmt.Sprintf("bits %d with version_bits %d", bits, v.VersionBits)
}
