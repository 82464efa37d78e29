package lease

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// closed reports whether the pool is there and newcomers to it wait.
func (w *world) closed() bool {
	w.t.Helper()
	p, err := Inspect(context.Background(), w.mem, "default")
	return err == nil && !p.Open
}

func (w *world) forgets(worker string) { w.mem.Delete("firn/default/slot/0/" + worker) }

func TestNewcomersAreHeldOffBeforeAForgottenSlotIsWritten(t *testing.T) {
	for name, forget := range map[string]func(w *world){
		"wiped":        func(w *world) { w.mem.Restore(nil) },
		"without slot": func(w *world) { w.forgets("0") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			holder := w.start(w.oneWorker)
			forget(w)
			wrote := false
			w.store.Script = func(c storetest.Call) storetest.Outcome {
				if c.Op == storetest.OpCompareAndSwap && strings.Contains(c.Key, "/slot/") {
					wrote = true
					if !w.closed() {
						t.Error("the slot is written while the pool is open, or gone")
					}
				}
				return storetest.Pass
			}
			holder.turn(context.Background())
			if !wrote {
				t.Error("the slot is not written")
			}
		})
	}
}

func TestASlotIsNotWrittenWhereNewcomersCannotBeHeldOff(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.oneWorker)
	w.forgets("0")
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch {
		case c.Op != storetest.OpCompareAndSwap:
		case strings.HasSuffix(c.Key, "/pool"):
			return storetest.Refuse
		default:
			t.Error("the slot is written")
		}
		return storetest.Pass
	}
	if holder.turn(context.Background()) {
		t.Error("the next look is not soon")
	}
	w.store.Script = nil
	if !holder.turn(context.Background()) || !w.closed() {
		t.Errorf("%+v", holder.State())
	}
}

// A newcomer waits for the pool to open since the first loss; at the second, which comes
// meanwhile, it must restart its wait.
func TestASecondLossRestartsTheWait(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.oneWorker)
	w.forgets("0")
	holder.turn(context.Background())
	began := w.time.Wall()
	_, err := w.try(w.oneWorker, func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() {
			w.time.Pass(grace - time.Second)
			w.forgets("0")
			holder.turn(context.Background())
		}}
	})
	if took := w.time.Wall().Sub(began); !errors.Is(err, ErrFull) || took < 2*grace-time.Second {
		t.Errorf("%v after %v", err, took)
	}
}

// A store that stands still while a newcomer waits lets no holder look: the wait counts from
// when it goes on.
func TestAHangingStoreRestartsTheWaitForHolders(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.oneWorker)
	w.mem.Restore(nil)
	stood, looked := false, false
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpGet && strings.HasSuffix(c.Key, "/pool") && !stood {
			stood = true
			w.time.Pass(grace)
		}
		return storetest.Pass
	}
	_, err := w.try(w.oneWorker, func(c *Config) {
		c.Generator.Time = &during{machine: w.time, do: func() {
			if stood && !looked {
				looked = true
				holder.turn(context.Background())
			}
		}}
	})
	if !errors.Is(err, ErrFull) || !looked {
		t.Errorf("%v; the holder has looked: %t", err, looked)
	}
}

// What a newcomer goes by, that a slot was never given back, is gone when its holder has
// given it back. The store may have forgotten other holders of that copy all the same.
func TestAReleaseInAStoreThatWasSetBackHoldsNewcomersOff(t *testing.T) {
	w := newWorld(t)
	two := func(c *Config) { w.shared(c); c.Generator.Layout = layout("41/0/1/12") }
	leaver := w.start(two)
	w.mustTake(leaver, 10)
	older := w.mem.Snapshot()
	holder := w.start(two)
	w.mustTake(holder, 10)
	for range 40 {
		w.time.Pass(3 * time.Second)
		holder.turn(context.Background())
		leaver.turn(context.Background())
	}
	w.mem.Restore(older)
	if err := leaver.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !w.closed() {
		t.Error("the pool is open")
	}
	newcomer := w.start(two, func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { holder.turn(context.Background()) }}
	})
	w.mustTake(newcomer, 10)
	w.mustTake(holder, 10)
}

