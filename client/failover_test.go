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

func TestConcurrentCallersGetEveryIDOnceAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, network{"a": {kind: "snowflake", next: 1}}.config())
		orders := ids(t, c, "orders")
		var mu sync.Mutex
		seen := map[firn.ID]bool{}
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				var mine []firn.ID
				few := make([]firn.ID, 1+i)
				for len(mine) < 4000 {
					n, err := orders.Fill(t.Context(), few)
					if err != nil || n != len(few) {
						t.Errorf("%d, %v", n, err)
						return
					}
					mine = append(mine, few...)
					id, err := orders.Next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mine = append(mine, id)
				}
				mu.Lock()
				defer mu.Unlock()
				for i, id := range mine {
					if seen[id] || i > 0 && id <= mine[i-1] {
						t.Errorf("%d came twice, or after a greater id", id)
					}
					seen[id] = true
				}
			})
		}
		group.Wait()
		for id := firn.ID(1); int(id) <= len(seen); id++ {
			if !seen[id] {
				t.Fatalf("%d of %d was lost", id, len(seen))
			}
		}
	})
}

func TestAServerThatFailsIsLeftAndReturnedToWhenItAnswers(t *testing.T) {
	for name, fail := range map[string]func(f *fake, on bool){
		"down":     func(f *fake, on bool) { f.down = on },
		"hanging":  func(f *fake, on bool) { f.hangs = on },
		"draining": func(f *fake, on bool) { f.drains = on },
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := &fake{kind: "snowflake", next: 1}, &fake{kind: "snowflake", next: 1_000_000}
			cfg := network{"a": a, "b": b}.config()
			cfg.Buffer = client.Buffer{Min: 10, Max: 10}
			var calls []string
			var mu sync.Mutex
			cfg.Hooks.Server = func(server string, err error) {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, fmt.Sprint(server, " ", err == nil))
			}
			c := newClient(t, cfg)
			orders := ids(t, c, "orders")
			nextIs(t, orders, 1, 2)
			synctest.Wait()
			if a.seen().ids != 1 || b.seen().ids != 0 {
				t.Errorf("%s: a was asked %d times and b %d, want only a", name, a.seen().ids, b.seen().ids)
			}
			a.set(func(f *fake) { fail(f, true) })
			nextIs(t, orders, 3, 8)
			nextIs(t, orders, 1_000_000, 20)
			if s := c.State().Servers; s[0].Up || s[0].Err == nil || !s[1].Up || s[0].Server != "http://a" {
				t.Errorf("%s: %+v", name, s)
			}
			began, probes := time.Now(), a.seen().probes
			for time.Since(began) < time.Hour {
				time.Sleep(time.Minute)
				orders.Next(t.Context())
			}
			if n := a.seen().probes - probes; name == "draining" && (n < 3600/4 || n > 3600) {
				t.Errorf("%s: probed %d times in an hour", name, n)
			}
			a.set(func(f *fake) { fail(f, false); f.next = 2_000_000 })
			time.Sleep(10 * time.Second)
			if s := c.State().Servers; !s[0].Up || s[0].Down != 0 {
				t.Errorf("%s: %+v", name, s)
			}
			for range 20 {
				orders.Next(t.Context())
			}
			if id, err := orders.Next(t.Context()); id < 2_000_000 || err != nil {
				t.Errorf("%s: the client did not return to the server: %d, %v", name, id, err)
			}
			c.Close()
			if want := []string{"http://a false", "http://a true"}; fmt.Sprint(calls) != fmt.Sprint(want) {
				t.Errorf("%s: hooks were called with %v, want %v", name, calls, want)
			}
		})
	}
}

