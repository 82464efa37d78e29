package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

func TestAnErrorThatLastsIsReturnedAtOnceAndNotForEver(t *testing.T) {
	for status, want := range map[int]error{
		404: client.ErrUnknownNamespace, 401: client.ErrDenied, 403: client.ErrDenied, 400: client.ErrRequest, 405: client.ErrRequest,
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &fake{kind: "snowflake", next: 1, status: status, code: "the_code"}
			b := &fake{kind: "snowflake", next: 1, status: status, code: "the_code"}
			cfg := network{"a": a, "b": b}.config()
			cfg.Wait = time.Hour
			c := newClient(t, cfg)
			orders := ids(t, c, "orders")
			began := time.Now()
			_, err := orders.Next(t.Context())
			_, err2 := orders.Fetch(t.Context(), 7)
			for _, err := range []error{err, err2} {
				var e *client.Error
				if !errors.Is(err, want) || errors.Is(err, client.ErrUnavailable) || !errors.As(err, &e) || e.Status != status || e.Code != "the_code" ||
					!strings.HasPrefix(e.Server, "http://") || !strings.HasPrefix(err.Error(), `client: ids of "orders": http://`) {
					t.Errorf("%d: %v", status, err)
				}
			}
			if time.Since(began) != 0 {
				t.Errorf("%d: it took %v", status, time.Since(began))
			}
			if s := c.State().Servers; !s[0].Up || !s[1].Up {
				t.Errorf("%d: servers that answered were left: %+v", status, s)
			}
			for range 1000 { // the same, without a request each
				if _, err := orders.Next(t.Context()); !errors.Is(err, want) {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
			if n := a.seen().ids + b.seen().ids; n > 4 {
				t.Errorf("%d: %d requests in an hour without callers", status, n)
			}
			a.set(func(f *fake) { f.status = 0 })
			nextIs(t, orders, 1, 1000)
		})
	}
}

func TestANamespaceUnknownToOneServerIsServedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "snowflake", status: 404, code: "unknown_namespace"}
		c := newClient(t, network{"a": a, "b": {kind: "snowflake", next: 1}}.config())
		nextIs(t, ids(t, c, "orders"), 1, 500)
	})
}

