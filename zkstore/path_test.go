package zkstore

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/firn-id/firn/store"
)

// FuzzPath checks that ZooKeeper accepts the paths, and that they lead back to the key.
func FuzzPath(f *testing.F) {
	for _, key := range []string{"a/b", "", "/", "//", ".", "a/../b", "%", "%41", "%@", "%@0000000000000001", "zookeeper", "雪", "😀", "\U0002FA1D", "\ue000", "\ufff0", "\uf900"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if store.CheckKey(key) != nil {
			return // not a key, which is checked earlier
		}
		path := (&Store{root: "/root"}).path(key)
		names := strings.Split(strings.TrimPrefix(path, "/root/"), "/")
		var segments []string
		for _, name := range names {
			segment, ok := unescape(name)
			if !ok {
				t.Errorf("%q has %q, which does not lead back", path, name)
			}
			segments = append(segments, segment)
			if name == "" || name == "." || name == ".." || name == "zookeeper" || strings.HasPrefix(name, markerPrefix) || !utf8.ValidString(name) {
				t.Errorf("%q of %q is no name", name, key)
			}
			for _, r := range name {
				if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0xd800 && r < 0xf900 || r >= 0xfff0 {
					t.Errorf("%q of %q has the character %U", name, key, r)
				}
			}
		}
		if got := strings.Join(segments, "/"); got != key {
			t.Errorf("%q leads back to %q", path, got)
		}
	})
}
