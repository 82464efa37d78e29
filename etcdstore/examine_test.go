package etcdstore

import (
	"strings"
	"testing"
)

func TestVersionsThatLoseDataAreKnown(t *testing.T) {
	for version, want := range map[string]bool{
		"3.3.27": true, "3.4.21": true, "3.4.22": false, "3.4.23": false, "3.5.0": true, "3.5.0-rc.1": true, "3.5.5": true, "3.5.6": false, "3.5.21": false,
		"3.6.0": false, "3.10.0": false, "4.0.0": false, "": false,
	} {
		found := examineVersion("n1", version)
		if len(found) > 0 != want || want && !strings.HasPrefix(found[0].String(), "version: n1 is an etcd "+version+": it may lose confirmed writes when it is killed") {
			t.Errorf("version %q: %v", version, found)
		}
	}
}
