package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/register"
)

// What went wrong in other systems, by what was published of them, replayed.

// Leaf (issue 84 and others): nodes that start for the first time at the same
// moment all read an empty registry and all take number 0.
func TestElsewhereAllStartFirstAtOnce(t *testing.T) {
	w := newWorld(t)
	workers := map[int64]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 32 {
		cfg := w.config()
		cfg.Generator.Layout, cfg.Generator.Time, cfg.Generator.Random = firn.DefaultLayout(), w.time, nil
		slots, err := newPoolSource(cfg)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			now := must(firn.DefaultLayout().Tick(w.time.Wall()))
			grant, err := slots.Acquire(context.Background(), Ask{Now: now, From: now, Window: 60_000}.always)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			workers[grant.Worker]++
		})
	}
	group.Wait()
	if len(workers) != 32 {
		t.Errorf("32 processes hold %d workers: %v", len(workers), workers)
	}
}

// CosId: a process whose clock is fast finds the others expired and takes the
// number of one that lives, and a holder that was paused goes on with a number
// that was given to another.
func TestElsewhereAFastClockStealsFromALivingHolder(t *testing.T) {
	w := newWorld(t)
	one := func(c *Config) { c.Generator.Layout = layout("41/0/0/12") }
	holder := w.start(one)
	w.mustTake(holder, 100)
	fast := newMachine()
	fast.Set(w.time.Wall().Add(time.Hour))
	thief := w.start(one, func(c *Config) { c.Generator.Time = fast })
	for range 40 {
		thief.turn(context.Background())
		w.mustTake(thief, 100) // the oracle finds what both have made
		if err := w.take(holder, 100); err != nil && !errors.Is(err, firn.ErrFence) {
			t.Fatal(err)
		}
		w.time.Pass(3 * time.Second)
		fast.Pass(3 * time.Second)
	}
	// Paused until long after its fence, and on at once.
	w.time.Pass(2 * time.Hour)
	fast.Pass(2 * time.Hour)
	thief.turn(context.Background())
	w.mustTake(thief, 100)
	if err := w.take(holder, 100); !errors.Is(err, firn.ErrFence) {
		t.Errorf("the holder that was paused goes on: %v", err)
	}
}

// ICH.Snowflake: a number is recycled after a time that is configured apart from
// the heartbeat, and may be shorter. Here both are the window: however rarely the
// holder comes round to renewing, it issues nothing beyond its fence.
func TestElsewhereRecycledBeforeTheNextHeartbeat(t *testing.T) {
	w := newWorld(t)
	one := func(c *Config) { c.Generator.Layout = layout("41/0/0/12") }
	late := w.start(one, func(c *Config) { c.Window = 5 * time.Second })
	for range 5 {
		w.mustTake(late, 50)
		w.time.Pass(6 * time.Second)
		next := w.start(one, func(c *Config) { c.Window = 5 * time.Second })
		w.mustTake(next, 50)
		if err := w.take(late, 50); !errors.Is(err, firn.ErrFence) {
			t.Fatalf("it issues beyond its fence: %v", err)
		}
		late.turn(context.Background()) // finds it lost, and the pool full
		w.time.Pass(6 * time.Second)
		late.turn(context.Background())
	}
	if cfg := late.cfg; cfg.Look > cfg.Window/2 {
		t.Errorf("looks every %v with a window of %v", cfg.Look, cfg.Window)
	}
}

// ICH.Snowflake: with 10 bits a worker 1024 is handed out, and its bit is added to
// the time.
func TestElsewhereAWorkerBeyondItsBits(t *testing.T) {
	w := newWorld(t)
	beyond := int64(1024)
	if _, err := w.try(func(c *Config) { c.Pinned = &beyond }); !errors.Is(err, firn.ErrRange) {
		t.Errorf("worker 1024 of 10 bits: %v", err)
	}
	// Not even if the store has such a slot; of a pool that is soon full.
	eight := func(c *Config) { c.Generator.Layout = layout("41/0/3/12") }
	w.mustTake(w.start(eight), 1)
	slot, err := register.Encode(Slot{Fence: 1, Owner: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.mem.CompareAndSwap(context.Background(), "firn/default/slot/0/8", 0, slot); err != nil {
		t.Fatal(err)
	}
	for range 7 {
		if l := w.start(eight); l.State().Worker > 7 {
			t.Fatalf("worker %d was granted", l.State().Worker)
		}
	}
	if _, err := w.try(eight); !errors.Is(err, ErrFull) {
		t.Errorf("beyond 8: %v", err)
	}
}

// yitter: the registry says that a number is taken, not by whom, so a process
// renews, and gives back, what has become another's.
func TestElsewhereARegistryWithoutOwners(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	one := func(c *Config) { c.Generator.Layout = layout("41/0/0/12") }
	first := w.start(one)
	w.mustTake(first, 10)
	w.time.Pass(2 * time.Minute)
	second := w.start(one) // same host, same process id
	w.mustTake(second, 10)
	fence := second.State().Fence
	first.turn(ctx)
	if err := first.Close(ctx); err != nil {
		t.Errorf("leaving what is another's: %v", err)
	}
	p, err := Inspect(ctx, w.mem, "default")
	if err != nil || p.Slots[0].Free || p.Slots[0].Fence != fence {
		t.Errorf("the first has written to the second's slot: %+v, %v", p.Slots, err)
	}
	w.mustTake(second, 10)
}

// goLeaf: the key of a number contains the taker's address, so two processes that
// take the same number write two keys, and both succeed.
func TestElsewhereAKeyWithTheTakersAddress(t *testing.T) {
	w := newWorld(t)
	one := func(host string, pid int) func(*Config) {
		return func(c *Config) {
			c.Generator.Layout = layout("41/0/0/12")
			c.Host, c.PID = host, pid
		}
	}
	w.mustTake(w.start(one("10.0.0.1", 1)), 10)
	for i := range 3 {
		if _, err := w.try(one(fmt.Sprintf("10.0.0.%d", i+2), i)); !errors.Is(err, ErrFull) {
			t.Errorf("another address takes the same number: %v", err)
		}
	}
}