// A holder whose clock is ahead leaves, and the store forgets it.
func TestNewcomersOutwaitAFormerHolderByAnyTwoClocks(t *testing.T) {
	w := newWorld(t)
	const text = "41/0/0/12"
	leaver := w.start(w.at(nil, 9*time.Second, text))
	w.mustTake(leaver, 10)
	w.pass(leaver, 30*time.Second)
	if err := leaver.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.mem.Restore(nil)
	newcomer := w.start(w.at(nil, -9*time.Second, text))
	for range 30 {
		w.mustTake(newcomer, 5)
		w.time.Pass(time.Second)
		newcomer.turn(context.Background())
	}
}

// A failed claim is undone, so that the worker is not unused for a window.
func TestAFailedClaimLeavesTheWorkerFree(t *testing.T) {
	w := newWorld(t)
	first := w.start(w.oneWorker)
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.forgets("0")
	other, _ := w.slots(t)
	began := w.time.Wall()
	w.start(w.oneWorker, func(c *Config) {
		c.Store = &wiping{Store: c.Store, at: "firn/default/slot/", wipe: func() {
			if err := other.alarm(context.Background()); err != nil {
				t.Error(err)
			}
		}}
	})
	if took := w.time.Wall().Sub(began); took < grace || took > grace+time.Second {
		t.Errorf("it took %v", took)
	}
}

// calledOff cancels the caller's context after the first claim was applied.
type calledOff struct {
	store.Store
	cancel func()
}

func (*calledOff) Traits() store.Traits { return store.Traits{} }

func (c *calledOff) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	e, err := c.Store.CompareAndSwap(ctx, key, old, value)
	if c.cancel != nil && strings.Contains(key, "/slot/") {
		c.cancel()
		c.cancel = nil
		return store.Entry{}, ctx.Err()
	}
	return e, err
}

// The same for a claim that was canceled while its answer was in transit.
func TestACanceledClaimRestoresTheSlot(t *testing.T) {
	for _, used := range []bool{false, true} {
		w := newWorld(t)
		if used {
			first := w.start(w.oneWorker)
			w.mustTake(first, 10)
			must(0, first.Close(context.Background()))
		}
		before := firn.Tick(-1)
		if used {
			before = w.fence()
		}
		ctx, cancel := context.WithCancel(context.Background())
		slots, ask := w.slots(t, func(c *Config) { c.Store = &calledOff{c.Store, cancel} })
		w.time.Pass(time.Second)
		if _, err := slots.Acquire(ctx, ask); !errors.Is(err, context.Canceled) {
			t.Errorf("used %v: %v", used, err)
		}
		p := must(Inspect(context.Background(), w.mem, "default"))
		if used && (len(p.Slots) != 1 || !p.Slots[0].Free || p.Slots[0].Fence != before) || !used && len(p.Slots) != 0 || !p.Open {
			t.Errorf("used %v: %+v, was %d", used, p, before)
		}
	}
}

func TestAStrictWindowHasRoomForRenewalsInUnits(t *testing.T) {
	w := newWorld(t)
	strict := func(window time.Duration) func(*Config) {
		return func(c *Config) {
			w.oneWorker(c)
			c.Generator.Layout = layout("31/0/0/12,unit=10s")
			c.Tolerance, c.Window, c.Strict = time.Second, window, 5*time.Minute
		}
	}
	if _, err := w.try(strict(50 * time.Second)); !errors.Is(err, firn.ErrRange) {
		t.Errorf("50s: %v", err)
	}
	l := w.start(strict(56 * time.Second))
	for range 200 {
		w.mustTake(l, 1)
		w.time.Pass(3 * time.Second)
		l.turn(context.Background())
	}
	if s := l.State(); s.Losses != 0 || s.Renewals == 0 {
		t.Errorf("%+v", s)
	}
}

// busy is a source whose first worker is lost, and whose store hangs when another worker
// is acquired because of that.
type busy struct {
	Source
	lost, hangs bool
}

