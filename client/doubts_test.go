package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// hooked records the calls of the hook Server.
func hooked(cfg *client.Config) (told func() string) {
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
			told := hooked(&cfg)
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
			time.Sleep(2 * time.Second) // of the probe
			synctest.Wait()
			if s := c.State().Servers[0]; s.Up || s.Requests != 3 || s.Failed != 3 || told() != "[http://a false]" {
				t.Errorf("%+v, and hooks were told %v", s, told())
			}
			a.set(func(f *fake) { f.hangs = false })
			time.Sleep(6 * time.Second) // the probe under way, and the longest wait
			if s := c.State().Servers[0]; !s.Up || told() != "[http://a false http://a true]" {
				t.Errorf("%+v, and hooks were told %v", s, told())
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
		told := hooked(&cfg)
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
			t.Errorf("when it has answered: %d, %v", id, err)
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
		if s := c.State().Servers; !s[0].Up || !s[1].Up || told() != "[]" {
			t.Errorf("%+v, and hooks were told %v", s, told())
		}
		if n := a.seen().probes + b.seen().probes; n > 4*100 {
			t.Errorf("%d probes in four seconds", n)
		}
		time.Sleep(4 * time.Second) // the longest wait for a probe, and its jitter
		before := c.State().Servers[1].Requests
		if _, err := fetchOne(t.Context(), txn); err != nil || c.State().Servers[1].Requests != before {
			t.Errorf("%v; the second server had it", err)
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
