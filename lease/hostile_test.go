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

// Cases that a hostile reviewer found.

// An operator takes the only worker back, and its holder goes on up to its fence;
// then the store is wiped.
func TestAHolderThatGoesOnUpToItsFenceIsNotForgotten(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.oneWorker)
	w.mustTake(holder, 10)
	must(Reclaim(context.Background(), w.mem, "default", 0, 0, time.Time{}))
	holder.turn(context.Background()) // the pool is full
	w.mustTake(holder, 10)
	w.mem.Restore(nil)
	newcomer, err := w.try(w.oneWorker, func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() {
			_ = holder.source.Look(context.Background(), holder.grant) // its search for another worker waits, too
		}}
	})
	for range 40 {
		w.time.Pass(time.Second)
		_ = w.take(holder, 5)
		if err == nil {
			_ = w.take(newcomer, 5)
		}
	}
}

// The former holder had run ahead of its clock.
func TestNewcomersOutwaitAFormerHolderThatWasAheadOfItsClock(t *testing.T) {
	for _, lead := range []time.Duration{0, 5 * time.Second, 9 * time.Second} {
		w := newWorld(t)
		const text = "41/0/0/2"
		ahead := func(c *Config) { c.Generator.Ahead = lead }
		leaver := w.start(w.at(nil, 9999*time.Millisecond, text), ahead)
		for range 30 {
			w.time.Pass(time.Second)
			w.mustTake(leaver, 10)
			leaver.turn(context.Background())
		}
		n := 20
		if lead > 0 {
			n = int(lead/time.Millisecond) * 4
		}
		w.mustTake(leaver, n) // a burst
		must(0, leaver.Close(context.Background()))
		w.mem.Restore(nil)
		newcomer := w.start(w.at(nil, -9999*time.Millisecond, text), ahead)
		for range 30 {
			w.mustTake(newcomer, 5)
			w.time.Pass(time.Second)
			newcomer.turn(context.Background())
		}
	}
}

// The store is set back to an earlier claim, or its end, of the same process.
func TestFindingAnEarlierOwnClaimMeansTheStoreWasSetBack(t *testing.T) {
	for _, free := range []bool{false, true} {
		ctx := context.Background()
		w := newWorld(t)
		s, ask := w.slots(t, func(c *Config) { c.Store = remote{c.Store, w.time.Wall, nil} })
		first := must(s.Acquire(ctx, ask))
		copied := w.mem.Snapshot()
		w.time.Pass(time.Second)
		must(0, s.Release(ctx, first, ask().Now))
		if free {
			copied = w.mem.Snapshot()
		}
		w.time.Pass(time.Second)
		second := must(s.Acquire(ctx, ask))
		must(0, s.Release(ctx, second, ask().Now))
		w.time.Pass(time.Second)
		held := must(s.Acquire(ctx, ask))
		w.mem.Restore(copied)
		if err := s.Look(ctx, held); err != nil || !w.closed() || w.fence() != held.Through {
			t.Errorf("free %v: %v; closed %v, fence %d of %d", free, err, w.closed(), w.fence(), held.Through)
		}
	}
}

// A holder comes back after its fence, to a copy that has forgotten its renewal and the next
// holder of the worker.
func TestAnOldOwnCopyAfterTheFenceIsALoss(t *testing.T) {
	w := newWorld(t)
	const text = "41/0/0/12"
	late := w.start(w.at(nil, -9*time.Second, text))
	w.mustTake(late, 10)
	copied := w.mem.Snapshot()
	w.pass(late, 48*time.Second) // renews
	if late.State().Renewals == 0 {
		t.Fatal("not renewed")
	}
	w.time.Pass(95 * time.Second)
	other := w.start(w.at(nil, 9*time.Second, text))
	w.pass(other, 30*time.Second)
	w.mem.Restore(copied)
	for range 2 {
		late.turn(context.Background())
	}
	_ = w.take(late, 10)
	for range 20 {
		w.time.Pass(time.Second)
		_ = w.take(late, 10)
	}
}

// Only a strict process joins a closed pool that is not strict.
func TestAStrictProcessOpensAClosedPoolThatIsNotStrict(t *testing.T) {
	w := newWorld(t)
	one := func(c *Config) { w.oneWorker(c); c.Tolerance = 2 * time.Second }
	holder := w.start(one)
	w.mustTake(holder, 10)
	w.mem.Restore(nil)
	holder.turn(context.Background())
	must(0, holder.Close(context.Background()))
	w.time.Pass(time.Hour)
	l, err := w.try(one, func(c *Config) { c.Strict = 2 * time.Minute })
	if err != nil {
		t.Fatal(err)
	}
	w.mustTake(l, 10)
}

// silent is a source whose store does not answer any more.
type silent struct {
	Source
	hangs bool
}

func (s *silent) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	if s.hangs {
		<-ctx.Done()
		return firn.Grant{}, store.ContextError(ctx)
	}
	return s.Source.Acquire(ctx, ask)
}

// The clock goes back while the store is silent: Next has no context.
func TestASwitchTimesOutIfTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		slots := must(newPoolSource(Config{Store: memstore.New(nil)}))
		source := &silent{Source: slots}
		l := must(start(t.Context(), source, Config{}))
		source.hangs = true
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() { _, err := l.switchWorker(ctx, l.gen.Now()); done <- err }()
		select {
		case err := <-done:
			if err == nil {
				t.Error("granted")
			}
		case <-time.After(time.Hour):
			t.Error("it waits for ever")
			cancel()
			<-done
		}
	})
}

