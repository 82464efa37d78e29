package issuing_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// token is a line of the configuration.
func token(name, secret, rest string) string {
	return "  - {name: " + name + ", sha256: " + access.Hash(secret) + ", " + rest + "}\n"
}

func TestARemovedTokenEndsOnOpenConnections(t *testing.T) {
	const rest = "namespaces: {orders: {}, users: {kind: segment}}\n"
	var out lines
	s := opened(t, memstore.New(nil), rest+"tokens:\n"+token("shop", "s", "namespaces: [orders]")+token("pay", "p", "namespaces: ['*']"),
		func(c *issuing.Config) {
			c.Audit = access.NewAudit(slog.New(slog.NewTextHandler(&out, nil)), func() time.Duration { return 0 })
		})
	f := s.Front(issuing.RESP)
	who := func(secret string) *access.Caller {
		caller, err := f.Identify(access.Credentials{Token: secret, From: "10.0.0.1:99"})
		if err != nil {
			t.Fatal(err)
		}
		return caller
	}
	shop, pay := who("s"), who("p") // as a connection keeps them
	var b issuing.Batch
	if err := take(t, f, pay, "orders", 1, &b); err != nil {
		t.Fatal(err)
	}
	if err := take(t, f, shop, "users", 1, &b); failure.Of(err).Status != 403 {
		t.Errorf("of another: %v", err)
	}
	if err := s.Apply(t.Context(), config(t, rest+"tokens:\n"+token("shop", "s", "namespaces: [users]"))); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{take(t, f, pay, "users", 1, &b), f.Allow(pay, "orders")} {
		if failure.Of(err).Status != 401 {
			t.Errorf("a token that was taken out: %v", err)
		}
	}
	if _, err := f.Slots(t.Context(), pay, "default"); failure.Of(err).Status != 401 {
		t.Error(err)
	}
	if err := take(t, f, shop, "orders", 1, &b); failure.Of(err).Status != 403 {
		t.Errorf("what it may no longer use: %v", err)
	}
	if err := take(t, f, shop, "users", 1, &b); err != nil {
		t.Errorf("what it may use since: %v", err)
	}
	if _, err := f.Slots(t.Context(), shop, "default"); failure.Of(err).Status != 403 {
		t.Errorf("a pool: %v", err)
	}
	if _, err := f.State(shop, "orders"); failure.Of(err).Status != 403 {
		t.Errorf("a state: %v", err)
	}
	if _, err := f.Decode(shop, issuing.DecodeRequest{ID: "1", Namespace: "orders"}); failure.Of(err).Status != 403 {
		t.Errorf("an id: %v", err)
	}
	if list := list(t, f, shop); len(list) != 1 || list[0].Namespace != "users" {
		t.Errorf("%+v", list)
	}
	for _, want := range []string{`msg=denied who=shop from=10.0.0.1 what="namespace users" why="token shop may not`, `msg=denied who=pay from=10.0.0.1 what=resp why="the token is not known`, "what=pools"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the audit log lacks %s:\n%s", want, out.String())
		}
	}
}

