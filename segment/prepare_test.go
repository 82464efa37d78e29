package segment_test

import (
	"context"
	"errors"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store/memstore"
)

func TestPrepareFetchesBeforeTheFirstCall(t *testing.T) {
	st := memstore.New(nil)
	s, err := segment.New(segment.Config{Store: st, MinStep: 10})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Namespace("orders")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second has nothing to do
		if err := n.Prepare(t.Context()); err != nil || n.State().Left == 0 {
			t.Errorf("%v, %+v", err, n.State())
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if id, err := n.Next(ended); id != 1 || err != nil {
		t.Errorf("%d, %v: it waited", id, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Prepare(t.Context()); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("%v", err)
	}
	if err := n.Raise(t.Context(), 5000); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("%v", err)
	}
}
