package issuing_test

import (
	"context"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

func TestUnreadLargeAnswersAreBounded(t *testing.T) {
	s := opened(t, memstore.New(nil), "limits: {batch: 10000000, rate: {visits: 1048576/h}}\n"+
		"namespaces: {orders: {kind: segment, min_step: 1000000}, visits: {kind: uuid}, cards: {kind: segment, min_step: 1000000}}\n")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	const large = 1 << 20
	held := make([]issuing.Batch, 4)
	for i := range held {
		if err := take(t, f, caller, "cards", large, &held[i]); err != nil {
			t.Fatal(err)
		}
	}
	var b issuing.Batch
	err := take(t, f, caller, "visits", large, &b)
	if f := failure.Of(err); f.Code != "overloaded" || f.Status != 503 || f.Retry <= 0 {
		t.Errorf("%v", err)
	}
	// Ids that were not issued count against no rate; small answers need no room.
	if err := take(t, f, caller, "visits", 100, &b); err != nil {
		t.Error(err)
	}
	compact := issuing.Batch{Compact: true}
	if err := take(t, f, caller, "orders", large, &compact); err != nil {
		t.Errorf("first and count: %v", err)
	}
	// A waiting request gets room as soon as there is some.
	done := make(chan error)
	go func() {
		var b issuing.Batch
		defer b.Release()
		done <- take(t, f, caller, "cards", 2*large, &b)
	}()
	held[0].Release()
	held[0].Release() // a second call frees nothing
	release := held[1].Detach()
	held[1].Release()
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	held[2].Release()
	held[3].Release()
	// An answer above the total room is served alone.
	if err := take(t, f, caller, "cards", 5*large, &b); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var other issuing.Batch
	if _, err := f.Issue(ctx, caller, issuing.Ask{Namespace: "cards", Count: large}, &other); failure.Of(err).Code != "canceled" {
		t.Error(err)
	}
	b.Release()
	if err := take(t, f, caller, "cards", large, &other); err != nil {
		t.Error(err)
	}
}
