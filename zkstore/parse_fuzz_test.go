package zkstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/backend"
	"github.com/firn-id/firn/store"
)

// FuzzData reads what anybody may have put into a znode.
func FuzzData(f *testing.F) {
	f.Add("firn/p/pool", []byte("00000000000000ff\n{}"))
	f.Add("x", []byte("zz000000000000ff\n{}"))
	f.Add("", []byte(nil))
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		e, err := parse(key, data)
		if err != nil {
			if !errors.Is(err, store.ErrRefused) {
				t.Fatalf("%v is not told as what it is", err)
			}
			return
		}
		if again := backend.Encode(e.Revision, e.Value); e.Key != key || !strings.EqualFold(again, string(data)) {
			t.Fatalf("%q was read as %+v, which is written %q", data, e, again)
		}
	})
}
