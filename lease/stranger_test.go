package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

// Members of one pool with different settings.

// A pool is wiped, and the first newcomer has another layout.
func TestAHolderRestoresALayoutThatTheStoreForgot(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.shared, func(c *Config) { c.Generator.Layout = layout("41/0/1/12") })
	w.mustTake(holder, 10)
	w.mem.Restore(nil)
	_, err := w.try(w.shared, func(c *Config) {
		c.Generator.Layout = layout("41/0/2/11")
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { holder.turn(context.Background()) }}
	})
	if !errors.Is(err, ErrPool) || !strings.Contains(err.Error(), "41/0/1/12") {
		t.Errorf("%v", err)
	}
	p := must(Inspect(context.Background(), w.mem, "default"))
	if len(p.Slots) != 1 || p.Slots[0].Worker != holder.State().Worker || p.Open {
		t.Errorf("%+v", p)
	}
	must(0, holder.Close(context.Background()))
}

// The clocks of a strict pool are tolerated less by one process than by another.
func TestAStrictClaimWaitsForTheClockOfItsOwn(t *testing.T) {
	w := newWorld(t)
	narrow := func(c *Config) {
		w.oneWorker(c)
		c.Window, c.Tolerance, c.Strict = 20*time.Minute+50*time.Second, time.Second, 21*time.Minute
	}
	wide := func(c *Config) {
		narrow(c)
		c.Window, c.Tolerance = 16*time.Minute+5*time.Second, time.Minute
	}
	cutOff := w.start(narrow)
	w.mustTake(cutOff, 10)
	w.mem.Restore(nil)
	newcomer := w.start(wide, func(c *Config) {
		c.Generator.Time = &stepping{during{w.time, -59 * time.Second, func() { _ = w.take(cutOff, 3) }}}
	})
	for range 300 {
		w.mustTake(newcomer, 3)
		_ = w.take(cutOff, 3)
		w.time.Pass(time.Second)
	}
}

// Who left and is forgotten had its clock as far ahead as it tolerates, which is more than the
// newcomer does, and may be further than newcomers wait.
func TestMembersOfAPoolHaveTheSameTolerance(t *testing.T) {
	w := newWorld(t)
	life := "1"
	const text = "41/0/0/12"
	tolerant := func(c *Config) { c.Tolerance = time.Minute }
	must(0, w.start(w.at(&life, 0, text), tolerant).Close(context.Background()))
	w.time.Pass(10 * time.Minute)
	copied := w.mem.Snapshot()
	leaver := w.start(w.at(&life, 50*time.Second, text), tolerant)
	for range 3000 {
		w.mustTake(leaver, 1)
		w.time.Pass(time.Millisecond)
	}
	must(0, leaver.Close(context.Background()))
	w.mem.Restore(copied)
	life = "2"
	newcomer, err := w.try(w.at(&life, 0, text))
	if !errors.Is(err, ErrPool) || !strings.Contains(err.Error(), "a tolerance of clocks of 1m0s, not 10s") {
		t.Errorf("%v", err)
	}
	for range 60_000 {
		if newcomer != nil {
			w.mustTake(newcomer, 1)
		}
		w.time.Pass(time.Millisecond)
	}
	newcomer = w.start(w.at(&life, 0, text), tolerant)
	w.mustTake(newcomer, 10)
}

// A strict pool is wiped while a holder is cut off, and the first newcomer is not strict: without
// a wait it would get that holder's worker.
func TestAHolderRestoresAStrictWaitThatTheStoreForgot(t *testing.T) {
	w := newWorld(t)
	two := func(c *Config) {
		w.shared(c)
		c.Generator.Layout, c.Window = layout("41/0/1/12"), 3*time.Minute
	}
	strict := func(c *Config) { two(c); c.Strict = 4 * time.Minute }
	cutOff := w.start(strict)
	holder := w.start(strict, func(c *Config) {
		c.Generator.Time = &during{w.time, 0, func() { cutOff.turn(context.Background()) }}
	})
	w.mem.Restore(nil)
	newcomer, err := w.try(two, func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { holder.turn(context.Background()) }}
	})
	if !errors.Is(err, ErrPool) || !strings.Contains(err.Error(), "the strict wait 4m0s") {
		t.Errorf("%v", err)
	}
	for range 20_000 {
		w.time.Pass(time.Millisecond)
		w.mustTake(cutOff, 1)
		if newcomer != nil {
			w.mustTake(newcomer, 1)
		}
	}
}