func TestAShortRateLimitIsWaitedForAndALongOneReturnedWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := func(retry string) func(f *fake) {
			return func(f *fake) { f.status, f.code, f.header = 429, "rate_limited", http.Header{"Retry-After": {retry}} }
		}
		a, b := &fake{kind: "snowflake", next: 1}, &fake{kind: "snowflake", next: 1}
		limited("30")(a)
		c := newClient(t, network{"a": a, "b": b}.config())
		orders := ids(t, c, "orders")
		began := time.Now()
		_, err := orders.Fetch(t.Context(), 1)
		var e *client.Error
		if !errors.Is(err, client.ErrLimited) || !errors.As(err, &e) || e.RetryAfter != 30*time.Second || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, err := orders.Next(t.Context()); !errors.Is(err, client.ErrLimited) || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if a.seen().ids != 2 || b.seen().ids != 0 {
			t.Errorf("%d requests, and %d at another server to get around the limit", a.seen().ids, b.seen().ids)
		}
		a.set(func(f *fake) { f.status = 0 })
		time.Sleep(30 * time.Second)
		nextIs(t, orders, 1, 10)
		began = time.Now()
		limited("2")(a)
		time.AfterFunc(time.Second, func() { a.set(func(f *fake) { f.status = 0 }) })
		if _, err := orders.Fetch(t.Context(), 1); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestAServerWithASmallerLimitIsAskedForFewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "segment", next: 1, batch: 300}
		cfg := network{"a": a}.config()
		cfg.Buffer.Min = 5000
		c := newClient(t, cfg)
		orders := ids(t, c, "orders")
		nextIs(t, orders, 1, 20_000)
		if slices.Max(a.seen().counts[5:]) > 300 {
			t.Errorf("asked for %v", a.seen().counts)
		}
		if _, err := orders.Fetch(t.Context(), 301); !errors.Is(err, client.ErrRequest) || !strings.Contains(err.Error(), "413 batch_too_large") {
			t.Errorf("%v", err)
		}
		for _, count := range []int{0, -1, 10_000_001} {
			if _, err := orders.Fetch(t.Context(), count); !errors.Is(err, firn.ErrRange) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestKindsThatPromiseOrderAreNotBuffered(t *testing.T) {
	for _, kind := range []string{"sequence", "number"} {
		synctest.Test(t, func(t *testing.T) {
			a := &fake{kind: kind, next: 1}
			cfg := network{"a": a}.config()
			cfg.Buffers = map[string]client.Buffer{"any": {AnyKind: true}}
			c := newClient(t, cfg)
			txn, err := c.Texts("txn")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := txn.Next(t.Context()); !errors.Is(err, client.ErrKind) || !strings.Contains(err.Error(), kind+" promises") || !strings.Contains(err.Error(), "use Fetch") {
				t.Errorf("%v", err)
			}
			if a.seen().ids != 0 {
				t.Errorf("%d requests for ids", a.seen().ids)
			}
			if got, err := txn.Fetch(t.Context(), 3); err != nil || !slices.Equal(got, []string{"1", "2", "3"}) {
				t.Errorf("%v, %v", got, err)
			}
			if got, err := fetchOne(t.Context(), txn); err != nil || got != "4" {
				t.Errorf("%v, %v", got, err)
			}
			anyKind, err := c.Texts("any")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := anyKind.Next(t.Context()); err != nil || got != "5" {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestTheKindOfANamespaceMadeOnFirstUseIsCheckedBeforeItsIDsAreIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, network{"a": {made: "snowflake", next: 1}}.config())
		orders := ids(t, c, "orders")
		nextIs(t, orders, 2, 10) // one id is taken to learn the kind
		if s := stateOf(c, "orders"); s.Kind != "snowflake" {
			t.Errorf("%+v", s)
		}
		c = newClient(t, network{"a": {made: "sequence", next: 1}}.config())
		if id, err := ids(t, c, "txn").Next(t.Context()); !errors.Is(err, client.ErrKind) {
			t.Errorf("%d, %v", id, err)
		}
	})
}

func TestAnUnreadableKindIsBufferedOnlyWithAnyKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "snowflake", next: 1, denies: true}
		cfg := network{"a": a}.config()
		cfg.Buffers = map[string]client.Buffer{"any": {AnyKind: true, Min: 5, Max: 5}}
		c := newClient(t, cfg)
		if _, err := ids(t, c, "orders").Next(t.Context()); !errors.Is(err, client.ErrDenied) || !strings.Contains(err.Error(), "set Config.Token") {
			t.Errorf("%v", err)
		}
		asked := a.seen().asked
		nextIs(t, ids(t, c, "any"), 1, 100)
		if a.seen().asked != asked+1 {
			t.Errorf("asked %d times for a kind that it may not read", a.seen().asked-asked)
		}
	})
}

func TestTextsAreDistinguishedFromNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, a := range []*fake{
			{kind: "uuid", text: "01a1fd70-6396-740a-9e46-"},
			{kind: "serial", text: "20261121092742191"},
			{kind: "snowflake", text: "ord_", more: `,"prefix":"ord"`},
		} {
			c := newClient(t, network{"a": a}.config())
			numbers := ids(t, c, "x")
			if _, err := numbers.Next(t.Context()); !errors.Is(err, client.ErrKind) || !strings.Contains(err.Error(), "Client.Texts") {
				t.Errorf("%s: %v", a.kind, err)
			}
			a.set(func(f *fake) { f.next = 100_000 })
			began := time.Now()
			if _, err := numbers.Fetch(t.Context(), 1); !errors.Is(err, client.ErrKind) || !strings.Contains(err.Error(), "Client.Texts") || time.Since(began) > 0 {
				t.Errorf("%s: %v after %v", a.kind, err, time.Since(began))
			}
			if n := a.seen().ids; n != 0 {
				t.Errorf("%s: %d requests used up ids that are not read", a.kind, n)
			}
			texts, err := c.Texts("x")
			if err != nil {
				t.Fatal(err)
			}
			for i := range 1000 {
				if _, err := texts.Next(t.Context()); err != nil {
					t.Fatalf("%s: %d: %v", a.kind, i, err)
				}
			}
			c.Close()
		}
	})
}

