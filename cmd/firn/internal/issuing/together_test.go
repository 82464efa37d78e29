package issuing_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// Requests that came together get what they would get one after the other.
func TestWhatIsLeftGoesToTheFirstOfRequestsThatCameTogether(t *testing.T) {
	for _, kind := range []string{"segment", "sequence"} {
		s := opened(t, memstore.New(nil), "namespaces: {orders: {kind: "+kind+", from: 9223372036854775800}}")
		f := s.Front(issuing.RESP)
		var b issuing.Batch
		for n, want := range []int{8, 0} {
			err := f.IssueEach(t.Context(), local(t, f), "orders", 10, &b)
			if failure.Of(err).Code != "exhausted" || len(b.IDs) != want {
				t.Errorf("%s, run %d: %d ids, %v", kind, n, len(b.IDs), err)
			}
		}
	}
}

func TestARateAllowsRequestsThatCameTogetherAsMuchAsOthers(t *testing.T) {
	text := "limits: {rate: {lim: 10/h}}\nnamespaces: {free: {kind: segment}, lim: {kind: segment}}\ntokens:\n" +
		token("fast", "f", "namespaces: ['*']") + token("slow", "s", "namespaces: ['*'], rate: 10/h")
	for _, c := range [][2]string{{"s", "free"}, {"f", "lim"}} {
		s := opened(t, memstore.New(nil), text, func(c *issuing.Config) { c.Monotonic = func() time.Duration { return time.Hour } })
		f := s.Front(issuing.RESP)
		caller, err := f.Identify(access.Credentials{Token: c[0], From: "10.0.0.1:99"})
		if err != nil {
			t.Fatal(err)
		}
		var b issuing.Batch
		for n, want := range []int{10, 0} {
			err := f.IssueEach(t.Context(), caller, c[1], 1000, &b)
			if fail := failure.Of(err); fail.Code != "rate_limited" || !strings.Contains(fail.Message, "for 1 ids") || fail.Retry > time.Hour/10 || len(b.IDs) != want {
				t.Errorf("%v, run %d: %d ids, %v", c, n, len(b.IDs), err)
			}
		}
	}
}

// A request that fails leaves what is in memory to others.
func TestARequestForMoreThanThereIsTakesNothing(t *testing.T) {
	st := newAway()
	s := opened(t, st, "namespaces: {orders: {kind: segment, min_step: 1000, max_step: 1000}}")
	f := s.Front(issuing.HTTP)
	var b issuing.Batch
	if err := take(t, f, local(t, f), "orders", 1, &b); err != nil {
		t.Fatal(err)
	}
	st.away.Store(true)
	left := list(t, f, local(t, f))[0].Segment.Left
	for _, compact := range []bool{false, true} {
		b.Compact = compact
		if err := take(t, f, local(t, f), "orders", 5000, &b); failure.Of(err).Code != "store_unavailable" {
			t.Error(err)
		}
		if now := list(t, f, local(t, f))[0].Segment.Left; now < left || left == 0 {
			t.Errorf("%d ids were left, and then %d", left, now)
		}
	}
	if err := take(t, f, local(t, f), "orders", int(left), &b); err != nil {
		t.Error(err)
	}
}

// Whoever may not unveil ids learns neither worker nor counter from errors.
func TestErrorsOfVeiledIDsSayNeitherWorkerNorCounter(t *testing.T) {
	t.Setenv("KEYS", "1:001122334455667788990011223344556677889900112233445566778899aabb")
	text := "namespaces: {txn: {kind: sequence, from: 9223372036854775000, veil: {key_env: KEYS}}, open: {kind: sequence, from: 9223372036854775000}}\ntokens:\n" +
		token("shop", "s", "namespaces: ['*']") + token("own", "o", "namespaces: ['*'], unveil: true")
	for _, c := range []struct {
		token, name string
		shown       bool
	}{{"s", "txn", false}, {"s", "open", true}, {"o", "txn", true}} {
		st := newAway()
		s := opened(t, st, text)
		f := s.Front(issuing.HTTP)
		caller, err := f.Identify(access.Credentials{Token: c.token, From: "10.0.0.1:99"})
		if err != nil {
			t.Fatal(err)
		}
		var b issuing.Batch
		err = take(t, f, caller, c.name, 10_000, &b)
		if fail := failure.Of(err); fail.Code != "exhausted" || strings.Contains(fail.Message, "808") != c.shown {
			t.Errorf("%v: %v", c, err)
		}
		st.away.Store(true)
		err = take(t, f, caller, c.name, 1, &b)
		if fail := failure.Of(err); fail.Code != "store_unavailable" || strings.Contains(fail.Message, "sequence") != c.shown {
			t.Errorf("%v, the store is away: %v", c, err)
		}
		for _, state := range list(t, f, caller) {
			if state.Namespace == c.name && strings.Contains(state.Error, "sequence") != c.shown {
				t.Errorf("%v: %s", c, state.Error)
			}
		}
		if err := s.Ready(c.name); err == nil || strings.Contains(fmt.Sprint(err), "sequence") != (c.name == "open") {
			t.Errorf("%v: readiness, which anyone may ask for: %v", c, err)
		}
	}
}

// A counter without ids is no reason to refuse a file: a restart would take it.
func TestSettingsOfACounterThatIsUsedUpMayChange(t *testing.T) {
	s := opened(t, memstore.New(nil), "namespaces: {orders: {kind: segment, from: 9223372036854775800}}")
	f := s.Front(issuing.HTTP)
	var b issuing.Batch
	if err := take(t, f, local(t, f), "orders", 3, &b); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), config(t, "namespaces: {orders: {kind: segment, from: 9223372036854775800, target: 20m}}")); err != nil {
		t.Fatal(err)
	}
}