func (b *busy) Look(ctx context.Context, held firn.Grant) error {
	if b.lost {
		return ErrLost
	}
	return b.Source.Look(ctx, held)
}

func (b *busy) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	if b.hangs {
		b.hangs = false
		<-ctx.Done()
		return firn.Grant{}, ctx.Err()
	}
	return b.Source.Acquire(ctx, ask)
}

// After a switch the new worker is looked at like any other.
func TestTheSearchForAWorkerEndsWhenThereIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		slots, err := newPoolSource(Config{Store: memstore.New(nil)})
		if err != nil {
			t.Fatal(err)
		}
		source := &busy{Source: slots}
		l, err := start(t.Context(), source, Config{})
		if err != nil {
			t.Fatal(err)
		}
		first := l.State().Worker
		source.lost, source.hangs = true, true
		began := time.Now()
		done := make(chan bool)
		go func() { done <- l.turn(context.Background()) }()
		synctest.Wait()
		time.Sleep(time.Second)
		grant, err := l.switchWorker(t.Context(), l.gen.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.gen.Replace(grant); err != nil {
			t.Fatal(err)
		}
		<-done
		if s := l.State(); time.Since(began) != time.Second || s.Worker == first || s.Errors != 0 {
			t.Errorf("it ended after %v: %+v", time.Since(began), s)
		}
	})
}

// beside is a machine whose wall clock is off. While it sleeps, other processes run.
type beside struct {
	skewed
	others func()
}

func (b beside) Sleep(ctx context.Context, d time.Duration) error {
	for ; d > 0; d -= time.Second {
		if err := b.skewed.Sleep(ctx, min(d, time.Second)); err != nil {
			return err
		}
		b.others()
	}
	return nil
}

// Where windows are shorter than clocks may differ by, all fences lie in the past of who
// is ahead. A clock within the tolerance is no reason to hold others off; one that nothing
// tells that it is wrong holds them off once.
func TestAClockAheadByMoreThanAWindowDoesNotKeepOut(t *testing.T) {
	for by, most := range map[time.Duration]time.Duration{2 * defaultTolerance: 0, time.Hour: grace} {
		w := newWorld(t)
		short := func(c *Config) { c.Window = 2 * time.Second }
		holder := w.start(short)
		began := w.time.Wall()
		newcomer := w.start(short, func(c *Config) {
			c.Generator.Time = beside{skewed{w.time, by}, func() { holder.turn(context.Background()) }}
		})
		if took := w.time.Wall().Sub(began); took > most {
			t.Errorf("%v ahead: the worker came after %v, want %v at most", by, took, most)
		}
		w.mustTake(newcomer, 1)
		w.mustTake(holder, 1)
	}
}