// Templates of business numbers have any printable characters, spaces too.
func TestTextsHaveTheCharactersOfTemplates(t *testing.T) {
	c := newClient(t, network{"a": {kind: "number", text: "订单 é-", next: 7}}.config())
	texts, err := c.Texts("x")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := texts.Fetch(t.Context(), 2); err != nil || !slices.Equal(got, []string{"订单 é-7", "订单 é-8"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestIDsBufferedTooLongAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := network{"a": {kind: "snowflake", next: 1}}.config()
		cfg.Buffer = client.Buffer{Min: 10, Max: 10, MaxAge: time.Minute}
		c := newClient(t, cfg)
		orders := ids(t, c, "orders")
		nextIs(t, orders, 1, 1)
		time.Sleep(2 * time.Minute)
		nextIs(t, orders, 11, 1)
		if s := stateOf(c, "orders"); s.Expired != 9 {
			t.Errorf("%+v", s)
		}
	})
}

func TestHooksAreCalledForRequestsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := network{"a": {kind: "snowflake", next: 1}}.config()
		var requests []client.Request
		waits := 0
		cfg.Hooks.Request = func(r client.Request) { requests = append(requests, r) }
		cfg.Hooks.Waited = func(namespace string, _ time.Duration, err error) {
			if waits++; namespace != "orders" || err != nil {
				t.Errorf("%s, %v", namespace, err)
			}
		}
		c := newClient(t, cfg)
		orders := ids(t, c, "orders")
		nextIs(t, orders, 1, 20)
		synctest.Wait()
		want := []client.Request{{Server: "http://a", Namespace: "orders"}, {Server: "http://a", Namespace: "orders", Count: 100}}
		if !slices.Equal(requests, want) || waits != 1 {
			t.Errorf("%+v, %d waits", requests, waits)
		}
		if _, ok := orders.TryNext(); !ok {
			t.Error("the buffer is empty")
		}
		s := c.State()
		if len(s.Namespaces) != 1 || s.Namespaces[0].Issued != 21 || s.Namespaces[0].Buffered != 79 || s.Servers[0].Requests != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnOutageOfOneNamespaceDoesNotAffectAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "segment", next: 1}
		c := newClient(t, network{"a": a}.config())
		nextIs(t, ids(t, c, "orders"), 1, 5)
		a.set(func(f *fake) { f.status, f.code = 503, "exhausted" })
		_, err := ids(t, c, "users").Next(context.Background())
		if !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), "503 exhausted: set by the test") {
			t.Errorf("%v", err)
		}
		if s := c.State().Servers[0]; !s.Up {
			t.Errorf("%+v", s)
		}
		nextIs(t, ids(t, c, "orders"), 6, 5)
	})
}

// A call that ends after the kind is known, and before it has an id, has none.
func TestACallThatEndsOnceTheKindIsKnownHasNoID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := network{"a": &fake{kind: "segment"}}.config()
		ctx, cancel := context.WithCancel(t.Context())
		cfg.Hooks.Request = func(client.Request) { cancel() }
		if got, err := ids(t, newClient(t, cfg), "x").Fetch(ctx, 3); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// A gateway lets requests for ids pass, and answers others with a status.
type gateway struct {
	http.RoundTripper
	status int
	asked  *int
}

func (g gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/namespaces/") {
		*g.asked++
		return &http.Response{StatusCode: g.status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	return g.RoundTripper.RoundTrip(r)
}

// A token, or a proxy, may allow requests for ids alone: that is asked once.
func TestAKindThatMayNotBeReadIsAskedOnce(t *testing.T) {
	for _, status := range []int{400, 403, 405} {
		synctest.Test(t, func(t *testing.T) {
			a, asked := &fake{kind: "segment"}, 0
			cfg := network{"a": a}.config()
			cfg.HTTP = &http.Client{Transport: gateway{cfg.HTTP.Transport, status, &asked}}
			n := ids(t, newClient(t, cfg), "x")
			for range 5 {
				if _, err := n.Fetch(t.Context(), 1); err != nil {
					t.Fatalf("%d: %v", status, err)
				}
			}
			if s := a.seen(); asked != 1 || s.ids != 5 {
				t.Errorf("%d: asked %d times, %+v", status, asked, s)
			}
		})
	}
}
