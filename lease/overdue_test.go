package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

// A genuine clock does not show that it is one for tests.
type (
	genuine struct{ clock }
	clock   interface {
		firn.TimeSource
		AfterFunc(d time.Duration, do func())
	}
)

// watched starts a process as try does, whose ids end while its look is overdue.
func (w *world) watched(change ...func(*Config)) *Lease {
	w.t.Helper()
	cfg := w.config(append(change, func(c *Config) { c.Generator.Time = genuine{w.time} })...)
	l := must(start(context.Background(), must(newPoolSource(cfg)), cfg))
	l.cancel = func() {}
	close(l.done)
	return l
}

// A taking is a call for ids.
type taking struct {
	err  error
	over bool
}

// taking starts a call for ids of a process.
func (w *world) taking(l *Lease) *taking {
	w.t.Helper()
	var got taking
	go func() {
		got.err = w.take(l, 1)
		got.over = true
	}()
	synctest.Wait()
	return &got
}

// A process that was paused makes no id before a look has ended: the store may have forgotten it, and newcomers do not
// wait for who does not look.
func TestAPausedHolderMakesNoIDBeforeItHasLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		two := func(c *Config) { w.shared(c); c.Generator.Layout = layout("41/0/1/12") }
		holder := w.watched(two)
		w.mustTake(holder, 10)
		lost := holder.State().Worker
		w.time.Pass(5 * time.Second)
		w.mustTake(holder, 10) // its look is not overdue yet
		w.mem.Restore(nil)
		newcomer := w.start(two, func(c *Config) { c.Pinned = &lost })
		w.mustTake(newcomer, 10)
		w.time.Pass(time.Second)
		call := w.taking(holder)
		if call.over {
			t.Fatalf("the store has forgotten it, and it did not look: %v", call.err)
		}
		if err := holder.Check(); err != nil {
			t.Errorf("calls wait: %v", err)
		}
		holder.turn(context.Background())
		synctest.Wait()
		if s := holder.State(); !call.over || call.err != nil && !errors.Is(call.err, firn.ErrFence) || s.Worker == lost || s.Losses != 1 || s.Overlaps != 1 {
			t.Errorf("%+v; %+v", call, s)
		}
		w.mustTake(holder, 10)
		w.mustTake(newcomer, 10)
	})
}

// The store may stay away for half a window and longer: a look that fails is one too.
func TestAHolderWhoseLooksFailGoesOn(t *testing.T) {
	for name, fail := range map[string]func(w *world){
		"the store is away":     func(w *world) { w.store.SetDown(true) },
		"no write is confirmed": func(w *world) { w.unconfirmed() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				holder := w.watched(w.shared)
				fail(w)
				fence := holder.State().Fence
				for range 55 / 5 {
					w.mustTake(holder, 10)
					w.time.Pass(5 * time.Second)
					holder.turn(context.Background())
				}
				if s := holder.State(); s.Fence != fence {
					t.Errorf("its fence was moved from %d to %d", fence, s.Fence)
				}
				w.time.Pass(10 * time.Second)
				if err := w.take(holder, 1); !errors.Is(err, firn.ErrFence) || !errors.Is(holder.Check(), firn.ErrFence) {
					t.Errorf("after its fence: %v, %v", err, holder.Check())
				}
			})
		})
	}
}

// After a pause a connection may be dead, and the store another: only a look that succeeds counts.
func TestAFailedLookDoesNotCountAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared)
		w.time.Pass(7 * time.Second)
		call := w.taking(holder)
		w.store.SetDown(true)
		for range 2 {
			holder.turn(context.Background())
			synctest.Wait()
			if call.over {
				t.Fatalf("it took an id: %v", call.err)
			}
		}
		w.store.SetDown(false)
		holder.turn(context.Background())
		synctest.Wait()
		if !call.over || call.err != nil {
			t.Errorf("%+v", call)
		}
	})
}

