package issuing

import (
	"fmt"
	"maps"
	"slices"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// allows refuses settings in which a namespace that is served would begin to repeat its
// ids: segments and sequences count in places of their own, stripes of one counter
// overlap, and the ids of two pools may be equal.
func (s *snapshot) allows(cfg settings.Config) error {
	for _, name := range slices.Sorted(maps.Keys(cfg.Namespaces)) {
		was := s.namespaces[name]
		if was == nil {
			continue
		}
		old, now := was.settings, cfg.Namespaces[name]
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
		if err := fixed("offset", old.Offset, now.Offset); err != nil {
			return err
		}
		if err := fixed("stride", max(old.Stride, 1), max(now.Stride, 1)); err != nil {
			return err
		}
	}
	return nil
}
