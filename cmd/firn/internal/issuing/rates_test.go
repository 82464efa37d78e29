package issuing_test

import (
	"context"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// A caller who gives up may have used numbers up, and one who gives up again and again must not use up a counter past its
// rate. A store that is away costs nothing.
func TestARequestThatIsGivenUpStaysCharged(t *testing.T) {
	st := newAway()
	s := opened(t, st, "limits: {rate: {'*': 10/h}}\nnamespaces: {invoices: {kind: number, template: 'I{n:4}'}, receipts: {kind: sequence}}\n")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	code := func(ctx context.Context, name string, count int) string {
		var b issuing.Batch
		defer b.Release()
		if _, err := f.Issue(ctx, caller, issuing.Ask{Namespace: name, Count: count}, &b); err != nil {
			return failure.Of(err).Code
		}
		return ""
	}
	st.away.Store(true)
	for range 3 {
		if got := code(t.Context(), "invoices", 10); got != "store_unavailable" {
			t.Fatalf("while the store is away: %q", got)
		}
	}
	st.away.Store(false)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0)) // as with Firn-Timeout-Ms
	defer cancel()
	for name, ctx := range map[string]context.Context{"invoices": gone, "receipts": late} {
		for i, want := range []string{"canceled", "rate_limited", "rate_limited"} {
			if got := code(ctx, name, 10); got != want {
				t.Errorf("%s: given up %d times before: %q, want %q", name, i, got, want)
			}
		}
	}
}
