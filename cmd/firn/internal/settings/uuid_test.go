package settings_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/objectid"
)

func TestAKindThatNeedsNoStoreMakesNoIDTwice(t *testing.T) {
	for _, k := range settings.Kinds {
		if k.Source != settings.Local {
			continue
		}
		next, err := wide(t, settings.Namespace{Kind: k.Name})
		if err != nil {
			t.Fatal(k.Name, err)
		}
		seen := map[string]bool{}
		for range 1000 {
			_, text, err := next(t.Context())
			if err != nil || seen[text] {
				t.Fatalf("%s: %s a second time, or %v", k.Name, text, err)
			}
			seen[text] = true
		}
	}
}

// Many callers at once: no id twice, and those of a caller in order where the kind
// has one.
func TestWideIDs(t *testing.T) {
	made := map[string]settings.NextWide{}
	for name, version := range map[string]int{"uuid4": 4, "uuid7": 7} {
		next, err := wide(t, settings.Namespace{Kind: "uuid", UUID: settings.UUID{Version: version}})
		if err != nil {
			t.Fatal(err)
		}
		made[name] = next
	}
	var err error
	if made["objectid"], err = wide(t, settings.Namespace{Kind: "objectid"}); err != nil {
		t.Fatal(err)
	}
	for name, next := range made {
		var callers sync.WaitGroup
		var seen sync.Map
		for range 4 {
			callers.Go(func() {
				var last []byte
				for range 5000 {
					id, text, err := next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if _, twice := seen.LoadOrStore(text, true); twice {
						t.Errorf("%s a second time", text)
					}
					if name != "uuid4" && bytes.Compare(id, last) <= 0 {
						t.Errorf("%x after %x", id, last)
					}
					last = id
					check(t, name, id, text)
				}
			})
		}
		callers.Wait()
	}
	for _, version := range []int{1, 5, 6, 8, -1} {
		if next, err := wide(t, settings.Namespace{Kind: "uuid", UUID: settings.UUID{Version: version}}); !errors.Is(err, firn.ErrSyntax) || next != nil {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func wide(t *testing.T, n settings.Namespace) (settings.NextWide, error) {
	t.Helper()
	return n.Of().Wide(n)
}

// check holds bytes and text to each other and to the kind.
func check(t *testing.T, name string, id []byte, text string) {
	t.Helper()
	if name == "objectid" {
		if back, err := objectid.Parse(text); err != nil || !bytes.Equal(back[:], id) {
			t.Errorf("%s is %x, %v", text, id, err)
		}
		return
	}
	back, err := uuid.Parse(text)
	if err != nil || !bytes.Equal(back[:], id) || back.Variant() != uuid.RFC4122 || int(back.Version()) != int(name[4]-'0') {
		t.Errorf("%s is %x, %v", text, id, err)
	}
}
