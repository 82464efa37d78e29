package etcdstore

import "testing"

func TestVersionsThatLoseDataAreKnown(t *testing.T) {
	for version, want := range map[string]bool{
		"3.3.27": true, "3.4.21": true, "3.4.22": false, "3.4.23": false, "3.5.0": true, "3.5.0-rc.1": true, "3.5.5": true, "3.5.6": false, "3.5.21": false,
		"3.6.0": false, "3.10.0": false, "4.0.0": false, "": false,
	} {
		if got := forgets(version); got != want {
			t.Errorf("version %q: %v", version, got)
		}
	}
}