func TestAnOutageOfAllServersGoesUnnoticedWhileTheBufferLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{kind: "snowflake", next: 1}, &fake{kind: "snowflake", next: 1}
		cfg := network{"a": a, "b": b}.config()
		cfg.Buffer = client.Buffer{Target: time.Minute}
		cfg.Wait = 3 * time.Second
		c := newClient(t, cfg)
		orders := ids(t, c, "orders")
		work := func(d time.Duration) (err error) { // 1,000 a second
			for range int(d / time.Millisecond) {
				time.Sleep(time.Millisecond)
				if _, err = orders.Next(t.Context()); err != nil {
					return err
				}
			}
			return nil
		}
		if err := work(3 * time.Minute); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := stateOf(c, "orders"); s.Size < 55_000 || s.Size > 65_000 || s.Lasts < 40*time.Second || s.Kind != "snowflake" {
			t.Errorf("a minute at 1,000 a second: %+v", s)
		}
		outage := func(on bool) {
			a.set(func(f *fake) { f.down = on })
			b.set(func(f *fake) { f.hangs = on })
		}
		for range 3 {
			outage(true)
			if err := work(44 * time.Second); err != nil {
				t.Fatalf("within the outage: %v", err)
			}
			outage(false)
			if err := work(30 * time.Second); err != nil {
				t.Fatal(err)
			}
		}
		outage(true)
		err := work(2 * time.Minute)
		if !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), "within 3s") ||
			!errors.Is(err, errRefused) || !strings.Contains(err.Error(), "http://a: connection refused") || !strings.Contains(err.Error(), "http://b: no answer within 2s") {
			t.Errorf("in the end: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := orders.Next(short); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, client.ErrUnavailable) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, err := orders.Fetch(short, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		began = time.Now()
		if _, err := orders.Fetch(t.Context(), 1); !errors.Is(err, client.ErrUnavailable) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.Sleep(time.Hour)
		outage(false)
		time.Sleep(3 * time.Second) // the longest wait between probes
		if err := work(time.Minute); err != nil {
			t.Errorf("after the outage: %v", err)
		}
		if a.seen().probes != 4 {
			t.Errorf("%d probes of a server that was down 4 times", a.seen().probes)
		}
	})
}

func TestACallerWithAShortDeadlineReachesASecondServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{kind: "sequence", next: 1, hangs: true}, &fake{kind: "sequence", next: 100}
		c := newClient(t, network{"a": a, "b": b}.config())
		txn := ids(t, c, "txn")
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		if got, err := txn.Fetch(ctx, 3); err != nil || len(got) != 3 || got[0] != 100 || got[2] != 102 {
			t.Errorf("%v, %v", got, err)
		}
		if s := c.State().Servers[0]; s.Up {
			t.Errorf("%+v", s)
		}
		began := time.Now()
		if id, err := fetchOne(t.Context(), txn); err != nil || id != 103 || time.Since(began) > 0 {
			t.Errorf("the second call: %d, %v after %v", id, err, time.Since(began))
		}
	})
}

func TestACallerThatGivesUpEarlyDoesNotBlameTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "sequence", next: 1, held: make(chan struct{})}
		c := newClient(t, network{"a": a}.config())
		txn := ids(t, c, "txn")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := fetchOne(ctx, txn); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if s := c.State().Servers[0]; !s.Up {
			t.Errorf("%+v", s)
		}
		close(a.held)
		if id, err := fetchOne(t.Context(), txn); err != nil || id != 1 {
			t.Errorf("%d, %v", id, err)
		}
	})
}

