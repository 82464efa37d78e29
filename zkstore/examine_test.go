package zkstore

import "testing"

func TestVersionsThatForgetAreKnown(t *testing.T) {
	for version, want := range map[string]bool{
		"3.4.14-4c25d480": true, "3.8.0-${mvngit.commit.id}": true, "3.8.4-9316c2a": true, "3.8.5-0": true, "3.8.6-0": true,
		"3.9.0-0": true, "3.9.1-0": true, "3.9.2-0": true, "3.9.3-c26634f": true, "3.9.4-0": false, "3.9.30-0": false,
		"3.10.0": false, "4.0.0": false, "": false,
	} {
		if got := forgets(version); got != want {
			t.Errorf("version %q: %v", version, got)
		}
	}
}