// A look may find its slot as it should be, and then wait long for the write that moves the fence.
func TestALookCountsBeforeItsWriteIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared)
		w.time.Pass(5 * time.Second)
		holder.turn(context.Background())
		w.time.Pass(28 * time.Second) // more than half the window
		call := w.taking(holder)
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap {
				synctest.Wait()
				if !call.over {
					t.Error("it waits for the write")
				}
			}
			return storetest.Pass
		}
		if call.over {
			t.Error("its look is overdue")
		}
		holder.turn(context.Background())
		if s := holder.State(); call.err != nil || s.Renewals != 1 {
			t.Errorf("%v; %+v", call.err, s)
		}
	})
}

// A slot that the store has forgotten must be there again first: a newcomer may be about to claim it.
func TestAForgottenHolderGoesOnOnceItsSlotIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared)
		w.mustTake(holder, 10)
		w.mem.Restore(nil)
		refusing := true
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && refusing {
				return storetest.Refuse
			}
			return storetest.Pass
		}
		w.time.Pass(7 * time.Second)
		call := w.taking(holder)
		for turn := range 3 {
			if call.over {
				t.Fatalf("turn %d: %v", turn, call.err)
			}
			holder.turn(context.Background())
			synctest.Wait()
		}
		time.Sleep(overdueAfter(defaultLook)) // of the bubble
		synctest.Wait()
		if !call.over || !errors.Is(call.err, firn.ErrFence) || !strings.Contains(call.err.Error(), "was stopped") || !errors.Is(holder.Check(), firn.ErrFence) {
			t.Errorf("nothing can be written: %+v, %v", call, holder.Check())
		}
		refusing = false
		call = w.taking(holder)
		holder.turn(context.Background())
		synctest.Wait()
		if s := holder.State(); !call.over || call.err != nil || s.Losses != 0 || s.Err != nil {
			t.Errorf("it is written again: %+v; %+v", call, s)
		}
	})
}

// Newcomers may have waited meanwhile: one may have been granted the worker, and be forgotten too.
func TestAHolderThatLooksAfterNewcomersHaveWaitedDoesNotComeBack(t *testing.T) {
	for name, pass := range map[string]func(*machine){
		"the process was stopped":   func(c *machine) { c.Pass(13 * time.Second) },
		"the machine was suspended": func(c *machine) { c.Step(13 * time.Second) },
		"and its clock set back":    func(c *machine) { c.Pass(13 * time.Second); c.Step(-13 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			two := func(c *Config) { w.shared(c); c.Generator.Layout = layout("41/0/1/12") }
			holder := w.watched(two)
			w.mustTake(holder, 10)
			lost := holder.State().Worker
			pass(w.time)
			w.mem.Restore(nil)
			holder.turn(context.Background())
			if s := holder.State(); s.Overlaps != 1 || s.Worker == lost || !strings.Contains(s.Err.Error(), "newcomers may not have waited") {
				t.Errorf("%+v", s)
			}
			w.mustTake(holder, 10)
		})
	}
}

// A store that answers slowly is written in time, though no ids are made meanwhile.
func TestASlowLookWritesAForgottenSlotAgain(t *testing.T) {
	w := newWorld(t)
	holder := w.watched(w.shared)
	w.time.Pass(3 * time.Second)
	w.mem.Restore(nil)
	w.store.Script = func(storetest.Call) storetest.Outcome { w.time.Pass(1200 * time.Millisecond); return storetest.Pass }
	holder.turn(context.Background())
	if s := holder.State(); s.Losses != 0 || s.Err != nil {
		t.Errorf("%+v", s)
	}
	w.mustTake(holder, 10)
}

// The first look counts from the claim, however long the process was paused since.
func TestAPauseAfterTheClaimCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && strings.Contains(c.Key, "/slot/") {
				w.time.Pass(7 * time.Second) // before the answer is there
			}
			return storetest.Pass
		}
		holder := w.watched(w.shared)
		call := w.taking(holder)
		if call.over {
			t.Error("it took an id")
		}
		holder.turn(context.Background())
		synctest.Wait()
		if !call.over || call.err != nil {
			t.Errorf("%+v", call)
		}
	})
}

func TestAWaitForALookEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared)
		w.time.Pass(7 * time.Second)
		why := errors.New("no patience")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, err := holder.Next(ctx); !errors.Is(err, why) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for a look") {
			t.Error(err)
		}
		if err := holder.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := holder.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// Where newcomers do not wait, or ids follow no clock, a look is for nothing but the fence.
func TestWhoNeedsNoLookIsNotHeldUp(t *testing.T) {
	for name, change := range map[string]func(w *world, c *Config){
		"an embedded store": func(*world, *Config) {},
		"a strict pool":     func(w *world, c *Config) { w.shared(c); c.Strict, c.Window = 10*time.Minute, 5*time.Minute },
		"a virtual clock": func(w *world, c *Config) {
			w.shared(c)
			c.Generator.Clock, c.Generator.Layout = firn.ClockVirtual, layout("41/0/10/1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			holder := w.watched(func(c *Config) { change(w, c) })
			w.time.Pass(50 * time.Second)
			w.mustTake(holder, 20_000) // of a virtual clock, ids for ten seconds
		})
	}
}

func TestCloseEndsTheWaitForALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.watched(w.shared)
		w.time.Pass(7 * time.Second)
		call := w.taking(l)
		if call.over {
			t.Fatalf("it does not wait: %v", call.err)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if synctest.Wait(); !call.over || !errors.Is(call.err, firn.ErrClosed) {
			t.Errorf("%+v", call)
		}
	})
}

// A grant that came late is renewed at once, for a longer window.
func TestALateGrantAllowsNoMoreThanUntilTheFirstLook(t *testing.T) {
	w := newWorld(t)
	slow := true
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if slow && c.Op == storetest.OpCompareAndSwap && strings.Contains(c.Key, "/slot/") {
			slow = false
			w.time.Pass(40 * time.Second)
		}
		return storetest.Pass
	}
	l := w.watched(w.shared)
	if ahead := l.gen.Layout().Time(l.gen.State().Fence).Sub(w.time.Wall()); ahead > 7*time.Second || l.State().Renewals != 0 {
		t.Errorf("it has ticks for %v, %+v", ahead, l.State())
	}
}

// breaker is a source that may fail by itself.
type breaker struct {
	*poolSource
	open bool
}

func (b *breaker) Look(ctx context.Context, held firn.Grant) error {
	if b.open {
		return context.DeadlineExceeded
	}
	return b.poolSource.Look(ctx, held)
}

func TestALookCountsWhoeverFailsIt(t *testing.T) {
	for name, fail := range map[string]func(*world, *breaker, *Lease){
		"a source of its own": func(_ *world, b *breaker, _ *Lease) { b.open = true },
		"a strange record": func(w *world, _ *breaker, l *Lease) {
			w.put(slotKey("default", l.gen.Layout(), 0, l.State().Worker), []byte(`{"after":1`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				cfg := w.config(w.shared)
				b := &breaker{poolSource: must(newPoolSource(cfg))}
				l := must(start(context.Background(), b, cfg))
				fail(w, b, l)
				for range 6 {
					w.time.Pass(4 * time.Second)
					if looked := l.turn(context.Background()); looked {
						t.Error("the look succeeded")
					}
					if call := w.taking(l); !call.over || call.err != nil {
						t.Fatalf("%+v", call)
					}
				}
			})
		})
	}
}

// A call that waits since the clock was ahead goes on once that is right.
func TestAClockThatIsSetRightEndsTheWaitForALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.watched(w.shared, func(c *Config) { c.Generator.Clock = firn.ClockWall })
		w.mustTake(l, 10)
		w.time.Pass(3 * time.Second)
		l.turn(context.Background())
		w.time.Step(20 * time.Second)
		call := w.taking(l)
		w.time.Step(-22 * time.Second)
		l.turn(context.Background())
		if synctest.Wait(); !call.over || call.err != nil {
			t.Errorf("%+v", call)
		}
	})
}

