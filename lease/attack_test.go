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
)

// at joins a store of a given life with a clock that is off.
func (w *world) at(life *string, offset time.Duration, text string) func(*Config) {
	return func(c *Config) {
		c.Store = remote{c.Store, w.time.Wall, life}
		c.Generator.Layout = layout(text)
		c.Generator.Time = skewed{w.time, offset}
	}
}

func (w *world) pass(holder *Lease, d time.Duration) {
	for range d / (3 * time.Second) {
		w.time.Pass(3 * time.Second)
		holder.turn(context.Background())
		w.mustTake(holder, 10)
	}
}

// A1: the store is set back to a time before the holder's claim, and the holder closes
// (or looks): the last tick it used is written nowhere.
func TestAttackAHolderThatEndsInAStoreSetBackRecordsItsLastTick(t *testing.T) {
	for _, claims := range []int{0, 1} { // of others between the copy and the holder
		for _, ending := range []string{"close", "look"} {
			t.Run(ending+"/"+string(rune('0'+claims)), func(t *testing.T) {
				w := newWorld(t)
				life := "1"
				const text = "41/0/0/12"
				first := w.start(w.at(&life, 0, text))
				w.mustTake(first, 10)
				must(0, first.Close(context.Background()))
				w.time.Pass(time.Second)
				copied := w.mem.Snapshot()
				for range claims {
					l := w.start(w.at(&life, 0, text))
					w.mustTake(l, 10)
					must(0, l.Close(context.Background()))
					w.time.Pass(time.Second)
				}
				holder := w.start(w.at(&life, 9*time.Second, text))
				w.mustTake(holder, 10)
				w.pass(holder, 3*time.Minute)
				w.mem.Restore(copied)
				life = "2"
				if ending == "look" {
					_ = holder.keep(context.Background())
				}
				must(0, holder.Close(context.Background()))
				newcomer, err := w.try(w.at(&life, -9*time.Second, text))
				if err != nil {
					return // refused
				}
				for range 30 {
					w.mustTake(newcomer, 5)
					w.time.Pass(time.Second)
					newcomer.turn(context.Background())
				}
			})
		}
	}
}

// A3: the wall clock steps while a strict claim is written again.
func TestAttackAWallClockThatStepsDuringAStrictClaim(t *testing.T) {
	w := newWorld(t)
	begin := w.time.Wall()
	clock := func() time.Time { return begin.Add(w.time.Monotonic()) }
	strict := func(time firn.TimeSource, s store.Store) func(*Config) {
		return func(c *Config) {
			c.Generator.Layout = layout("41/0/0/8")
			c.Store = remote{s, clock, nil}
			c.Window, c.Tolerance, c.Strict = 40_000_000_000, 2_000_000_000, 50_000_000_000
			if time != nil {
				c.Generator.Time = time
			}
			c.Generator.Ahead = -1
		}
	}
	h := &hooked{Store: w.store}
	h.afterRead = func() { w.time.Step(time.Hour) }
	holder, err := w.try(strict(nil, h))
	if errors.Is(err, ErrClock) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	p := must(Inspect(context.Background(), w.mem, "default"))
	ahead := p.Slots[0].Until.Sub(clock())
	if ahead > 42*time.Second {
		t.Logf("a fence %v ahead of the store's clock", ahead)
	}
	t.Log(w.take(holder, 10), holder.State())
	w.time.Step(-time.Hour)
	t.Log(w.take(holder, 10), holder.State())
	w.mem.Delete(slotKey("default", p.Layout, 0, 0))
	newcomer := w.start(strict(nil, w.store))
	var used firn.Tick
	for id := range w.ids {
		used = max(used, partsOf(holder.gen.Layout(), id).Tick)
	}
	for range 400 {
		now := must(holder.gen.Layout().Tick(w.time.Wall()))
		w.time.Pass(min(10*time.Second, time.Duration(used-now)*time.Millisecond))
		newcomer.turn(context.Background())
		w.mustTake(newcomer, 5)
		if used == now {
			t.Log("there", newcomer.State(), newcomer.gen.State().Last, used)
			break
		}
	}
}

// hangingClock answers nothing from a moment on, for one call.
type hangingClock struct {
	remote
	hangs *atomic.Bool
}

func (h hangingClock) Traits() store.Traits { return store.Traits{Clock: h} }

