package lease

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// waited is how the wait for worker 0, pinned, went.
type waited struct {
	grant firn.Grant
	took  time.Duration
	gets  int
	log   string
}

// waitBeside acquires worker 0 while another holds it, and has do called at every part of
// the wait.
func (w *world) waitBeside(t *testing.T, do func(since time.Duration)) waited {
	t.Helper()
	var log bytes.Buffer
	began, gets, worker := w.time.Wall(), w.store.Counts().Get, int64(0)
	s, ask := w.slots(t, func(c *Config) {
		c.Pinned = &worker
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Generator.Time = &during{machine: w.time, do: func() { do(w.time.Wall().Sub(began)) }}
	})
	g, err := s.Acquire(context.Background(), ask)
	if err != nil {
		t.Fatal(err)
	}
	return waited{g, w.time.Wall().Sub(began), w.store.Counts().Get - gets, log.String()}
}

// hold acquires worker 0, with a window of a minute.
func (w *world) hold(t *testing.T) (*poolSource, firn.Grant) {
	t.Helper()
	s, ask := w.slots(t)
	g, err := s.Acquire(context.Background(), ask)
	if err != nil {
		t.Fatal(err)
	}
	return s, g
}

// once calls do the first time that it is called at some time or later.
func once(at time.Duration, do func()) func(time.Duration) {
	return func(since time.Duration) {
		if since >= at && do != nil {
			do()
			do = nil
		}
	}
}

func TestAReleasedPinnedWorkerIsTakenAtOnce(t *testing.T) {
	ctx := context.Background()
	for name, also := range map[string]bool{"by its holder": false, "and taken and given back by a third": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			holder, held := w.hold(t)
			third, ask := w.slots(t)
			var last firn.Tick
			got := w.waitBeside(t, once(10*time.Second, func() {
				last = ask().Now - 1
				if err := holder.Release(ctx, held, last); err != nil {
					t.Error(err)
				}
				if !also {
					return
				}
				g, err := third.Acquire(ctx, ask)
				if err != nil {
					t.Error(err)
				}
				last = g.After
				if err := third.Release(ctx, g, g.After); err != nil {
					t.Error(err)
				}
			}))
			if got.took > 13*time.Second {
				t.Errorf("given back after 10s, taken after %v", got.took)
			}
			if got.gets > 14 { // one a second at most, and the last of each of two claims
				t.Errorf("%d reads in %v", got.gets, got.took)
			}
			if got.grant.After < last {
				t.Errorf("granted from tick %d on, used up to %d", got.grant.After+1, last)
			}
		})
	}
}

func TestAWaitForAPinnedWorkerFollowsRenewals(t *testing.T) {
	w := newWorld(t)
	holder, held := w.hold(t)
	_, ask := w.slots(t)
	got := w.waitBeside(t, once(30*time.Second, func() {
		var err error
		if held, err = holder.Renew(context.Background(), held, ask()); err != nil {
			t.Error(err)
		}
	}))
	if got.took < 90*time.Second || got.took > 91*time.Second || got.grant.After != held.Through {
		t.Errorf("granted %+v after %v; the renewed grant was %+v", got.grant, got.took, held)
	}
	if n := strings.Count(got.log, "pinned worker"); n != 1 {
		t.Errorf("%d lines in the log, want one:\n%s", n, got.log)
	}
}

// Once the fence has passed, the store alone says whether the worker is free: its slot is read with the
// pool, and not once more before.
func TestAShortWaitForAPinnedWorkerReadsNoSlot(t *testing.T) {
	w := newWorld(t)
	holder, held := w.hold(t)
	w.time.Set(holder.rules.idleAt(Slot{Fence: held.Through}).Add(-minWaitLook / 2))
	if got := w.waitBeside(t, func(time.Duration) {}); got.took < minWaitLook/2 || got.took > minWaitLook || got.gets != 1 { // the last of the claim
		t.Errorf("granted %+v after %v and %d reads", got.grant, got.took, got.gets)
	}
}

