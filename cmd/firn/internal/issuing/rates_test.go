package issuing_test

import (
	"context"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// A caller who gives up may have used numbers up, and one who gives up again and again must not use up a counter past its
// rate. A store that is away costs nothing.
func TestARequestThatIsGivenUpStaysCharged(t *testing.T) {
	st := newAway()
	s := opened(t, st, "limits: {rate: {'*': 10/h}}\nnamespaces: {invoices: {kind: number, template: 'I{n:4}'}}\n")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	code := func(ctx context.Context, count int) string {
		var b issuing.Batch
		defer b.Release()
		if _, err := f.Issue(ctx, caller, issuing.Ask{Namespace: "invoices", Count: count}, &b); err != nil {
			return failure.Of(err).Code
		}
		return ""
	}
	st.away.Store(true)
	for range 3 {
		if got := code(t.Context(), 10); got != "store_unavailable" {
			t.Fatalf("while the store is away: %q", got)
		}
	}
	st.away.Store(false)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i, want := range []string{"canceled", "rate_limited", "rate_limited"} {
		if got := code(gone, 10); got != want {
			t.Errorf("given up %d times before: %q, want %q", i, got, want)
		}
	}
}
