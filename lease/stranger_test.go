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

// What strangers did with settings that differ from member to member.

// A pool is wiped, and whoever comes first has another layout.
func TestALayoutThatTheStoreForgotIsHeldUpByWhoHasIt(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.shared, func(c *Config) { c.Generator.Layout = layout("41/0/1/12") })
	w.mustTake(holder, 10)
	w.mem.Restore(nil)
	_, err := w.try(w.shared, func(c *Config) {
		c.Generator.Layout = layout("41/0/2/11")
		c.Generator.Time = &interrupted{machine: w.time, at: defaultPatience, do: func() { holder.turn(context.Background()) }}
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
		c.Window, c.Slots.Tolerance, c.Slots.Strict = 20*time.Minute+50*time.Second, time.Second, 21*time.Minute
	}
	wide := func(c *Config) {
		narrow(c)
		c.Window, c.Slots.Tolerance = 16*time.Minute+5*time.Second, time.Minute
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

// timeless is a store on another host that has lives and no clock, as etcd is.
type timeless struct {
	store.Store
	life *string
}

func (s timeless) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	e, err := s.Store.CompareAndSwap(ctx, key, old, value)
	e.Life = *s.life
	return e, err
}

// Who left is forgotten by a store without a clock, which newcomers cannot ask how late it was then:
// the last tick it used may not have ended.
func TestWhoLeftAStoreWithoutAClockIsOutwaited(t *testing.T) {
	w := newWorld(t)
	life := "1"
	minutes := func(c *Config) {
		c.Slots.Store = timeless{c.Slots.Store, &life}
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

// A pool is wiped, and whoever comes first would wait less for its holders.
func TestAGraceThatTheStoreForgotIsHeldUpByWhoHasIt(t *testing.T) {
	w := newWorld(t)
	two := func(c *Config) { w.shared(c); c.Generator.Layout = layout("41/0/1/12") }
	seldom := func(c *Config) { c.Window, c.Look, c.Slots.Look = time.Hour, time.Minute, time.Minute }
	holder := w.start(two, seldom)
	w.mustTake(holder, 10)
	w.mem.Restore(nil)
	_, err := w.try(two, func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: defaultPatience, do: func() { holder.turn(context.Background()) }}
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
		slots := must(NewSlots(SlotsConfig{Store: w.mem, Layout: layout("41/1/1/12"), Time: w.time, Pool: "p" + want}))
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

// A worker is taken over by a clock that is ahead, as clocks may be, and the store forgets it: the
// holder before that finds nothing, renews, and comes to ticks that were used meanwhile.
func TestWhoWasTakenOverAndRenewsIsToldWhatWasUsed(t *testing.T) {
	w := newWorld(t)
	at := func(offset time.Duration) *Lease {
		return w.start(w.at(nil, offset, "41/0/0/12"), func(c *Config) { c.Window = 12 * time.Second })
	}
	behind := at(-9 * time.Second)
	w.time.Pass(3 * time.Second)
	ahead := at(9 * time.Second)
	for range 12 {
		w.mustTake(ahead, 10)
		w.time.Pass(time.Second)
	}
	w.mem.Restore(nil)
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpList { // nobody can join
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	behind.turn(context.Background()) // its slot is there again
	for range 15 {
		behind.turn(context.Background())
		_ = w.take(behind, 10)
		ahead.turn(context.Background())
		w.time.Pass(time.Second)
	}
	if behind.State().Renewals == 0 {
		t.Errorf("%+v", behind.State())
	}
}

// A worker is taken over by a clock that is ahead, just before the fence of its holder, and the
// store forgets it: the holder finds nothing, writes its slot, and must not go on past that fence
// until the other has noticed.
func TestWhoFindsItsSlotForgottenBesideItsFenceWaitsForOthersToNotice(t *testing.T) {
	w := newWorld(t)
	at := func(offset time.Duration) *Lease {
		return w.start(w.at(nil, offset, "41/0/0/12"), func(c *Config) { c.Window = 12 * time.Second })
	}
	holder := at(0)
	w.time.Pass(11 * time.Second)
	other := at(2 * time.Second)
	w.mustTake(other, 4096)
	w.mem.Restore(nil)
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpList { // nobody can join
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	for range 30 {
		holder.turn(context.Background())
		_ = w.take(holder, 4096)
		w.time.Pass(100 * time.Millisecond)
	}
	other.turn(context.Background()) // a look after its claim
	if other.State().Losses == 0 {
		t.Errorf("%+v", other.State())
	}
	for range 100 {
		holder.turn(context.Background())
		_ = w.take(holder, 4096)
		w.time.Pass(100 * time.Millisecond)
	}
}
