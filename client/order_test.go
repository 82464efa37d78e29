package client_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// growing takes count ids, each of which must be greater than the one before.
func growing(t *testing.T, n *client.Namespace[firn.ID], last firn.ID, count int) firn.ID {
	t.Helper()
	for range count {
		id, err := n.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("%d after %d", id, last)
		}
		last = id
	}
	return last
}

func TestIDsDoNotGoBackWhenTheServerChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{kind: "snowflake", next: 1_000_000}, &fake{kind: "snowflake", next: 1_000}
		cfg := network{"a": a, "b": b}.config()
		cfg.Buffer = client.Buffer{Min: 10, Max: 10}
		c := newClient(t, cfg)
		orders := ids(t, c, "orders")
		last := growing(t, orders, 0, 20)
		a.set(func(f *fake) { f.down = true })
		time.AfterFunc(time.Second, func() { b.set(func(f *fake) { f.next = 1_000_005 }) }) // as its clock goes on
		time.AfterFunc(time.Second/2, func() {
			if s := c.State().Servers[1]; !s.Up {
				t.Errorf("the client left a server that answers: %+v", s)
			}
		})
		last = growing(t, orders, last, 100)
		if s := stateOf(c, "orders"); s.Dropped == 0 || last > 1_002_000 {
			t.Errorf("%+v, last %d", s, last)
		}
	})
}

func TestAnotherServersSegmentsAreSkippedUpToTheLastIDAndTheServerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{kind: "segment", next: 3_000_000}, &fake{kind: "segment", next: 1}
		cfg := network{"a": a, "b": b}.config()
		cfg.Buffer = client.Buffer{Min: 10, Max: 10}
		c := newClient(t, cfg)
		users := ids(t, c, "users")
		last := growing(t, users, 0, 20)
		a.set(func(f *fake) { f.down = true })
		last = growing(t, users, last, 20)
		if last > 3_000_100 {
			t.Errorf("the client skipped more ids than it needed: up to %d", last)
		}
		a.set(func(f *fake) { f.down, f.next = false, 2_000 })
		time.Sleep(time.Minute)
		asked := a.seen().ids
		growing(t, users, last, 100)
		if a.seen().ids != asked {
			t.Error("the client changed to a server with other ranges, though its own answers")
		}
		if s := stateOf(c, "users"); s.Dropped < 2_999_000 {
			t.Errorf("%+v", s)
		}
	})
}

func TestIDsAreTakenAsTheyComeWithAnyOrderOrIfTheyDoNotGrow(t *testing.T) {
	for name, a := range map[string]*fake{
		"any order": {kind: "segment", next: 1000},
		"veiled":    {kind: "snowflake", next: 1000, more: `,"veil":"63 bits"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := network{"a": a}.config()
			cfg.Buffer = client.Buffer{Min: 10, Max: 10, AnyOrder: name == "any order"}
			c := newClient(t, cfg)
			users := ids(t, c, "users")
			nextIs(t, users, 1000, 1)
			a.set(func(f *fake) { f.next = 1 })
			nextIs(t, users, 1001, 9)
			nextIs(t, users, 1, 10)
		})
	}
}

func TestIDsOfANameMadeOnFirstUseDoNotGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{made: "segment", next: 1_001}, &fake{made: "segment", next: 1}
		cfg := network{"a": a, "b": b}.config()
		cfg.Buffer = client.Buffer{Min: 10, Max: 10}
		c := newClient(t, cfg)
		users := ids(t, c, "users")
		last := growing(t, users, 0, 2)
		synctest.Wait()
		b.set(func(f *fake) { f.kind, f.next = "segment", 5 }) // made by another client
		a.set(func(f *fake) { f.down = true })
		growing(t, users, last, 28)
	})
}

func TestANameMadeByAServerThatIsThenLostIsAskedOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kind := range []string{"sequence", "segment"} {
			a, b := &fake{made: kind, next: 1}, &fake{made: kind, next: 1_000}
			cfg := network{"a": a, "b": b}.config()
			cfg.Hooks.Request = func(r client.Request) {
				if r.Server == "http://a" && r.Count > 0 && r.Err == nil {
					a.set(func(f *fake) { f.down = true }) // right after its first ids
				}
			}
			names := ids(t, newClient(t, cfg), "names")
			switch id, err := names.Next(t.Context()); {
			case kind == "segment" && (err != nil || id <= 1_000):
				t.Errorf("%d, %v", id, err)
			case kind == "sequence" && !errors.Is(err, client.ErrKind):
				t.Errorf("a sequence was buffered: %d, %v", id, err)
			}
			if counts := b.seen().counts; len(counts) == 0 || counts[0] != 1 {
				t.Errorf("%s: it asked for %v ids, want 1 to learn the kind", kind, counts)
			}
		}
	})
}

// An address may lead to several servers, of which one makes the name, and another does not know it yet.
func TestAServerThatDoesNotKnowTheNameThatItGivesIDsOfIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{made: "segment", next: 1}
		cfg := network{"a": a}.config()
		asked := 0
		cfg.Hooks.Request = func(r client.Request) {
			if r.Count > 0 && asked < 2 {
				asked++
				a.set(func(f *fake) { f.kind = "" }) // the next answer is another server's
			}
		}
		nextIs(t, ids(t, newClient(t, cfg), "users"), 4, 10)
	})
}

// A request for ids that is denied says nothing of the namespace's kind, which may be read later.
func TestAKindIsAskedForAgainAfterADeniedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{status: http.StatusForbidden, code: "forbidden", next: 1}
		cfg := network{"a": f}.config()
		cfg.Buffer.AnyKind = true
		c := newClient(t, cfg)
		users := ids(t, c, "users")
		if _, err := users.Next(t.Context()); !errors.Is(err, client.ErrDenied) {
			t.Fatal(err)
		}
		f.set(func(f *fake) { f.kind, f.status = "snowflake", 0 }) // it is made, and allowed
		time.Sleep(5 * time.Minute)
		if _, err := users.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := stateOf(c, "users").Kind; got != "snowflake" {
			t.Errorf("its kind is %q", got)
		}
	})
}