func (h hangingClock) Now(ctx context.Context) (time.Time, error) {
	if h.hangs.Swap(false) {
		<-ctx.Done()
		return time.Time{}, store.ContextError(ctx)
	}
	return h.remote.Now(ctx)
}

// A4: one hanging call for the store's clock, in the look that would have noticed.
func TestAttackAClockThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		mem := memstore.New(nil)
		life, hangs := "1", atomic.Bool{}
		ids := map[firn.ID]string{}
		open := func(ctx context.Context) (*Lease, error) {
			return Open(ctx, Config{
				Store:     hangingClock{remote{mem, time.Now, &life}, &hangs},
				Generator: firn.Config{Layout: layout("41/0/0/12")}, Window: time.Minute,
			})
		}
		first := must(open(t.Context()))
		must(0, first.Close(t.Context()))
		copied := mem.Snapshot()
		time.Sleep(time.Second)
		holder := must(open(t.Context()))
		defer holder.Close(context.Background())
		time.Sleep(30100 * time.Millisecond) // just after a look; the next renews
		mem.Restore(copied)
		life = "2"
		hangs.Store(false)
		var newcomer atomic.Pointer[Lease]
		got := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l, err := open(ctx)
			newcomer.Store(l)
			got <- err
		}()
		time.Sleep(time.Second)
		hangs.Store(true)
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			for name, l := range map[string]*Lease{"holder": holder, "newcomer": newcomer.Load()} {
				if l == nil {
					continue
				}
				id, err := l.Next(t.Context())
				if err != nil {
					continue
				}
				tick := partsOf(l.gen.Layout(), id).Tick
				at := firn.ID(tick)
				if by, ok := ids[at]; ok && by != name {
					t.Fatalf("tick %d used by both, hung %v", tick, !hangs.Load())
				}
				ids[at] = name
			}
		}
		select {
		case err := <-got:
			t.Log("newcomer:", err)
			if err == nil {
				newcomer.Load().Close(context.Background())
			}
		default:
		}
	})
}

// A5: two renewals of one source at once.
func TestAttackTwoRenewalsAtOnce(t *testing.T) {
	w := newWorld(t)
	h := &hooked{Store: w.store}
	s, ask := w.slots(t, func(c *Config) { c.Store = h })
	held := must(s.Acquire(context.Background(), ask))
	long := ask()
	long.Window *= 10
	var far firn.Grant
	h.beforeWrite = func() { far = must(s.Renew(context.Background(), held, long)) }
	short := ask()
	short.Window *= 2
	must(s.Renew(context.Background(), held, short))
	if there := w.fence(); there < far.Through {
		t.Errorf("granted through %d; the store has %d", far.Through, there)
	}
}

// A6: the newcomer that finds another life looks like a thief while it has not given
// its claim back.
func TestAttackALookBetweenAClaimAndItsUndoing(t *testing.T) {
	w := newWorld(t)
	life := "1"
	const text = "41/0/0/12"
	first := w.start(w.at(&life, 0, text))
	w.mustTake(first, 10)
	must(0, first.Close(context.Background()))
	w.time.Pass(time.Second)
	copied := w.mem.Snapshot()
	holder := w.start(w.at(&life, 9*time.Second, text))
	w.pass(holder, 30*time.Second)
	w.mem.Restore(copied)
	life = "2"
	h := &hooked{Store: w.store}
	h.afterWrite = func() { holder.keep(context.Background()) }
	newcomer, err := w.try(w.at(&life, -9*time.Second, text), func(c *Config) { r := c.Store.(remote); r.Store = h; c.Store = r })
	t.Log(err, holder.State())
	for range 30 {
		if newcomer != nil {
			w.mustTake(newcomer, 5)
			newcomer.turn(context.Background())
		}
		_ = w.take(holder, 5)
		w.time.Pass(time.Second)
	}
}

// late answers one read of the pool's record late.
type late struct {
	store.Store
	do func()
}

func (*late) Traits() store.Traits { return store.Traits{} }

func (l *late) Get(ctx context.Context, key string) (store.Entry, error) {
	e, err := l.Store.Get(ctx, key)
	if strings.HasSuffix(key, "/pool") && l.do != nil {
		do := l.do
		l.do = nil
		do()
	}
	return e, err
}

