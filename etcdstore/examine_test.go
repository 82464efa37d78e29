package etcdstore

import "testing"

func TestVersionsThatLoseDataAreKnown(t *testing.T) {
	for version, want := range map[string]bool{"3.4.23": false, "3.5.0": true, "3.5.2": true, "3.5.3": false, "3.5.21": false, "3.6.0": false, "": false} {
		if got := forgets(version); got != want {
			t.Errorf("version %q: %v", version, got)
		}
	}
}