// A stop lets a look fail that began in time: its answer loses against the time-out. If that counted, a second stop would
// leave ticks. So does a processor so busy that no answer is read in time.
func TestALookThatFailsAfterAPauseWithinItDoesNotCount(t *testing.T) {
	for pause, looks := range map[time.Duration]int{5300 * time.Millisecond: 2, 2600 * time.Millisecond: 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			holder := w.watched(w.shared)
			w.mustTake(holder, 10)
			w.time.Pass(3 * time.Second)
			w.store.Script = func(storetest.Call) storetest.Outcome {
				w.time.Pass(pause)
				return storetest.FailUnapplied
			}
			for range looks {
				holder.turn(context.Background())
				w.time.Pass(100 * time.Millisecond)
			}
			call := w.taking(holder)
			if call.over {
				t.Fatalf("%v: it took an id: %v", pause, call.err)
			}
			w.store.Script = nil
			holder.turn(context.Background())
			if synctest.Wait(); !call.over || call.err != nil {
				t.Errorf("%v: %+v", pause, call)
			}
		})
	}
}

// A clock for tests moves faster than looks can begin.
func TestTheStoreMayBeAwayWhileAClockForTestsPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := w.config(w.shared)
		l := must(keep(t.Context(), must(newPoolSource(cfg)), cfg))
		defer l.Close(context.Background())
		synctest.Wait()
		w.store.SetDown(true)
		for range 5 {
			w.time.Pass(10 * time.Second)
			if _, err := l.Next(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Whole ticks, and clocks that differ by as much as docs/protocol.md says.
func TestNewcomersOutwaitTheTicksOfAStoppedHolder(t *testing.T) {
	if got := graceOf(defaultLook, 10*time.Second); got != 29500*time.Millisecond { // with long ticks the last one counts
		t.Errorf("with ticks of 10s newcomers wait %v", got)
	}
	if got := graceOf(defaultLook, time.Millisecond); got != grace {
		t.Errorf("by default %v, want %v", got, grace)
	}
	for _, look := range []time.Duration{minLook, 100 * time.Millisecond, time.Second, defaultLook, time.Minute} {
		for _, unit := range []time.Duration{time.Microsecond, time.Millisecond, 10 * time.Millisecond, time.Second, 10 * time.Second} {
			ticks := 1 + (overdueAfter(look)+unit-1)/unit // the first may just have begun
			if least := ticks*unit + patience(look)*3/2; graceOf(look, unit) < least {
				t.Errorf("look %v, unit %v: they wait %v, want %v", look, unit, graceOf(look, unit), least)
			}
		}
	}
}

// afterClaim is a store that does something once, when the answer to a read of the pool after a claim is on its way.
type afterClaim struct {
	remote
	claimed bool
	do      func()
}

func (s *afterClaim) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	e, err := s.remote.CompareAndSwap(ctx, key, old, value)
	s.claimed = s.claimed || err == nil && strings.Contains(key, "/slot/")
	return e, err
}

func (s *afterClaim) Get(ctx context.Context, key string) (store.Entry, error) {
	e, err := s.remote.Get(ctx, key)
	if do := s.do; s.claimed && do != nil && strings.HasSuffix(key, "/pool") {
		s.do = nil
		do()
	}
	return e, err
}

// A claim counts as a look when it was made, not when it is installed: the machine sleeps while the last answer is on its
// way, and then its connection is dead.
func TestAMachineThatSleepsWithinAClaimMakesNoIDBeforeItHasLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared, func(c *Config) {
			c.Store = &afterClaim{remote: c.Store.(remote), do: func() { w.time.Step(20 * time.Second) }}
		})
		call := w.taking(holder)
		w.store.SetDown(true)
		holder.turn(context.Background())
		w.store.SetDown(false)
		if synctest.Wait(); call.over {
			t.Fatalf("it took an id: %v", call.err)
		}
		holder.turn(context.Background())
		if synctest.Wait(); !call.over || call.err != nil {
			t.Errorf("%+v", call)
		}
	})
}