// A holder with such a lead that has left and is forgotten may have used ticks from which the claims of
// newcomers begin. A strict pool outwaits its fence.
func TestALeadBeyondTheToleranceIsRefusedUnlessThePoolIsStrict(t *testing.T) {
	ahead := func(ticks int64) func(*Config) {
		return func(c *Config) {
			c.Generator.Clock, c.Generator.Rollback = firn.ClockWall, firn.Rollback{firn.RunAhead(ticks)}
		}
	}
	lead := func(d time.Duration) func(*Config) { return func(c *Config) { c.Generator.Ahead = d } }
	strict := func(c *Config) {
		c.Window, c.Strict, c.Store = 5*time.Minute, 6*time.Minute, remote{c.Store, c.Generator.Time.Wall, nil}
	}
	for name, c := range map[string]struct {
		change []func(*Config)
		want   string
	}{
		"the policy ahead":              {[]func(*Config){ahead(10_000)}, ""},
		"the policy ahead, by more":     {[]func(*Config){ahead(10_001)}, "Config.Generator.Rollback: lead 10.001s is out of range: 0s to 10s are allowed"},
		"Ahead, and 2ms":                {[]func(*Config){lead(9998 * time.Millisecond)}, ""},
		"Ahead by more":                 {[]func(*Config){lead(9999 * time.Millisecond)}, "ahead 9.999s is out of range: 0s to 9.998s are allowed"},
		"the policy, in a strict pool":  {[]func(*Config){ahead(10_001), strict}, ""},
		"with the tolerance of an hour": {[]func(*Config){ahead(3_600_000), func(c *Config) { c.Tolerance = time.Hour }}, ""},
	} {
		w := newWorld(t)
		_, err := w.try(c.change...)
		if outside := (*firn.RangeError)(nil); errors.As(err, &outside) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) || outside != nil && outside.Field != "Ahead" && outside.Field != "Rollback" {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A distantStore answers after 5 ms of a bubble.
type distantStore struct{ *memstore.Store }

func (s distantStore) Get(ctx context.Context, key string) (store.Entry, error) {
	time.Sleep(5 * time.Millisecond)
	return s.Store.Get(ctx, key)
}

func (s distantStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	time.Sleep(5 * time.Millisecond)
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

// bubbleLayout is a layout for the times of bubbles.
func bubbleLayout(t *testing.T) firn.Layout {
	t.Helper()
	layout, err := firn.ParseLayout("41/0/10/12,epoch=2000-01-01")
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// A look that finds its slot forgotten may be the one that moves the fence, and with a short window the next one comes too late.
func TestAWipeCostsNoHolderThatReachesTheStoreItsWorker(t *testing.T) {
	layout := bubbleLayout(t)
	for _, window := range []time.Duration{2 * time.Second, 10 * time.Second, 12 * time.Second} {
		for at := range 40 {
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New(nil)
				l, err := Open(t.Context(), Config{Store: distantStore{mem}, Window: window, Generator: firn.Config{Layout: layout}})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(20*time.Second + time.Duration(at)*window/40)
				mem.Restore(nil)
				for wiped := time.Now(); time.Since(wiped) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
					if _, err := l.Next(t.Context()); err != nil {
						t.Errorf("window %v, wiped %d/40 of it after 20s: %v later: %v", window, at, time.Since(wiped), err)
						break
					}
				}
				if s := l.State(); s.Losses != 0 || s.SetBacks != 1 {
					t.Errorf("window %v, wiped %d/40 of it after 20s: %+v", window, at, s)
				}
				if err := l.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A failingStore refuses writes, and goes away for good once it has taken that of a slot again.
type failingStore struct {
	*memstore.Store
	refuses, away, ends atomic.Bool
}

func (s *failingStore) Get(ctx context.Context, key string) (store.Entry, error) {
	if s.away.Load() {
		return store.Entry{}, store.ErrUnavailable
	}
	return s.Store.Get(ctx, key)
}

func (s *failingStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if s.away.Load() || s.refuses.Load() {
		return store.Entry{}, store.ErrUnavailable
	}
	e, err := s.Store.CompareAndSwap(ctx, key, old, value)
	if err == nil && strings.Contains(key, "/slot/") && s.ends.Load() {
		s.away.Store(true)
	}
	return e, err
}

// A slot that was forgotten, and is written again, stands as it should: its holder goes on up to the fence.
func TestAHolderWhoseSlotIsThereAgainGoesOnWhileTheStoreIsAway(t *testing.T) {
	for _, wiped := range []time.Duration{22 * time.Second, 26 * time.Second, 29 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &failingStore{Store: memstore.New(nil)}
			l, err := Open(t.Context(), Config{Store: s, Window: time.Minute, Generator: firn.Config{Layout: bubbleLayout(t)}})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(wiped)
			s.refuses.Store(true)
			s.Restore(nil)
			time.Sleep(4 * time.Second)
			s.ends.Store(true)
			s.refuses.Store(false)
			time.Sleep(2 * time.Second)
			for until := l.State().Until.Add(-time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
				if _, err := l.Next(t.Context()); err != nil {
					t.Errorf("wiped at %v: %v before the fence: %v", wiped, time.Until(l.State().Until), err)
					break
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := l.Close(ctx); err == nil {
				t.Error("the store was not away")
			}
		})
	}
}
