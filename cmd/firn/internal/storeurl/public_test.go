package storeurl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
)

// The log names the file that failed, and answers to clients do not.
func TestClientsDoNotLearnThePathOfAFile(t *testing.T) {
	for scheme, broken := range map[string]func(path string) error{
		"sqlite": os.Remove,
		"file":   os.RemoveAll,
	} {
		path := filepath.Join(t.TempDir(), "hidden-place")
		s, err := storeurl.Create(t.Context(), scheme+":"+path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if c, ok := s.(interface{ Close() error }); ok {
				_ = c.Close() // its file is gone
			}
		})
		if err := broken(path); err != nil {
			t.Fatal(err)
		}
		_, got := s.Get(t.Context(), "firn/counter:txn")
		_, swapped := s.CompareAndSwap(t.Context(), "firn/counter:txn", 0, []byte("1"))
		_, listed := s.List(t.Context(), "firn/")
		for call, err := range map[string]error{"get": got, "swap": swapped, "list": listed} {
			if err == nil || errors.Is(err, store.ErrNotFound) {
				t.Fatalf("%s, %s: %v", scheme, call, err)
			}
			err = fmt.Errorf("sequence %q: add: %w", "txn", err)
			if public := failure.Public(err); strings.Contains(public, "hidden-place") || !strings.HasPrefix(public, `sequence "txn": add: the store `) {
				t.Errorf("%s, %s: clients see %s", scheme, call, public)
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%s, %s: the log has %v, without the path", scheme, call, err)
			}
		}
	}
}