// A holder that found its slot forgotten, and cannot write it, is not excused by reads that fail later.
func TestAForgottenHolderThatCannotWriteEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		down, readOnly := false, false
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if down || readOnly && c.Op == storetest.OpCompareAndSwap {
				return storetest.FailUnapplied
			}
			return storetest.Pass
		}
		two := func(c *Config) { w.shared(c); c.Generator.Layout = layout("41/0/1/12") }
		holder := w.watched(two)
		w.mustTake(holder, 10)
		lost := holder.State().Worker
		w.mem.Restore(nil)
		readOnly = true
		for turn := range 7 {
			w.time.Pass(2 * time.Second)
			down = turn%2 == 1
			holder.turn(context.Background())
			if turn > 4 { // newcomers may be through
				if call := w.taking(holder); call.over && call.err == nil {
					t.Fatalf("turn %d: it took an id", turn)
				}
			}
		}
		// Newcomers have waited, and are forgotten too: it must not come back.
		down, readOnly = false, false
		w.mem.Restore(nil)
		holder.turn(context.Background())
		if s := holder.State(); s.Overlaps != 1 || s.Worker == lost {
			t.Errorf("%+v", s)
		}
		if err := holder.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A look takes a call, or two, and its successor another.
func TestHowFarTheGeneratorMayGo(t *testing.T) {
	for look, want := range map[time.Duration]time.Duration{
		minLook: 325 * time.Millisecond, time.Second: 6500 * time.Millisecond, defaultLook: 6500 * time.Millisecond, time.Minute: 62500 * time.Millisecond,
	} {
		if got := overdueAfter(look); got != want {
			t.Errorf("look %v: %v, want %v", look, got, want)
		}
	}
	w := newWorld(t)
	l := w.watched(w.shared, func(c *Config) {
		c.Generator.Ahead, c.Look = 5*time.Millisecond, minLook
		c.Generator.Layout = layout("41/0/8/12,unit=10ms")
	})
	w.time.Pass(time.Second)
	l.turn(context.Background())
	for d, want := range map[time.Duration]firn.Tick{0: 0, 1: 1, 10 * time.Millisecond: 1, 10*time.Millisecond + 1: 2} {
		if got := l.ticks(d); got != want {
			t.Errorf("%v: %d ticks, want %d", d, got, want)
		}
	}
	// One tick may be longer than the time until a look is overdue.
	long := newWorld(t)
	one := long.watched(long.shared, func(c *Config) { c.Generator.Layout = layout("31/0/8/12,unit=10s") })
	if got := one.until(firn.Grant{Through: 100}, 10); got != 11 {
		t.Errorf("it may go on up to %d, want 11", got)
	}
	// A grant that is shorter than its window begins no earlier than it does.
	if got := l.allowed(firn.Grant{After: 9000, Through: 9100}, 6000).Through; got != 9001+33 {
		t.Errorf("it may go on up to %d, want %d", got, 9001+33)
	}
	// 325 ms and a lead of 7 ms, in whole ticks.
	if got, want := l.gen.State().Fence, l.gen.Now()+33+1; got != want {
		t.Errorf("the fence is at %d, want %d", got, want)
	}
}

// The fence itself is over: a call hurries the look that finds this, and fails.
func TestACallAfterAStopBeyondTheFenceHurriesALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.watched(w.shared)
		w.time.Pass(2 * time.Minute)
		call := w.taking(l)
		if call.over || !l.waiting {
			t.Fatalf("it does not wait for a look: %v", call.err)
		}
		l.turn(context.Background())
		if synctest.Wait(); !call.over || call.err != nil && !errors.Is(call.err, firn.ErrFence) {
			t.Errorf("%+v", call)
		}
		w.mustTake(l, 1)
	})
}

// The usual decorator of a source must not lose the rules of its pool, nor a clock become one for tests by a method.
func TestAWrappedSourceKeepsItsRules(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.shared)
	slots := must(newPoolSource(cfg))
	type traced struct{ Source }
	of := Config{Generator: cfg.Generator, Look: cfg.Look}
	of.Generator.Time = idling{genuine{w.time}}
	if l := must(prepare(traced{slots}, of)); l.overdue != slots.overdue() || l.overdue == 0 {
		t.Errorf("a look is overdue after %v, of the slots after %v", l.overdue, slots.overdue())
	}
	slots.setBacks.Store(3)
	if got := must(start(t.Context(), traced{slots}, of)).State().SetBacks; got != 3 {
		t.Errorf("the store was set back %d times, want 3", got)
	}
	of.Generator.Layout = layout("41/0/3/12")
	if _, err := Keep(t.Context(), traced{slots}, of); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("another layout: %v", err)
	}
}

