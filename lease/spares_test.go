package lease

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// spared is a process with worker 7, and with spares for when that is held.
func spared(spares ...int64) func(*Config) {
	return func(c *Config) {
		seven := int64(7)
		c.Pinned, c.Spares = &seven, spares
		c.Generator.Clock, c.Generator.Rollback = firn.ClockWall, must(firn.ParseRollback("switch, refuse"))
	}
}

func (w *world) wantWorker(l *Lease, want int64) {
	w.t.Helper()
	w.mustTake(l, 10)
	if got := l.State().Worker; got != want {
		w.t.Fatalf("worker %d, want %d", got, want)
	}
}

func TestAPinnedWorkerSwitchesToItsSparesInTurn(t *testing.T) {
	w := newWorld(t)
	l := w.start(spared(8, 9))
	back := func(d time.Duration) {
		w.time.Step(-d)
	}
	w.time.Pass(20 * time.Second)
	w.wantWorker(l, 7)
	back(10 * time.Second)
	w.wantWorker(l, 8)
	l.turn(t.Context()) // releases worker 7: its ids end 10 s ahead of the clock
	back(5 * time.Second)
	w.wantWorker(l, 9)
	l.turn(t.Context())
	w.time.Pass(time.Second)
	w.wantWorker(l, 9)

	back(5 * time.Second)
	before := w.time.Monotonic()
	err := w.take(l, 1)
	var full *FullError
	if !errors.Is(err, firn.ErrClockBack) || !errors.As(err, &full) || full.Workers != 3 {
		t.Errorf("all three have later ids: %v", err)
	}
	if waited := w.time.Monotonic() - before; waited > time.Second {
		t.Errorf("the call waited %v for another worker", waited)
	}
	w.time.Pass(5 * time.Second)
	w.wantWorker(l, 9)
	w.time.Pass(30 * time.Second) // past all ids of worker 7
	w.wantWorker(l, 9)
	l.turn(t.Context())
	back(time.Second)
	w.wantWorker(l, 7)
}

// The fences of its numbers outlive it: over a store nobody needs to wait until the clock is right.
func TestAfterACrashASpareIsTakenAtOnceEvenIfTheClockIsBack(t *testing.T) {
	w := newWorld(t)
	crashed := w.start(spared(8, 9, 10))
	w.time.Pass(20 * time.Second)
	w.wantWorker(crashed, 7)
	w.time.Step(-15 * time.Second)
	w.wantWorker(crashed, 8)
	for _, want := range []int64{9, 10} {
		before := w.time.Monotonic()
		l := w.start(spared(8, 9, 10)) // and crashes as well
		w.wantWorker(l, want)
		if waited := w.time.Monotonic() - before; waited > time.Second {
			t.Errorf("worker %d after %v", want, waited)
		}
	}
	// None is idle: the start waits for its own worker, as without spares.
	before := w.time.Monotonic()
	w.wantWorker(w.start(spared(8, 9, 10)), 7)
	if waited := w.time.Monotonic() - before; waited < 30*time.Second {
		t.Errorf("worker 7 after only %v", waited)
	}
}

func TestAPinnedWorkerThatIsLostIsReplacedByASpare(t *testing.T) {
	w := newWorld(t)
	l := w.start(spared(8))
	w.wantWorker(l, 7)
	w.start(spared(), func(c *Config) { c.PinnedAhead, c.Generator.Rollback = true, nil }) // takes worker 7
	l.turn(t.Context())
	w.wantWorker(l, 8)
}

func TestTheWorkerIsTakenAheadOnlyWithoutAFreeSpare(t *testing.T) {
	w := newWorld(t)
	ahead := func(c *Config) { spared(8)(c); c.PinnedAhead = true }
	w.wantWorker(w.start(ahead), 7)
	w.wantWorker(w.start(ahead), 8)
	w.mustTake(w.start(ahead), 10) // of 7, above its fence
}

func TestSparesThatCannotBeUsedAreRefused(t *testing.T) {
	w := newWorld(t)
	for want, change := range map[string]func(*Config){
		"spare 1024 is out of range: 0 to 1023":                                             spared(8, 1024),
		`"7" is not a valid spare: that is the worker itself`:                               spared(7),
		`"8" is not a valid spare: it is named twice`:                                       spared(8, 8),
		`"[8]" is not a valid list of spares: spares need a fixed worker, in Go Config.Pin`: func(c *Config) { c.Spares = []int64{8} },
		"there is no other to switch to: name spares for it, or leave out switch or the w":  spared(),
	} {
		if _, err := w.try(change); err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// A holder with a spare that is held as well does not wait for either: its next policy may serve.
func TestAHolderDoesNotWaitForItsOneSpare(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t, func(c *Config) { spared(8)(c); c.Generator.Layout = firn.DefaultLayout() })
	s.hold(holding{worker: 1})
	held := Pool{Slots: []Slot{{Worker: 7, Fence: ask().Now + 2000}, {Worker: 8, Fence: ask().Now + 2000}}}
	before := w.time.Monotonic()
	if _, err := s.pick(t.Context(), held, ask()); !errors.Is(err, ErrFull) || w.time.Monotonic() != before {
		t.Errorf("%v after %v", err, w.time.Monotonic()-before)
	}
}

// All are held: the error names the pool, and when the first of them is idle, whichever that is.
func TestAFullListOfSparesNamesItsPoolAndWhenTheFirstIsIdle(t *testing.T) {
	for _, first := range []int64{7, 8, 9} {
		w := newWorld(t)
		s, ask := w.slots(t, func(c *Config) { spared(8, 9)(c); c.Generator.Layout = firn.DefaultLayout() })
		s.hold(holding{worker: 1})
		pool := Pool{}
		for _, worker := range []int64{7, 8, 9} {
			slot := Slot{Worker: worker, Fence: ask().Now + 2000}
			if worker == first {
				slot.Fence -= 1000
			}
			pool.Slots = append(pool.Slots, slot)
		}
		_, err := s.pick(t.Context(), pool, ask())
		if full := (*FullError)(nil); !errors.As(err, &full) || full.Pool != "default" || !full.Next.Equal(s.rules.idleAt(pool.slot(0, first))) {
			t.Errorf("worker %d is idle first: %v", first, err)
		}
	}
}
