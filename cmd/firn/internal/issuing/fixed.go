package issuing

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// allows refuses settings under which a served namespace could repeat its ids. The store refuses those of counters too, on all
// servers and after a restart, but only once an id is asked for.
func (s *snapshot) allows(cfg settings.Config) error {
	for _, name := range slices.Sorted(maps.Keys(s.namespaces)) {
		now, declared := cfg.Namespaces[name]
		if !declared && len(cfg.Namespaces) > 0 {
			continue // removed; without any namespaces it would stay, as one made on first use
		}
		if key, from, to := s.namespaces[name].settings.Changed(now); key != "" {
			instead := "use a new name; a restart permits it, if you are sure that they cannot"
			if s.namespaces[name].settings.Of().Counted() && now.Of().Counted() {
				instead = "use a new name (a restart does not help: the store keeps the " + key + ")"
			}
			return cfg.At(fmt.Errorf("it cannot change from %s to %s while the namespace is served, since its ids could repeat earlier ones: %s", from, to, instead), "namespaces", name, key)
		}
	}
	return nil
}

// errRepeats refuses a change of keys; [snapshot.allows] cannot, as it does not read keys.
var errRepeats = errors.New("veil: the newest key differs from an earlier one with the same version bits, or without any: ids could repeat earlier ones. " +
	"Set version_bits from the start, and give each key a version that differs in them; take a new name; a restart permits it for pools, if you are sure that no id can repeat")
