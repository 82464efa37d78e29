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

// allows refuses settings under which a served namespace could repeat its ids: segments and
// sequences have separate counters, stripes of one counter overlap, ids of two pools may be
// equal, and so may serials of two zones or checks.
func (s *snapshot) allows(cfg settings.Config) error {
	for _, name := range slices.Sorted(maps.Keys(s.namespaces)) {
		now, declared := cfg.Namespaces[name]
		if !declared && len(cfg.Namespaces) > 0 {
			continue // removed; without any namespaces it would stay, as one made on first use
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
		if old.Of().Format != nil { // one zone's time an hour ago is another's now
			if err := fixed("zone", cmp.Or(old.Zone, "UTC"), cmp.Or(now.Zone, "UTC")); err != nil {
				return err
			}
			// A number with a check digit has the digits of a ten times larger number without.
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

// errRepeats refuses a change of keys; [snapshot.allows] cannot, as it does not read keys.
var errRepeats = errors.New("veil: the newest key differs from an earlier one with the same version bits, or without any: ids could repeat earlier ones. " +
	"Set version_bits from the start, and give each key a version that differs in them; take a new name, or restart the server if you are sure that no id can repeat")

// veilForm describes the mapping of a veil: under another one, or without a veil, a later
// id may equal an earlier veiled one. For keys see errRepeats.
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
