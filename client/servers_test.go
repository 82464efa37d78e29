package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// hooked records the calls of the hook Server.
func hooked(cfg *client.Config) (calls func() string) {
	var mu sync.Mutex
	var all []string
	cfg.Hooks.Server = func(server string, err error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, fmt.Sprint(server, " ", err == nil))
	}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprint(all)
	}
}

func TestCallersWithShortDeadlinesLeaveAServerThatHangs(t *testing.T) {
	for _, deadline := range []time.Duration{400 * time.Millisecond, 900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			a, b := &fake{kind: "sequence", next: 1, hangs: true}, &fake{kind: "sequence", next: 1_000_000}
			cfg := network{"a": a, "b": b}.config()
			calls := hooked(&cfg)
			c := newClient(t, cfg)
			txn := ids(t, c, "txn")
			fresh := func() (took time.Duration) {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				began := time.Now()
				if id, err := fetchOne(ctx, txn); err != nil || id < 1_000_000 {
					t.Errorf("%d, %v", id, err)
				}
				return time.Since(began)
			}
			for call := range 20 {
				if took, waits := fresh(), call < 3; took > 0 != waits {
					t.Errorf("call %d took %v", call, took)
				}
				if call == 0 {
					if s := c.State().Servers[0]; !s.Up || s.Requests != 1 || s.Failed != 1 || s.Err == nil {
						t.Errorf("%+v", s)
					}
				}
			}
			time.Sleep(2 * time.Second) // the probe takes this long
			synctest.Wait()
			if s := c.State().Servers[0]; s.Up || s.Requests != 3 || s.Failed != 3 || calls() != "[http://a false]" {
				t.Errorf("%+v, and hooks were called with %v", s, calls())
			}
			a.set(func(f *fake) { f.hangs = false })
			time.Sleep(6 * time.Second) // the probe under way, and the longest wait
			if s := c.State().Servers[0]; !s.Up || calls() != "[http://a false http://a true]" {
				t.Errorf("%+v, and hooks were called with %v", s, calls())
			}
			if id, err := fetchOne(t.Context(), txn); err != nil || id != 1 {
				t.Errorf("%d, %v", id, err)
			}
		})
	}
}

func TestCallersWithShortDeadlinesLeaveTheOnlyServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "sequence", next: 1, hangs: true}
		c := newClient(t, network{"a": a}.config())
		txn := ids(t, c, "txn")
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
			if _, err := fetchOne(ctx, txn); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
		if s := c.State().Servers[0]; s.Up || s.Failed < 3 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnImpatientCallerDoesNotKeepOthersFromAHealthyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{kind: "sequence", next: 1, delay: 5 * time.Millisecond}, &fake{kind: "sequence", next: 1_000_000}
		cfg := network{"a": a, "b": b}.config()
		calls := hooked(&cfg)
		c := newClient(t, cfg)
		txn := ids(t, c, "txn")
		impatient := func(most time.Duration) (firn.ID, error) {
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			return fetchOne(ctx, txn)
		}
		hasOfB := func(count int) {
			for range count { // 2 ms at a, and then at b, which answers at once
				if id, err := impatient(4 * time.Millisecond); err != nil || id < 1_000_000 {
					t.Errorf("%d, %v", id, err)
				}
			}
		}
		for call := range 2 {
			hasOfB(2)
			if id, err := fetchOne(t.Context(), txn); err != nil || int(id) != 1+call {
				t.Errorf("%d, %v", id, err)
			}
		}
		if n := a.seen().probes; n != 0 {
			t.Errorf("%d probes, though every third request was answered", n)
		}
		hasOfB(3)
		if id, err := fetchOne(t.Context(), txn); err != nil || id < 1_000_000 {
			t.Errorf("while it is probed: %d, %v", id, err)
		}
		time.Sleep(6 * time.Millisecond)
		if id, err := fetchOne(t.Context(), txn); err != nil || id != 3 {
			t.Errorf("after it has answered: %d, %v", id, err)
		}

		b.set(func(f *fake) { f.delay = 5 * time.Millisecond })
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for ctx.Err() == nil {
					if _, err := impatient(time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
			})
		}
		for ctx.Err() == nil {
			began := time.Now()
			if _, err := fetchOne(t.Context(), txn); err != nil || time.Since(began) > 5*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
		group.Wait()
		if s := c.State().Servers; !s[0].Up || !s[1].Up || calls() != "[]" {
			t.Errorf("%+v, and hooks were called with %v", s, calls())
		}
		if n := a.seen().probes + b.seen().probes; n > 4*100 {
			t.Errorf("%d probes in four seconds", n)
		}
		time.Sleep(4 * time.Second) // the longest wait for a probe, and its jitter
		before := c.State().Servers[1].Requests
		if _, err := fetchOne(t.Context(), txn); err != nil || c.State().Servers[1].Requests != before {
			t.Errorf("%v; the second server was asked", err)
		}
	})
}

func TestACallWhoseContextHasEndedSendsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "sequence", next: 1}
		c := newClient(t, network{"a": a}.config())
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			if _, err := fetchOne(over, ids(t, c, "txn")); !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrUnavailable) {
				t.Error(err)
			}
		}
		if s := c.State().Servers[0]; s.Requests != 0 || a.seen().probes != 0 {
			t.Errorf("%+v, %d probes", s, a.seen().probes)
		}
	})
}

