package issuing_test

import (
	"context"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

func TestLargeAnswersThatAreNotTakenAreBounded(t *testing.T) {
	s := opened(t, memstore.New(nil), "limits: {batch: 10000000, rate: {visits: 1/h}}\n"+
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
	if told := failure.Of(err); told.Code != "overloaded" || told.Status != 503 || told.Retry <= 0 {
		t.Errorf("%v", err)
	}
	// What was not issued counts against no rate; small answers are others' business.
	if err := take(t, f, caller, "visits", 1000, &b); err != nil {
		t.Error(err)
	}
	compact := issuing.Batch{Compact: true}
	if err := take(t, f, caller, "orders", large, &compact); err != nil {
		t.Errorf("first and count: %v", err)
	}
	// Who waits for room has it as soon as there is some.
	done := make(chan error)
	go func() {
		var b issuing.Batch
		defer b.Release()
		done <- take(t, f, caller, "cards", 2*large, &b)
	}()
	held[0].Release()
	held[0].Release() // once only
	release := held[1].Detach()
	held[1].Release()
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	held[2].Release()
	held[3].Release()
	// More than there is room for comes alone.
	if err := take(t, f, caller, "cards", 5*large, &b); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ns, err := f.Find(caller, "cards")
	if err != nil {
		t.Fatal(err)
	}
	var other issuing.Batch
	if err := f.Issue(ctx, caller, ns, large, &other); failure.Of(err).Code != "canceled" {
		t.Error(err)
	}
	b.Release()
	if err := take(t, f, caller, "cards", large, &other); err != nil {
		t.Error(err)
	}
}
