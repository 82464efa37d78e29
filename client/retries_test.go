package client_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

func TestTheClientReturnsToAServerThatServesAtLeastOneNamespace(t *testing.T) {
	for code, want := range map[string]bool{"not_ready": true, "overloaded": true, "starting": false, "shutting_down": false, "too_many_connections": false} {
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
						t.Error("an id of a namespace that is refused")
					}
				})
			}
			group.Wait()
			if fresh(users) {
				t.Fatal("another namespace is had elsewhere")
			}
			time.Sleep(100 * time.Millisecond)
		}
		// All ten of the first time; then one alone, after two seconds in the mean.
		if n := a.seen().refused; n < seconds/4 || n > seconds {
			t.Errorf("asked %d times in %d seconds for what it refuses", n, seconds)
		}
		if s := c.State().Servers; !s[0].Up || !s[1].Up {
			t.Errorf("%+v", s)
		}
		a.set(func(f *fake) { f.past, f.unready = "", "" })
		time.Sleep(4 * time.Second) // the longest wait, and its jitter
		for range 2 {
			if fresh(orders) {
				t.Error("it is not had from the first server, which gives it again")
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