func TestTheClientReturnsToAServerThatServesAtLeastOneNamespace(t *testing.T) {
	for code, want := range map[string]bool{"not_ready": true, "overloaded": true, "starting": false, "joining": true, "shutting_down": false, "too_many_connections": false} {
		synctest.Test(t, func(t *testing.T) {
			a, b := &fake{kind: "segment", next: 1}, &fake{kind: "segment", next: 1_000_000}
			c := newClient(t, network{"a": a, "b": b}.config())
			users := ids(t, c, "users")
			a.set(func(f *fake) { f.down = true })
			if id, err := fetchOne(t.Context(), users); err != nil || id != 1_000_000 {
				t.Errorf("%d, %v", id, err)
			}
			a.set(func(f *fake) { f.down, f.unready, f.past = false, code, "orders" })
			time.Sleep(5 * time.Second)
			id, err := fetchOne(t.Context(), users)
			if back := id < 1_000_000; err != nil || back != want || c.State().Servers[0].Up != want {
				t.Errorf("%s: %d, %v, %+v", code, id, err, c.State().Servers[0])
			}
		})
	}
}

func TestAServerThatRefusesANamespaceIsAskedLastAndFromTimeToTimeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "snowflake", next: 1, past: "orders", unready: "not_ready", delay: time.Millisecond}
		b := &fake{kind: "snowflake", next: 1_000_000}
		c := newClient(t, network{"a": a, "b": b}.config())
		orders, users := ids(t, c, "orders"), ids(t, c, "users")
		fresh := func(n *client.Namespace[firn.ID]) (fromB bool) {
			id, err := fetchOne(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			return id >= 1_000_000
		}
		const seconds = 100
		for range seconds * 10 { // ten callers at once, ten times a second
			var group sync.WaitGroup
			for range 10 {
				group.Go(func() {
					if !fresh(orders) {
						t.Error("the server that refuses the namespace gave an id of it")
					}
				})
			}
			group.Wait()
			if fresh(users) {
				t.Fatal("another namespace came from the other server")
			}
			time.Sleep(100 * time.Millisecond)
		}
		// All ten callers at first; then one caller every two seconds on average.
		if n := a.seen().refused; n < seconds/4 || n > seconds {
			t.Errorf("asked %d times in %d seconds for ids that it refuses", n, seconds)
		}
		if s := c.State().Servers; !s[0].Up || !s[1].Up {
			t.Errorf("%+v", s)
		}
		a.set(func(f *fake) { f.past, f.unready = "", "" })
		time.Sleep(4 * time.Second) // the longest wait, and its jitter
		for range 2 {
			if fresh(orders) {
				t.Error("the first server gives ids again, and is not asked")
			}
		}
	})
}

func TestANamespaceThatTheOnlyServerRefusedIsServedAsSoonAsItRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "snowflake", next: 1, past: "orders", unready: "not_ready"}
		c := newClient(t, network{"a": a}.config())
		orders := ids(t, c, "orders")
		if _, err := fetchOne(t.Context(), orders); err == nil {
			t.Error("an id")
		}
		time.AfterFunc(time.Hour, func() { a.set(func(f *fake) { f.past = "" }) })
		if _, ok := orders.TryNext(); ok { // which has the buffer filled
			t.Error("an id")
		}
		time.Sleep(time.Hour - time.Second)
		if n := a.seen().refused; n < 1000 || n > 3600 {
			t.Errorf("asked %d times in an hour", n)
		}
		a.set(func(f *fake) { f.past = "" })
		if id, err := fetchOne(t.Context(), orders); err != nil || id != 1 {
			t.Errorf("%d, %v", id, err)
		}
	})
}

// A detour sends requests for some paths elsewhere.
type detour struct {
	network
	paths map[string]func(*http.Request)
}

func (d detour) RoundTrip(r *http.Request) (*http.Response, error) {
	for part, first := range d.paths {
		if strings.Contains(r.URL.Path, part) {
			first(r)
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return d.network.RoundTrip(r)
}

// A server is left because one request hangs, and answers an earlier request before it is
// probed: while the hook for leaving it still runs, and while the probe hangs.
func TestAServerThatAnswersAfterItWasLeftIsProbedAndItsErrorReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(r *http.Request) { <-r.Context().Done() }
		n := network{"a": {kind: "sequence", next: 1}}
		cfg := n.config()
		cfg.Timeout, cfg.Wait = 500*time.Millisecond, 900*time.Millisecond
		cfg.HTTP = &http.Client{Transport: detour{n, map[string]func(*http.Request){
			"/ids/slow": hangs,
			"/ids/fast": func(*http.Request) { time.Sleep(350 * time.Millisecond) },
			"/readyz":   hangs,
		}}}
		cfg.Hooks.Server = func(_ string, err error) {
			if err != nil {
				time.Sleep(200 * time.Millisecond)
			}
		}
		c := newClient(t, cfg)
		slow, fast := ids(t, c, "slow"), ids(t, c, "fast")
		answered := make(chan error, 1)
		go func() {
			time.Sleep(300 * time.Millisecond)
			_, err := fetchOne(t.Context(), fast)
			answered <- err
		}()
		_, err := fetchOne(t.Context(), slow)
		if !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), "no answer within 500ms") {
			t.Errorf("%v", err)
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if s := c.State().Servers[0]; s.Up || s.Err == nil {
			t.Errorf("%+v", s)
		}
	})
}