type idling struct{ genuine }

func (idling) Idle(context.Context, time.Duration) error { return nil }

// A look that began before the process was stopped allows ticks from then on: the call waits for the next one.
func TestACallWaitsForALookThatBeganAfterTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared)
		var call *taking
		w.time.Pass(5 * time.Second)
		w.store.Script = func(storetest.Call) storetest.Outcome {
			w.store.Script = nil
			w.time.Pass(8 * time.Second)
			call = w.taking(holder)
			return storetest.Pass
		}
		holder.turn(context.Background())
		if synctest.Wait(); call.over {
			t.Fatalf("after the look that was stopped: %v", call.err)
		}
		holder.turn(context.Background())
		if synctest.Wait(); !call.over || call.err != nil {
			t.Errorf("after the next: %+v", call)
		}
	})
}

// A call waits behind the fence, all of whose ticks are used, and the clock is set back: no look is of use, and a third is not
// asked for.
func TestNoLookIsHurriedForAClockThatWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared, func(c *Config) {
			c.Generator.Clock, c.Generator.Layout = firn.ClockWall, layout("41/0/8/0,unit=10ms")
		})
		l := holder.gen.Layout()
		w.time.Pass(l.Time(holder.gen.State().Fence).Sub(w.time.Wall()))
		w.mustTake(holder, 1) // in the last tick
		w.time.Pass(l.Unit())
		call := w.taking(holder)
		w.time.Step(-20 * time.Second)
		for n := range 2 {
			if call.over {
				t.Fatalf("after %d looks: %v", n, call.err)
			}
			holder.turn(context.Background())
			synctest.Wait()
		}
		if !call.over || !errors.Is(call.err, firn.ErrFence) {
			t.Errorf("after two looks: %+v", call)
		}
	})
}

// A starved clock takes its time for each reading once it is armed, as a goroutine waits where processors are busy.
type starved struct {
	genuine
	takes *time.Duration
}

func (s starved) Monotonic() time.Duration {
	s.genuine.clock.(*machine).Pass(*s.takes)
	return s.genuine.Monotonic()
}

// The store may have answered, and the answer waits to be read.
func TestALookThatFailsBesideBusyProcessorsDoesNotCount(t *testing.T) {
	for takes, want := range map[time.Duration]bool{900 * time.Millisecond: true, 1100 * time.Millisecond: false} {
		w := newWorld(t)
		var took time.Duration
		cfg := w.config(w.shared, func(c *Config) { c.Generator.Time = starved{genuine{w.time}, &took} })
		s := must(newPoolSource(cfg))
		granted := must(s.Acquire(t.Context(), must(prepare(s, cfg)).newAskOf(0)))
		w.time.Pass(3 * time.Second)
		w.store.Script = func(storetest.Call) storetest.Outcome { took = takes; return storetest.FailUnapplied }
		if allowed, err := allows(s, granted); err == nil || allowed != want {
			t.Errorf("readings that take %v: it counts: %v, %v", takes, allowed, err)
		}
	}
}

// newAskOf is newAsk as a source calls it.
func (l *Lease) newAskOf(from firn.Tick) func() Ask { return func() Ask { return l.newAsk(from) } }

// allows looks at a slot, and reports whether that counts.
func allows(s *poolSource, held firn.Grant) (allowed bool, err error) {
	err = s.Look(context.WithValue(context.Background(), allowKey{}, func() { allowed = true }), held)
	return allowed, err
}