// A store takes a good second a call. Its holders notice what it has forgotten.
func TestAHolderOfASlowStoreHoldsNewcomersOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		mem := memstore.New(nil)
		faulty := storetest.NewFaulty(mem)
		var delay atomic.Int64
		faulty.Script = func(storetest.Call) storetest.Outcome { time.Sleep(time.Duration(delay.Load())); return storetest.Pass }
		l := must(Open(t.Context(), Config{Store: remote{impatient{faulty}, time.Now, nil}}))
		defer l.Close(context.Background())
		delay.Store(int64(1200 * time.Millisecond))
		mem.Restore(nil)
		time.Sleep(grace)
		p, err := Inspect(context.Background(), mem, "default")
		if err != nil || p.Open || len(p.Slots) == 0 {
			t.Errorf("%+v %v", p, err)
		}
	})
}

// impatient returns when its caller's timeout has passed.
type impatient struct{ store.Store }

func (impatient) Traits() store.Traits { return store.Traits{} }

func (i impatient) Get(ctx context.Context, key string) (store.Entry, error) {
	e, err := i.Store.Get(ctx, key)
	if ctx.Err() != nil {
		return store.Entry{}, store.ContextError(ctx)
	}
	return e, err
}

func (i impatient) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	e, err := i.Store.CompareAndSwap(ctx, key, old, value)
	if ctx.Err() != nil {
		return store.Entry{}, store.ContextError(ctx)
	}
	return e, err
}

// A process that takes another worker asks like a newcomer.
func TestAnotherWorkerStartsBeyondTheLead(t *testing.T) {
	for _, clock := range []firn.ClockKind{firn.ClockSteady, firn.ClockWall} {
		w := newWorld(t)
		two := func(c *Config) {
			w.shared(c)
			c.Generator.Layout, c.Generator.Clock = layout("41/0/1/12"), clock
			c.Generator.Ahead = 5 * time.Second
		}
		holder := w.start(two)
		w.mustTake(holder, 10)
		w.time.Pass(10 * time.Second)
		must(Reclaim(context.Background(), w.mem, "default", 0, holder.State().Worker, time.Time{}))
		holder.turn(context.Background())
		now := holder.gen.Now()
		if holder.State().Losses != 1 || holder.grant.After < now+5000 {
			t.Errorf("%v: %+v begins after %d, now is %d", clock, holder.State(), holder.grant.After, now)
		}
		w.mustTake(holder, 10)
	}
}

// The same, while the holder of a fixed worker waits for that.
func TestAHolderThatWaitsForItsWorkerIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		mem := memstore.New(nil)
		cfg := Config{Store: remote{mem, time.Now, nil}, Generator: firn.Config{Layout: layout("41/0/0/12")}}
		fixed := cfg
		fixed.Pinned = new(int64)
		holder := must(Open(t.Context(), fixed))
		defer holder.Close(context.Background())
		time.Sleep(time.Minute)
		must(Reclaim(t.Context(), mem, "default", 0, 0, time.Time{}))
		time.Sleep(5 * time.Second)
		mem.Restore(nil)
		newcomer, err := Open(t.Context(), cfg)
		if err == nil {
			defer newcomer.Close(context.Background())
		}
		if s := holder.State(); !errors.Is(err, ErrFull) || s.Losses != 1 || s.Errors != 0 || s.Err != nil {
			t.Errorf("%v; %+v", err, s)
		}
		for range 400 {
			time.Sleep(time.Second)
			must(holder.Next(t.Context()))
		}
	})
}

// A steady clock may be ahead of the wall: the worker that it switches to is for its time.
func TestASwitchGetsTheTicksItAsksFor(t *testing.T) {
	w := newWorld(t)
	l := w.start(w.shared, func(c *Config) { c.Generator.Layout = layout("41/0/1/12") })
	from := l.gen.Now() + 2*l.window
	grant, err := l.switchWorker(context.Background(), from)
	if err != nil || grant.Through < from+l.window {
		t.Errorf("granted %+v to be used from %d on: %v", grant, from, err)
	}
}

// stepped is the system's time with a wall clock that may be set back, or ahead.
type stepped struct {
	firn.TimeSource
	back atomic.Int64
}

func (s *stepped) Wall() time.Time { return s.TimeSource.Wall().Add(-time.Duration(s.back.Load())) }

// muted answers no read after one of the pool.
type muted struct {
	store.Store
	then func()
	off  atomic.Bool
}

func (*muted) Traits() store.Traits { return store.Traits{} }

func (m *muted) Get(ctx context.Context, key string) (store.Entry, error) {
	if m.off.Load() {
		<-ctx.Done()
		return store.Entry{}, store.ContextError(ctx)
	}
	if strings.HasSuffix(key, "/pool") {
		defer m.then()
	}
	return m.Store.Get(ctx, key)
}

// A clock goes back while a worker is claimed, and the store is silent from then on: neither the
// renewal nor the giving back that follows ends by itself.
func TestJoiningEndsWithItsContextIfTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		clock := &stepped{TimeSource: firn.SystemTime()}
		m := &muted{Store: memstore.New(nil), then: func() {}}
		must(0, must(Open(t.Context(), Config{Store: m})).Close(t.Context()))
		m.then = func() { clock.back.Store(int64(time.Millisecond)); m.off.Store(true) }
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Open(ctx, Config{Store: m, Generator: firn.Config{Time: clock}})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > time.Second+maxPatience {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