func TestCloseEndsAllWaitsAndLeavesNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		a := &fake{kind: "snowflake", next: 1, held: make(chan struct{})}
		b := &fake{kind: "snowflake", down: true}
		cfg := network{"a": a, "b": b}.config()
		cfg.Timeout, cfg.Wait = time.Minute, time.Minute
		c, err := client.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		orders, users := ids(t, c, "orders"), ids(t, c, "users")
		failed := make(chan error)
		for range 3 {
			go func() {
				_, err := orders.Next(context.Background())
				failed <- err
			}()
			go func() {
				_, err := users.Fetch(context.Background(), 5)
				failed <- err
			}()
		}
		synctest.Wait()
		go c.Close()
		for range 2 {
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		for range 6 {
			if err := <-failed; !errors.Is(err, firn.ErrClosed) {
				t.Errorf("a call at Close: %v", err)
			}
		}
		close(a.held)
		for what, call := range map[string]func() error{
			"Next":                        func() error { _, err := orders.Next(context.Background()); return err },
			"Fetch":                       func() error { _, err := orders.Fetch(context.Background(), 1); return err },
			"IDs":                         func() error { _, err := c.IDs("more"); return err },
			"a namespace not used before": func() error { _, err := users.Next(context.Background()); return err },
		} {
			if err := call(); !errors.Is(err, firn.ErrClosed) {
				t.Errorf("%s after Close: %v", what, err)
			}
		}
		if _, ok := orders.TryNext(); ok {
			t.Error("an id after Close")
		}
		if _, ok := users.TryNext(); ok {
			t.Error("an id after Close")
		}
	})
}

func TestAReadyServerThatDoesNotAnswerIsAskedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{kind: "snowflake", status: 503, code: "shutting_down"}
		c := newClient(t, network{"a": a}.config())
		if _, err := ids(t, c, "orders").Next(t.Context()); !errors.Is(err, client.ErrUnavailable) {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if n := a.seen().ids; n > 3600 || n < 3600/4 {
			t.Errorf("asked %d times in an hour", n)
		}
	})
}

// lingering is a transport whose requests end a second after their context. If fails is
// set, requests for ids fail at once.
type lingering struct{ fails bool }

func (l lingering) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.fails && r.Method == http.MethodPost {
		return nil, errRefused
	}
	<-r.Context().Done()
	time.Sleep(time.Second)
	return nil, r.Context().Err()
}

func TestCloseWaitsForCallsAndProbesInProgress(t *testing.T) {
	for _, probed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, client.Config{
				Servers: []string{"http://a"}, HTTP: &http.Client{Transport: lingering{probed}}, Timeout: time.Minute,
			})
			orders, ended := ids(t, c, "orders"), false
			go func() {
				_, err := orders.Fetch(context.Background(), 1)
				if ended = true; !errors.Is(err, firn.ErrClosed) {
					t.Error(err)
				}
			}()
			time.Sleep(time.Second) // by then the first probe has begun
			began := time.Now()
			c.Close()
			took := time.Since(began)
			synctest.Wait()
			if !ended || took != time.Second {
				t.Errorf("probed: %v; the call had ended: %v, after %v", probed, ended, took)
			}
		})
	}
}

func TestBufferedIDsAreNotIssuedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, network{"a": {kind: "snowflake", next: 1}, "b": {down: true}}.config())
		orders := ids(t, c, "orders")
		nextIs(t, orders, 1, 3)
		c.Close()
		if id, err := orders.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("%d, %v", id, err)
		}
	})
}

// A server that is starting has no ids: the client leaves it, and probes it until it answers.
// The client does not leave a server that refuses ids of one namespace.
func TestAServerThatStartsIsLeft(t *testing.T) {
	for code, up := range map[string]bool{"starting": false, "too_many_connections": false, "overloaded": true, "fence_reached": true} {
		synctest.Test(t, func(t *testing.T) {
			net := network{"a": {kind: "snowflake", status: 503, code: code}, "b": {kind: "snowflake", next: 1}}
			c := newClient(t, net.config())
			orders := ids(t, c, "orders")
			for range 20 {
				if _, err := fetchOne(t.Context(), orders); err != nil {
					t.Fatal(err)
				}
			}
			if asked := net["a"].seen().ids; asked != 1 || c.State().Servers[0].Up != up {
				t.Errorf("%s: asked %d times, %+v", code, asked, c.State().Servers[0])
			}
		})
	}
}