// A look that finds its ticks granted to another does not count, though it shows that it was in time.
func TestALookThatFindsAnOverlapDoesNotCount(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.shared, func(c *Config) { c.Generator.Time = genuine{w.time} })
	s := must(newPoolSource(cfg))
	granted := must(s.Acquire(t.Context(), must(prepare(s, cfg)).newAskOf(0)))
	w.mem.Restore(nil)
	newcomer := w.start(w.shared, func(c *Config) { c.Pinned = &granted.Worker })
	w.mustTake(newcomer, 1)
	s.change(holding{worker: granted.Worker, after: granted.After}, func(h *holding) { h.looked = s.read() }) // as if it had looked meanwhile
	if allowed, err := allows(s, granted); !errors.Is(err, ErrOverlap) || allowed {
		t.Errorf("it counts: %v, %v", allowed, err)
	}
}

// A store that fails just before the time-out has not answered.
func TestALookThatFailsInTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared)
		w.time.Pass(3 * time.Second)
		w.store.Script = func(storetest.Call) storetest.Outcome {
			w.time.Pass(2450 * time.Millisecond)
			return storetest.FailUnapplied
		}
		holder.turn(context.Background())
		w.time.Pass(3 * time.Second)
		if call := w.taking(holder); !call.over || call.err != nil {
			t.Errorf("%+v", call)
		}
	})
}

// The worker was used long ago: the claim counts as a look all the same.
func TestTheFirstIDNeedsNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one := int64(1)
		fixed := func(c *Config) { c.Pinned = &one }
		former := w.watched(w.shared, fixed)
		w.mustTake(former, 1)
		must(0, former.Close(t.Context()))
		w.time.Pass(time.Hour)
		if call := w.taking(w.watched(w.shared, fixed)); !call.over || call.err != nil {
			t.Errorf("%+v", call)
		}
	})
}

// Looks that do not count wake a call that waits, and do not let it wait longer.
func TestACallWaitsForLooksFor5SecondsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared)
		w.time.Pass(7 * time.Second)
		call := w.taking(holder)
		w.store.SetDown(true)
		for range 3 {
			if call.over {
				t.Fatalf("it did not wait: %v", call.err)
			}
			holder.turn(context.Background())
			time.Sleep(2 * time.Second) // of the bubble
		}
		if synctest.Wait(); !call.over || !errors.Is(call.err, firn.ErrFence) {
			t.Errorf("%+v", call)
		}
	})
}

// A look that found its slot as it should be leaves nothing behind when its write fails: the next failed one counts too.
func TestAFailedWriteIsNotAForgottenSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		holder := w.watched(w.shared)
		down := false
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if down || c.Op == storetest.OpCompareAndSwap {
				return storetest.FailUnapplied
			}
			return storetest.Pass
		}
		for range 7 { // half the window is over
			w.time.Pass(5 * time.Second)
			holder.turn(context.Background())
		}
		if holder.State().Err == nil {
			t.Fatal("no write was tried")
		}
		down = true
		w.time.Pass(5 * time.Second)
		holder.turn(context.Background())
		w.time.Pass(5 * time.Second)
		if call := w.taking(holder); !call.over || call.err != nil {
			t.Errorf("%+v", call)
		}
	})
}

// A strict pool relies on no look: its fence is the end.
func TestCheckFailsAtTheFence(t *testing.T) {
	w := newWorld(t)
	holder := w.watched(w.shared, func(c *Config) { c.Strict, c.Window = 10*time.Minute, 5*time.Minute })
	w.time.Pass(6 * time.Minute)
	if err := holder.Check(); !errors.Is(err, firn.ErrFence) {
		t.Error(err)
	}
}

// Past the fence itself a look may count, and not move it, as with a clock that is refused. Nor may it count.
func TestPastTheFenceOneLookIsWaitedFor(t *testing.T) {
	for _, away := range []bool{true, false} {
		name := map[bool]string{true: "the store is away", false: "the clock is refused"}[away]
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				off := time.Duration(0)
				l := w.watched(func(c *Config) {
					c.Store = remote{c.Store, func() time.Time { return w.time.Wall().Add(off) }, nil}
				})
				w.store.SetDown(away)
				off = time.Hour
				w.time.Pass(10 * time.Minute)
				call := w.taking(l)
				if call.over {
					t.Fatal(call.err)
				}
				l.turn(context.Background())
				if synctest.Wait(); !call.over || !errors.Is(call.err, firn.ErrFence) && !errors.Is(call.err, ErrClock) {
					t.Errorf("%+v", call)
				}
			})
		})
	}
}

func TestACallWaitsForTwoLooksAndAHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.watched(w.shared)
		w.time.Pass(7 * time.Second)
		began := time.Now()
		if _, err := l.Next(t.Context()); !errors.Is(err, firn.ErrFence) || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		// A call that waits ends the pause before the next look, also one that begins later.
		call, before := w.taking(l), w.time.Wall()
		if err := l.pause(t.Context(), time.Hour); err != nil || !w.time.Wall().Equal(before) {
			t.Errorf("after %v: %v", w.time.Wall().Sub(before), err)
		}
		l.turn(context.Background())
		if synctest.Wait(); !call.over || call.err != nil {
			t.Errorf("%+v", call)
		}
	})
}

// What counts is that the slot is written again, although the clock is refused.
func TestASlotWrittenAgainBesideARefusedClockIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		off := time.Duration(0)
		l := w.watched(func(c *Config) {
			c.Store = remote{c.Store, func() time.Time { return w.time.Wall().Add(off) }, nil}
		})
		w.mustTake(l, 10)
		w.time.Pass(40 * time.Second)
		l.turn(context.Background())
		w.time.Pass(3 * time.Minute) // a renewal is due
		l.turn(context.Background())
		w.mustTake(l, 10)
		off = time.Hour
		w.mem.Restore(nil)
		l.turn(context.Background())
		w.store.SetDown(true)
		for range 3 {
			w.time.Pass(5 * time.Second)
			l.turn(context.Background())
			w.mustTake(l, 1)
		}
	})
}

func TestTheCheckOfAClosedLease(t *testing.T) {
	w := newWorld(t)
	l := w.watched(w.shared)
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); !errors.Is(err, firn.ErrClosed) {
		t.Error(err)
	}
}

// The owner of a folder may remove it while a process is stopped.
func TestAnEmbeddedStoreThatForgetsIsWrittenAgainHoweverLate(t *testing.T) {
	w := newWorld(t)
	l := w.watched()
	w.mustTake(l, 10)
	w.time.Pass(20 * time.Second)
	w.mem.Restore(nil)
	l.turn(context.Background())
	if s := l.State(); s.Losses != 0 || s.Err != nil {
		t.Errorf("%+v", s)
	}
	w.mustTake(l, 10)
}

// Until then no failed look counts.
func TestAForgottenSlotThatIsWrittenAgainIsForgottenNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.watched(w.shared)
		w.mustTake(l, 10)
		w.mem.Restore(nil)
		w.unconfirmed()
		l.turn(context.Background())
		if !l.source.(*poolSource).held[l.State().Worker].forgot {
			t.Fatal("it is not known to be forgotten")
		}
		w.store.Script = nil
		l.turn(context.Background())
		w.store.SetDown(true)
		for range 3 {
			w.time.Pass(5 * time.Second)
			l.turn(context.Background())
			w.mustTake(l, 1)
		}
	})
}

// The reason may name a host: callers without an account get the FenceError alone.
func TestWhyAFenceIsReachedIsForTheLog(t *testing.T) {
	at := &firn.FenceError{Worker: 7}
	l := &Lease{state: State{Err: fmt.Errorf("%w: it was taken by process 99 on web-7", ErrLost)}}
	err := l.because(at)
	public, ok := err.(interface{ Public() error })
	if !ok || public.Public().Error() != at.Error() || !strings.Contains(err.Error(), "web-7") {
		t.Error(err)
	}
	if !errors.Is(err, firn.ErrFence) || errors.Is(err, ErrLost) {
		t.Errorf("it must be a FenceError and nothing else: %v", err)
	}
	l.state.Err = nil
	if err := l.because(at); err.Error() != at.Error() {
		t.Error(err)
	}
}