func TestAWaitForAPinnedWorkerLooksEveryTwoSecondsAtLeast(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	holder, held := w.hold(t)
	worker, began := int64(0), w.time.Wall()
	s, ask := w.slots(t, func(c *Config) {
		c.Pinned, c.Generator.Random = &worker, func() uint64 { return uint64(2*time.Second - 1) }
		c.Generator.Time = &during{machine: w.time, do: func() { must(0, holder.Release(ctx, held, held.After)) }}
	})
	must(s.Acquire(ctx, ask))
	if took := w.time.Wall().Sub(began); took > 2*time.Second {
		t.Errorf("given back at once, taken after %v", took)
	}
}

// The holder continues up to its fence, and has not looked yet.
func TestAForgetfulStoreDoesNotShortenTheWaitForAPinnedWorker(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	before, old := w.hold(t)
	if err := before.Release(ctx, old, old.After); err != nil {
		t.Fatal(err)
	}
	older := w.mem.Snapshot()
	for name, do := range map[string]func(){
		"wiped":                 func() { w.mem.Restore(nil) },
		"set back":              func() { w.mem.Restore(older) },
		"without the slot":      func() { w.mem.Delete(slotKey("default", layout("41/0/0/12"), 0, 0)) },
		"away for half a while": func() { w.store.SetDown(true) },
	} {
		t.Run(name, func(t *testing.T) {
			w.time.Pass(2 * time.Minute)
			_, held := w.hold(t)
			fail := once(10*time.Second, do)
			mend := once(40*time.Second, func() { w.store.SetDown(false) })
			got := w.waitBeside(t, func(since time.Duration) { fail(since); mend(since) })
			if got.took < time.Minute || got.took > time.Minute+time.Second+grace || got.grant.Worker != held.Worker {
				t.Errorf("granted %+v after %v; its holder has %+v", got.grant, got.took, held)
			}
			want := 1
			if name == "away for half a while" {
				want = 2 // and no more, though many looks failed
			}
			if n := strings.Count(got.log, "pinned worker"); n != want {
				t.Errorf("%d lines in the log, want %d:\n%s", n, want, got.log)
			}
		})
	}
}

// The store is not needed before the fence has passed, and may as well not answer until then.
func TestAReadThatHangsDoesNotProlongTheWaitForAPinnedWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		worker, hangs := int64(0), &deafTo{Store: memstore.New(nil)}
		cfg := Config{Store: hangs, Pinned: &worker, Generator: firn.Config{Layout: layout("41/0/0/12")}}
		holder, s := must(newPoolSource(cfg)), must(newPoolSource(cfg))
		ask := func() Ask {
			now := must(cfg.Generator.Layout.Tick(time.Now()))
			return Ask{Now: now, From: now + 1, Window: 10_000}
		}
		must(holder.Acquire(t.Context(), ask))
		began := time.Now()
		hangs.key = theSlot
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if _, err := s.Acquire(ctx, ask); err != nil || time.Since(began) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A caller that gives up while the slot is read is no failure of the store.
func TestAWaitThatEndsDuringAReadLogsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		var log bytes.Buffer
		worker, hangs := int64(0), &deafTo{Store: memstore.New(nil)}
		cfg := Config{Store: hangs, Pinned: &worker, Log: slog.New(slog.NewTextHandler(&log, nil)), Generator: firn.Config{Layout: layout("41/0/0/12")}}
		holder, s := must(newPoolSource(cfg)), must(newPoolSource(cfg))
		ask := func() Ask {
			now := must(cfg.Generator.Layout.Tick(time.Now()))
			return Ask{Now: now, From: now + 1, Window: 60_000}
		}
		must(holder.Acquire(t.Context(), ask))
		hangs.key = theSlot
		ctx, cancel := context.WithTimeout(t.Context(), maxWaitLook+minWaitLook/2)
		defer cancel()
		if _, err := s.Acquire(ctx, ask); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(log.String(), "cannot be read") {
			t.Errorf("%v: %s", err, log.String())
		}
	})
}