// A7: the read that confirms a claim is answered after longer than the grace.
func TestAttackALateAnswerToTheLastReadOfAClaim(t *testing.T) {
	w := newWorld(t)
	life := "1"
	const text = "41/0/0/12"
	first := w.start(w.at(&life, 0, text))
	w.mustTake(first, 10)
	must(0, first.Close(context.Background()))
	w.time.Pass(time.Second)
	copied := w.mem.Snapshot()
	var other *Lease
	slow := &late{Store: w.store}
	slow.do = func() {
		w.mem.Restore(copied)
		life = "2"
		other = w.start(w.at(&life, 0, text))
	}
	holder, err := w.try(w.at(&life, 0, text), func(c *Config) { r := c.Store.(remote); r.Store = slow; c.Store = r })
	if err != nil {
		return
	}
	w.time.Pass(time.Second)
	w.mustTake(other, 5)
	w.mustTake(holder, 5)
}

// A8: a worker of a virtual clock, given back, lives for ever.
func TestAttackAVirtualClockThatEndedKeepsACopyAlive(t *testing.T) {
	w := newWorld(t)
	const text = "41/0/1/12"
	virtual := w.start(w.at(nil, 0, text), func(c *Config) {
		c.Generator.Clock, c.Generator.From = firn.ClockVirtual, noon.Add(24*time.Hour)
	})
	w.mustTake(virtual, 10)
	must(0, virtual.Close(context.Background()))
	holder := w.start(w.at(nil, 0, text))
	copied := w.mem.Snapshot()
	w.pass(holder, 5*time.Minute)
	w.mem.Restore(copied)
	newcomer, err := w.try(w.at(nil, 0, text), func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { holder.turn(context.Background()) }}
	})
	if err != nil {
		return
	}
	w.time.Pass(100 * time.Millisecond)
	w.mustTake(holder, 5)
	w.mustTake(newcomer, 5)
}

// setBackClock is ahead until the store's clock is asked.
type setBackClock struct {
	*machine
	offset time.Duration
}

func (s *setBackClock) Wall() time.Time { return s.machine.Wall().Add(s.offset) }

type asking struct {
	remote
	before func()
}

func (a asking) Traits() store.Traits { return store.Traits{Clock: a} }

func (a asking) Now(ctx context.Context) (time.Time, error) { a.before(); return a.remote.Now(ctx) }

// A10: the clock was beyond the tolerance when the renewal was asked for, and right
// when it was checked.
func TestAttackAClockSetRightBetweenTheWishAndItsCheck(t *testing.T) {
	const e = 2 * time.Second
	w := newWorld(t)
	set := func(c *Config, server time.Duration) remote {
		c.Generator.Layout = layout("41/0/0/8")
		c.Generator.Ahead = -1
		c.Window, c.Tolerance = 40*time.Second, e
		c.Strict = c.Window + c.Generator.Lead() + 4*e + 2*time.Millisecond
		return remote{w.store, func() time.Time { return w.time.Wall().Add(server) }, nil}
	}
	clock := &setBackClock{w.time, 2 * e}
	cutOff := w.start(func(c *Config) {
		c.Store = asking{set(c, e), func() { clock.offset = 2 * e }}
		c.Generator.Time = clock
	})
	w.mustTake(cutOff, 10)
	w.time.Pass(21 * time.Second)
	clock.offset = 3 * e
	cutOff.turn(context.Background()) // and never again
	if clock.offset != 2*e || cutOff.State().Renewals != 1 {
		t.Fatal("not renewed", cutOff.State())
	}
	p := must(Inspect(context.Background(), w.mem, "default"))
	w.mem.Delete(slotKey("default", p.Layout, 0, 0))
	newcomer := w.start(func(c *Config) {
		c.Store = set(c, -e)
		c.Generator.Time = skewed{w.time, -2 * e}
		// The holder goes on while the newcomer waits.
		c.Generator.Time = &during2{skewed{w.time, -2 * e}, func() { _ = w.take(cutOff, 5) }}
	})
	for range 400 {
		w.time.Pass(20 * time.Millisecond)
		w.mustTake(newcomer, 5)
	}
}

// during2 is a skewed machine in a world that continues in small steps while a process sleeps.
type during2 struct {
	skewed
	do func()
}

func (d *during2) Sleep(ctx context.Context, t time.Duration) error {
	const parts = 5000
	if t < time.Second {
		return d.machine.Sleep(ctx, t)
	}
	for range parts {
		if err := d.machine.Sleep(ctx, t/parts); err != nil {
			return err
		}
		d.do()
	}
	return nil
}