// timeless is a store on another host that has lives and no clock, as etcd is.
type timeless struct {
	store.Store
	life *string
}

func (timeless) Traits() store.Traits { return store.Traits{} }

func (s timeless) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	e, err := s.Store.CompareAndSwap(ctx, key, old, value)
	e.Life = *s.life
	return e, err
}

// timeless puts the world's store on another host, without a clock.
func (w *world) timeless(c *Config) {
	life := "1"
	c.Store = timeless{c.Store, &life}
}

// Who left is forgotten by a store without a clock, which newcomers cannot ask how late it was then:
// the last tick it used may not have ended.
func TestNewcomersOutwaitAFormerHolderWithoutAStoreClock(t *testing.T) {
	w := newWorld(t)
	life := "1"
	minutes := func(c *Config) {
		c.Store = timeless{c.Store, &life}
		c.Generator.Layout, c.Generator.Start = layout("35/0/0/12,unit=1m"), firn.StartZero
	}
	must(0, w.start(minutes).Close(context.Background()))
	w.time.Pass(10 * time.Minute)
	copied := w.mem.Snapshot()
	leaver := w.start(minutes)
	w.mustTake(leaver, 20)
	must(0, leaver.Close(context.Background()))
	w.mem.Restore(copied)
	life = "2"
	newcomer := w.start(minutes)
	w.mustTake(newcomer, 20)
}

// A pool is wiped, and the first newcomer has a shorter grace.
func TestAHolderRestoresAGraceThatTheStoreForgot(t *testing.T) {
	w := newWorld(t)
	two := func(c *Config) { w.shared(c); c.Generator.Layout = layout("41/0/1/12") }
	seldom := func(c *Config) { c.Window, c.Look = time.Hour, time.Minute }
	holder := w.start(two, seldom)
	w.mustTake(holder, 10)
	w.mem.Restore(nil)
	_, err := w.try(two, func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { holder.turn(context.Background()) }}
	})
	if !errors.Is(err, ErrPool) || !strings.Contains(err.Error(), "a grace of 1m9s") {
		t.Errorf("%v", err)
	}
	w.mustTake(holder, 10)
}