// The older record has the later time.
func TestAnOlderCopyIsDetectedWhateverTheClocksShow(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	before, ask := w.slots(t, func(c *Config) { c.Generator.Time = &during{machine: w.time, offset: 5 * time.Second, do: func() {}} })
	old, err := before.Acquire(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Release(ctx, old, old.After); err != nil {
		t.Fatal(err)
	}
	older := w.mem.Snapshot()
	w.time.Pass(6 * time.Second)
	_, held := w.hold(t)
	if held.Worker != old.Worker {
		t.Fatalf("worker %d, want %d", held.Worker, old.Worker)
	}
	got := w.waitBeside(t, once(10*time.Second, func() { w.mem.Restore(older) }))
	if got.took < time.Minute || got.took > time.Minute+time.Second {
		t.Errorf("granted %+v after %v; its holder has %+v", got.grant, got.took, held)
	}
}

func TestForeignContentEndsTheWaitForAPinnedWorker(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.hold(t)
	key, worker := slotKey("default", layout("41/0/0/12"), 0, 0), int64(0)
	spoil := once(5*time.Second, func() {
		w.mem.Delete(key)
		if _, err := w.mem.CompareAndSwap(ctx, key, 0, []byte("{}")); err != nil {
			t.Error(err)
		}
	})
	began := w.time.Wall()
	s, ask := w.slots(t, func(c *Config) {
		c.Pinned = &worker
		c.Generator.Time = &during{machine: w.time, do: func() { spoil(w.time.Wall().Sub(began)) }}
	})
	if _, err := s.Acquire(ctx, ask); !errors.Is(err, store.ErrForeign) || w.time.Wall().Sub(began) > 10*time.Second {
		t.Errorf("after %v: %v", w.time.Wall().Sub(began), err)
	}
}

// The slot that a process waits for after another look, if it saw write 5 and fence 100 before.
func TestAnOlderCopyOfASlotShortensNoWait(t *testing.T) {
	w := newWorld(t)
	s, _ := w.slots(t, func(c *Config) { c.Generator.Layout = layout("41/0/4/12") })
	const theSlot = "firn/default/slot/0/03"
	seen := Slot{Worker: 3, Owner: "holder", Fence: 100, Write: 5}
	for _, c := range []struct {
		write uint64
		fence firn.Tick
		free  bool
		want  firn.Tick
	}{
		{5, 100, false, 100}, {6, 90, true, 90}, {6, 200, false, 200}, {6, -1, true, 100},
		{5, 99, false, 100}, {4, 99, true, 100}, {4, 100, false, 100}, {4, 101, false, 101}, {5, 101, false, 101},
	} {
		w.put(theSlot, must(register.Encode(Slot{Fence: c.fence, Owner: "found", Free: c.free, Write: c.write})))
		got, err := s.lookFor(context.Background(), seen)
		if err != nil || got.Fence != c.want || got.Worker != seen.Worker || (got.Owner == "found") != (got.Write == c.write && c.fence >= 0 && c.want == c.fence) {
			t.Errorf("%+v: waits for %+v, %v", c, got, err)
		}
	}
	w.mem.Delete(theSlot)
	if got, err := s.lookFor(context.Background(), seen); err != nil || got != seen {
		t.Errorf("gone: %+v, %v", got, err)
	}
	w.put(theSlot, []byte("{"))
	if got, err := s.lookFor(context.Background(), seen); !errors.Is(err, store.ErrForeign) || got != seen {
		t.Errorf("something else: %+v, %v", got, err)
	}
}

// Its holder may go, and another come, for as long as they like: the wait ends with its
// context.
func TestAWaitForAPinnedWorkerHasNoTimeoutOfItsOwn(t *testing.T) {
	w := newWorld(t)
	worker, others := int64(0), 0
	s, ask := w.slots(t, func(c *Config) {
		c.Pinned, c.Generator.Time = &worker, w.time
		c.Store = &scripted{Store: w.mem, call: func(what, _ string) error {
			if what == "list" && others < 2*maxTries {
				others++
				now := must(layout("41/0/0/12").Tick(w.time.Wall()))
				w.put(theSlot, must(register.Encode(Slot{Fence: now + 100, Owner: "another"})))
			}
			return nil
		}}
	})
	if _, err := s.Acquire(context.Background(), ask); err != nil || others != 2*maxTries {
		t.Errorf("after %d others: %v", others, err)
	}
}
