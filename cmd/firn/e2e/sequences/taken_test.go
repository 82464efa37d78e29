package sequences

import (
	"errors"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// A name of a real store is one counter: a process of another kind, or of another form, gets no id.
func TestANameIsOneCounter(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			b := m.make(t)
			addr := ""
			if b.server != nil {
				addr = b.server.Addr()
			}
			url := b.url(addr)
			first := open(t, url, sequence.Config{})
			if id, err := first.Next(t.Context()); id != 1 || err != nil {
				t.Fatal(id, err)
			}
			if id, err := open(t, url, sequence.Config{Form: store.Form{Name: "other"}}).Next(t.Context()); !errors.Is(err, store.ErrTaken) {
				t.Errorf("another form: %d, %v", id, err)
			}
			s, err := storeurl.Open(t.Context(), url)
			check(t, err)
			defer s.Close()
			all, err := segment.New(segment.Config{Store: s})
			check(t, err)
			if id, err := all.Next(t.Context(), "txn"); !errors.Is(err, store.ErrTaken) {
				t.Errorf("another kind: %d, %v", id, err)
			}
			check(t, all.Close(t.Context()))
			if id, err := first.Next(t.Context()); id != 2 || err != nil {
				t.Error(id, err)
			}
		})
	}
}