// A generator is kept over slots of another layout, or another datacenter.
func TestSlotsAreOfTheLayoutAndDatacenterOfTheirGenerator(t *testing.T) {
	w := newWorld(t)
	for want, change := range map[string]func(*firn.Config){
		"layout":     func(c *firn.Config) { c.Layout = layout("41/0/2/12") },
		"datacenter": func(c *firn.Config) { c.Datacenter = 1 },
		"":           func(*firn.Config) {},
	} {
		slots := must(newPoolSource(Config{Store: w.mem, Pool: "p" + want, Generator: firn.Config{Layout: layout("41/1/1/12"), Time: w.time}}))
		cfg := firn.Config{Layout: layout("41/1/1/12"), Time: w.time}
		change(&cfg)
		_, err := start(context.Background(), slots, Config{Generator: cfg})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// stepping is during, with something done once a second.
type stepping struct{ during }

func (s *stepping) Sleep(ctx context.Context, d time.Duration) error {
	for ; d > 0; d -= time.Second {
		if err := s.machine.Sleep(ctx, min(d, time.Second)); err != nil {
			return err
		}
		s.do()
	}
	return nil
}

// A clock that is ahead does not take a worker of a holder whose fence has not passed by its own.
func TestAWorkerIsTakenOverOnlyAfterItsFenceByAnyClock(t *testing.T) {
	w := newWorld(t)
	at := func(offset time.Duration) func(*Config) {
		return func(c *Config) { w.at(nil, offset, "41/0/0/12")(c); c.Window = 12 * time.Second }
	}
	behind := w.start(at(-9 * time.Second))
	for w.mustTake(behind, 1); w.take(behind, 1) == nil; w.time.Pass(time.Second) {
		if _, err := w.try(at(9 * time.Second)); !errors.Is(err, ErrFull) {
			t.Fatalf("%v", err)
		}
	}
	w.time.Pass(5 * time.Second)
	w.mustTake(w.start(at(9*time.Second)), 10)
}

// A clock is far ahead just while a renewal is written, so that the fence seems to have passed. The process no longer
// reads its slot. So it must not continue up to that fence when the clock is right again: a store that has lost the slot
// grants it again.
func TestAFenceThatSeemedToHavePassedIsNotUsed(t *testing.T) {
	w := newWorld(t)
	clock := &setBackClock{machine: w.time}
	full := func(c *Config) { c.Generator.Layout, c.Window = layout("41/0/0/12"), 40*time.Second }
	holder := w.start(full, func(c *Config) { c.Generator.Time = clock })
	w.time.Pass(30 * time.Second)
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch c.Op {
		case storetest.OpCompareAndSwap:
			clock.offset = time.Hour
		case storetest.OpList: // it cannot take another worker
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	holder.turn(context.Background())
	w.store.Script, clock.offset = nil, 0
	p := must(Inspect(context.Background(), w.mem, "default"))
	w.mem.Delete(slotKey("default", p.Layout, 0, 0))
	newcomer := w.start(full)
	w.mustTake(newcomer, 10)
	if err := w.take(holder, 10); !errors.Is(err, firn.ErrFence) {
		t.Errorf("the holder continues: %v", err)
	}
}

// The same, and the clock stays wrong for longer: the steady clock follows it, and comes back with it.
func TestAHolderThatGaveItsFenceUpContinuesAtThePresent(t *testing.T) {
	w := newWorld(t)
	clock := &setBackClock{machine: w.time}
	holder := w.start(w.shared, func(c *Config) { c.Generator.Time, c.Window = clock, 5*time.Minute })
	w.mustTake(holder, 1)
	w.time.Pass(151 * time.Second)
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap {
			clock.offset = time.Hour
		}
		return storetest.Pass
	}
	holder.turn(context.Background())
	w.store.Script = nil
	for range 6 { // it has no worker, and gets none
		w.time.Pass(time.Second)
		if err := w.take(holder, 1); !errors.Is(err, firn.ErrFence) {
			t.Fatal(err)
		}
		holder.turn(context.Background())
	}
	clock.offset = 0
	holder.turn(context.Background())
	id := must(holder.Next(context.Background()))
	now := must(holder.gen.Layout().Tick(w.time.Wall()))
	if ahead := partsOf(holder.gen.Layout(), id).Tick - now; ahead > 10 {
		t.Errorf("its next id is %d ms ahead of the clock", ahead)
	}
}

// takenOverAndSetBack has the only worker taken over after its holder's fence, and sets the store
// back to before that.
func (w *world) takenOverAndSetBack() (holder, other *Lease) {
	short := func(c *Config) { c.Window = 12 * time.Second }
	holder = w.start(w.at(nil, 0, "41/0/0/12"), short)
	copied := w.mem.Snapshot()
	w.time.Pass(34 * time.Second)
	other = w.start(w.at(nil, 2*time.Second, "41/0/0/12"), short)
	w.mustTake(other, 4096)
	w.mem.Restore(copied)
	return holder, other
}

// A worker is taken over after its fence, and the store is set back to before that. Its former
// holder finds its slot as it was, and must not move the fence: more ticks are claimed.
func TestAFenceThatHasPassedIsNotMoved(t *testing.T) {
	w := newWorld(t)
	holder, other := w.takenOverAndSetBack()
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpList { // no process can join
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	for range 30 {
		holder.turn(context.Background())
		if err := w.take(holder, 4096); err == nil {
			t.Fatal("it goes on")
		}
		w.time.Pass(100 * time.Millisecond)
	}
	for range 5 {
		other.turn(context.Background()) // it writes its slot again, and goes on
		w.mustTake(other, 4096)
		w.time.Pass(time.Second)
	}
}

// The same, and the former holder leaves: its slot, still marked as held, is what tells newcomers
// that the store may have forgotten a holder.
func TestAReleaseAfterTheFenceWritesNothing(t *testing.T) {
	w := newWorld(t)
	holder, other := w.takenOverAndSetBack()
	if err := holder.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, err := w.try(w.at(nil, 0, "41/0/0/12"), func(c *Config) { // it waits, and the other looks
		c.Generator.Time = &stepping{during{w.time, 0, func() { other.turn(context.Background()) }}}
	})
	if !errors.Is(err, ErrFull) {
		t.Errorf("beside one that is forgotten: %v", err)
	}
	w.mustTake(other, 10)
}

// The same, but no other process took the worker over: the process takes another worker at once. If
// there is no other, it waits until its own is idle by any clock, by the store's record. If no
// holder seems alive, it waits for the grace.
func TestAProcessThatWasPausedForLongTakesAnotherWorker(t *testing.T) {
	for name, c := range map[string]struct {
		layout             string
		pause, write, most time.Duration
	}{
		"before a renewal":            {"41/0/1/12", 13 * time.Second, 0, time.Second},
		"in a renewal":                {"41/0/1/12", 7 * time.Second, 6 * time.Second, time.Second},
		"the only worker":             {"41/0/0/12", 13 * time.Second, 0, 20*time.Second + grace},
		"the only worker, in a write": {"41/0/0/12", 7 * time.Second, 6 * time.Second, 32*time.Second + grace},
		"until no holder seems alive": {"41/0/1/12", 40 * time.Second, 0, time.Second + grace},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			holder := w.start(w.at(nil, 0, c.layout), func(c *Config) { c.Window = 12 * time.Second })
			w.mustTake(holder, 10)
			w.time.Pass(c.pause)
			w.store.Script = func(call storetest.Call) storetest.Outcome {
				if call.Op == storetest.OpCompareAndSwap {
					w.time.Pass(c.write)
					c.write = 0
				}
				return storetest.Pass
			}
			began := w.time.Monotonic() + c.write
			for holder.turn(context.Background()); w.take(holder, 10) != nil; holder.turn(context.Background()) {
				w.time.Pass(time.Second)
				if waited := w.time.Monotonic() - began; waited > c.most {
					t.Fatalf("%v: %v", waited, holder.State().Err)
				}
			}
		})
	}
}

// A newcomer's clock is ahead by nearly twice the tolerance when it asks for a worker, and by the
// tolerance when it is compared: only the latter says which fences have passed.
func TestAFenceHasPassedByAClockThatWasCompared(t *testing.T) {
	w := newWorld(t)
	behind := w.start(w.at(nil, -9*time.Second, "41/0/0/12"), func(c *Config) { c.Window = 12 * time.Second })
	for w.mustTake(behind, 1); w.take(behind, 1) == nil; w.time.Pass(time.Second) {
		clock := &setBackClock{w.time, 19 * time.Second}
		_, err := w.try(w.at(nil, 0, "41/0/0/12"), func(c *Config) {
			c.Store = asking{remote{w.store, w.time.Wall, nil}, func() { clock.offset = 9500 * time.Millisecond }}
			c.Generator.Time = clock
		})
		if !errors.Is(err, ErrFull) {
			t.Fatalf("%v", err)
		}
	}
}

// The same of a worker that an operator took back while its holder was not looking.
func TestAWorkerTakenBackIsGrantedOnlyAfterItsFenceByAnyClock(t *testing.T) {
	w := newWorld(t)
	at := func(offset time.Duration) func(*Config) {
		return func(c *Config) { w.at(nil, offset, "41/0/0/12")(c); c.Window = 12 * time.Second }
	}
	behind := w.start(at(-9 * time.Second))
	w.mustTake(behind, 1)
	must(Reclaim(context.Background(), w.mem, "default", 0, 0, time.Time{}))
	for ; w.take(behind, 1) == nil; w.time.Pass(time.Second) {
		if _, err := w.try(at(9 * time.Second)); !errors.Is(err, ErrFull) {
			t.Fatalf("%v", err)
		}
	}
}

// A pool becomes strict beside a holder whose clock is behind.
func TestAPoolBecomesStrictOnlyAfterAllFencesByAnyClock(t *testing.T) {
	w := newWorld(t)
	behind := w.start(w.at(nil, -9*time.Second, "41/0/1/12"), func(c *Config) { c.Window = 12 * time.Second })
	for w.mustTake(behind, 1); w.take(behind, 1) == nil; w.time.Pass(time.Second) {
		_, err := w.try(w.at(nil, 9*time.Second, "41/0/1/12"), func(c *Config) {
			c.Window, c.Strict = 3*time.Minute, 4*time.Minute
		})
		if !errors.Is(err, ErrPool) {
			t.Fatalf("%v", err)
		}
	}
}

// A holder was paused past its fence, its slot is forgotten, and the answer to giving its only worker
// back is lost: it has that again after the grace.
func TestAWorkerWhoseReleaseWasNotAnsweredIsGrantedAgain(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.at(nil, 0, "41/0/0/12"), func(c *Config) { c.Window = 12 * time.Second })
	w.mustTake(holder, 10)
	w.time.Pass(13 * time.Second)
	w.forgets("0")
	wrote, failed := false, false
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch {
		case c.Op == storetest.OpCompareAndSwap && strings.Contains(c.Key, "/slot/") && !wrote:
			wrote = true
			return storetest.FailApplied
		case c.Op == storetest.OpGet && wrote && !failed:
			failed = true
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	began := w.time.Monotonic()
	for holder.turn(context.Background()); w.take(holder, 10) != nil; holder.turn(context.Background()) {
		w.time.Pass(time.Second)
		if waited := w.time.Monotonic() - began; waited > grace+5*time.Second {
			t.Fatalf("%v: %v", waited, holder.State().Err)
		}
	}
	if !failed {
		t.Error("it gave nothing back")
	}
}

// The clocks of the store and of the process that opens the pool are both ahead. The test follows
// the advice of firn doctor.
func TestAPoolOpenedByClocksAheadIsRecreatedWithoutItsRecord(t *testing.T) {
	w := newWorld(t)
	const year = 365 * 24 * time.Hour
	wall := func(c *Config) { w.shared(c); c.Generator.Clock = firn.ClockWall }
	w.time.Step(year)
	first := w.start(wall)
	w.mustTake(first, 10)
	must(0, first.Close(context.Background()))
	w.time.Step(-year)
	if p, l := must(Inspect(context.Background(), w.mem, "default")), w.start(wall); l.grant.After < p.From || p.Layout.Time(p.From).Sub(w.time.Wall()) < year-time.Minute {
		t.Errorf("a claim begins at %d, all of the pool at %d", l.grant.After, p.From)
	}
	w.mem.Delete(poolKey("default"))
	l := w.start(wall)
	begun := w.time.Wall()
	w.mustTake(l, 10)
	if took := w.time.Wall().Sub(begun); took > defaultTolerance+time.Second {
		t.Errorf("its first ids took %v", took)
	}
}

// An operator takes a worker back again and again, right before it is claimed. Ticks are long.
func TestALostRaceDoesNotDelayTheStartOfTheNextClaim(t *testing.T) {
	w := newWorld(t)
	seconds := func(c *Config) { c.Generator.Layout = layout("41/0/0/6,unit=10s") }
	first := w.start(seconds)
	w.mustTake(first, 1)
	must(0, first.Close(context.Background()))
	w.time.Pass(time.Minute)
	left := 20
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && strings.Contains(c.Key, "/slot/") && left > 0 {
			left--
			must(Reclaim(context.Background(), w.mem, "default", 0, 0, time.Time{}))
		}
		return storetest.Pass
	}
	l := w.start(seconds)
	if now := must(l.gen.Layout().Tick(w.time.Wall())); left > 0 || l.grant.After > now {
		t.Errorf("%d conflicts are left; it begins after %d, now is %d", left, l.grant.After, now)
	}
}

// An operator takes back the only slot that tells that a copy is old. Its holder is gone, indeed,
// but the store has forgotten another.
func TestAWorkerTakenBackInAnOlderCopyHoldsNewcomersOff(t *testing.T) {
	for _, gone := range []time.Time{{}, noon.Add(time.Minute)} {
		takenBackInAnOlderCopy(t, gone)
	}
}

func takenBackInAnOlderCopy(t *testing.T, gone time.Time) {
	w := newWorld(t)
	const text = "41/0/1/12"
	holder := w.start(w.at(nil, 0, text))
	copied := w.mem.Snapshot()
	must(0, holder.Close(context.Background()))
	other := w.start(w.at(nil, 0, text))
	w.pass(other, 2*time.Minute)
	w.mem.Restore(copied)
	must(Reclaim(context.Background(), w.mem, "default", 0, holder.State().Worker, gone))
	began := w.time.Monotonic()
	newcomer := w.start(w.at(nil, 0, text), func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { other.turn(context.Background()) }}
	})
	if waited := w.time.Monotonic() - began; waited < grace {
		t.Errorf("it waits %v", waited)
	}
	w.mustTake(other, 10)
	w.mustTake(newcomer, 10)
}
