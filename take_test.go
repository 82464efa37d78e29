package firn

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// A caller that adds first and reads the limit after may be held up in between, while the core
// moves the limit past the position it got, and has others issue that one. So here callers do
// nothing but take, with a limit that is always near, and many threads share the processors:
// wherever a caller stands when it must make way, the others move on.
func TestACallerHeldUpWhileItTakesGetsNoOtherCallersPosition(t *testing.T) {
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

// A caller that asks again for the cell may be held up in between, while the generator goes on under
// another worker: it would compose the one's position with the other's number.
func TestACallerHeldUpWhileTheWorkerChangesGetsAnIDOfOne(t *testing.T) {
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
