package backend_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// FuzzDecode reads arbitrary content in the place of a register.
func FuzzDecode(f *testing.F) {
	f.Add("firn/p/pool", "00000000000000ff\n{}")
	f.Add("x", "zz000000000000ff\n{}")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, key, text string) {
		e, err := backend.Decode(key, text, "place")
		if err != nil {
			if !errors.Is(err, store.ErrRefused) {
				t.Fatalf("foreign content is not refused: %v", err)
			}
			return
		}
		if again := backend.Encode(e.Revision, e.Value); e.Key != key || !strings.EqualFold(again, text) {
			t.Fatalf("%q was read as %+v, which is written %q", text, e, again)
		}
	})
}