func TestRatesHoldForNamespacesAndTokens(t *testing.T) {
	var now atomic.Int64
	text := "namespaces: {orders: {}, users: {}, free: {}, few: {kind: number, template: 'F{yyyy}{n:1}'}}\ntokens:\n" + token("shop", "s", "namespaces: ['*'], rate: 100/s") + token("pay", "p", "namespaces: ['*']") +
		"limits: {batch: 1000, rate: {orders: 50/s, user*: 10/m, few: 50/s}}\n"
	s := opened(t, memstore.New(nil), text, func(c *issuing.Config) { c.Monotonic = func() time.Duration { return time.Duration(now.Load()) } })
	f := s.Front(issuing.HTTP)
	shop, err := f.Identify(access.Credentials{Token: "s"})
	if err != nil {
		t.Fatal(err)
	}
	pay, err := f.Identify(access.Credentials{Token: "p"})
	if err != nil {
		t.Fatal(err)
	}
	var b issuing.Batch
	ok := func(who *access.Caller, name string, n int) {
		t.Helper()
		if err := take(t, f, who, name, n, &b); err != nil {
			t.Errorf("%s, %d of %s: %v", who.Name(), n, name, err)
		}
	}
	limited := func(who *access.Caller, name string, n int, wait time.Duration, words string) {
		t.Helper()
		err := take(t, f, who, name, n, &b)
		if f := failure.Of(err); f.Status != 429 || f.Code != "rate_limited" || f.Retry != wait || !strings.Contains(f.Message, words) {
			t.Errorf("%s, %d of %s: %v in %v, want %v with %q", who.Name(), n, name, err, f.Retry, wait, words)
		}
	}
	ok(shop, "orders", 50)
	limited(shop, "orders", 1, 20*time.Millisecond, "namespace orders has used up its rate of 50/s")
	ok(shop, "free", 50) // ids that orders refused do not count against the token
	limited(shop, "free", 1, 10*time.Millisecond, "token shop has used up its rate of 100/s")
	ok(pay, "free", 1000)
	limited(pay, "orders", 1, 20*time.Millisecond, "orders")
	ok(pay, "users", 10)
	limited(pay, "users", 3, 8*time.Second, "10/m") // with a debt of 10 s then

	// A reload of other settings does not reset the rate; a new rate does.
	if err := s.Apply(t.Context(), config(t, text+"anonymous: [free]\n")); err != nil {
		t.Fatal(err)
	}
	limited(pay, "users", 3, 8*time.Second, "10/m") // with a debt of 10 s then
	limited(shop, "free", 1, 10*time.Millisecond, "100/s")
	if err := s.Apply(t.Context(), config(t, strings.Replace(text, "10/m", "20/m", 1))); err != nil {
		t.Fatal(err)
	}
	ok(pay, "users", 1)
	limited(pay, "orders", 1, 20*time.Millisecond, "orders")
	now.Add(int64(20 * time.Millisecond))
	ok(pay, "orders", 1)
	// Ids that were not issued do not count.
	now.Add(int64(time.Second))
	for range 10 {
		if err := take(t, f, shop, "orders", 1001, &b); failure.Of(err).Code != "batch_too_large" {
			t.Error(err)
		}
	}
	ok(shop, "orders", 50)
	for range 10 {
		if err := take(t, f, shop, "few", 50, &b); failure.Of(err).Status != 400 {
			t.Error(err)
		}
	}
	ok(shop, "free", 50)
}

// list returns the states of the namespaces that a caller may use.
func list(t *testing.T, f *issuing.Front, caller *access.Caller) []issuing.State {
	t.Helper()
	states, release, err := f.List(caller)
	if err != nil {
		t.Fatal(err)
	}
	release()
	return states
}

// The store hangs while the ranges of new settings are fetched.
func TestARemovedTokenEndsWhileACounterIsPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &standingStore{Store: memstore.New(nil)}
		text := func(step, tokens string) string {
			return "namespaces: {orders: {kind: segment, min_step: " + step + "}}\ntokens:\n" + tokens
		}
		shop, pay := token("shop", "s", "namespaces: ['*']"), token("pay", "p", "namespaces: ['*']")
		s := opened(t, st, text("1000", shop+pay))
		f := s.Front(issuing.HTTP)
		caller, err := f.Identify(access.Credentials{Token: "p", From: "10.0.0.1:99"})
		if err != nil {
			t.Fatal(err)
		}
		var b issuing.Batch
		if err := take(t, f, caller, "orders", 1, &b); err != nil {
			t.Fatal(err)
		}
		st.hold()
		applied := make(chan error, 1)
		cfg := config(t, text("2000", shop))
		go func() { applied <- s.Apply(t.Context(), cfg) }()
		time.Sleep(time.Second) // of the test's own time
		synctest.Wait()
		if err := take(t, f, caller, "orders", 1, &b); failure.Of(err).Status != 401 {
			t.Errorf("a token that was taken out: %v", err)
		}
		if err := <-applied; err == nil || !strings.Contains(err.Error(), "stay withdrawn") {
			t.Errorf("in force, though no range was fetched: %v", err)
		}
		st.release()
	})
}
