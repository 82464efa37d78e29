package firn

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// If callers added first and read the limit second, one that pauses in between could return a
// position that the core has meanwhile given to another caller. To provoke this, callers only
// take, the limit is always near, and there are more threads than processors, so that a caller
// may pause anywhere while the others continue.
func TestACallerThatPausesDuringTakeSharesNoPosition(t *testing.T) {
	const callers, positions = 16, 3_000_000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(callers))
	var (
		g       Generator
		c       = &cell{}
		all     sync.WaitGroup
		doubled atomic.Int64
		taken   [positions + 2]atomic.Bool
	)
	g.cell.Store(c)
	for range callers {
		all.Go(func() {
			for c.limit.Load() < positions && doubled.Load() == 0 {
				if p, got, ok := c.take(1); !ok {
					g.mu.Lock() // as decide does
					g.collect(c)
					g.publish(c, decision{open: true, limit: g.core.pos + 2})
					g.mu.Unlock()
				} else if got != 1 || taken[p].Swap(true) {
					doubled.Add(1)
				}
			}
		})
	}
	all.Wait()
	if doubled.Load() > 0 {
		t.Errorf("of %d positions some were taken twice", g.core.pos)
	}
}

// If a caller loaded the cell twice, and paused in between while the generator changes workers,
// it would compose one worker's position with the other's number.
func TestACallerThatPausesDuringAChangeOfWorkersMixesNoWorkers(t *testing.T) {
	const callers, replacements = 16, 150_000
	for name, call := range callsFor {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(callers))
			grant := func(i Tick) Grant { return Grant{Worker: int64(i % 8), After: 2*i - 1, Through: 2*i + 1} }
			g, err := NewLeased(Config{Layout: seconds, Clock: ClockVirtual, From: seconds.Epoch(), Start: StartZero}, grant(0))
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			var begun atomic.Int64
			var foreign atomic.Pointer[Parts]
			for range callers {
				all.Go(func() {
					for begun.Load() < replacements && foreign.Load() == nil {
						id, err := call(g)
						if err != nil { // the fence
							g.Replace(grant(Tick(begun.Add(1))))
							continue
						}
						if p, err := seconds.Decompose(id); err != nil || p.Worker != int64(p.Tick/2%8) {
							foreign.Store(&p)
						}
					}
				})
			}
			all.Wait()
			if p := foreign.Load(); p != nil {
				t.Errorf("%+v has another worker's number", *p)
			}
		})
	}
}
