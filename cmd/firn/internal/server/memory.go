package server

import (
	"context"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

const (
	// tidyEvery is how often the server looks for memory that it does not use any more.
	tidyEvery = 10 * time.Second
	// tidyAbove is from how many bytes on it gives it back to the system. Normal load does not leave so many.
	tidyAbove = 64 << 20
	// maxPause is how many looks it skips at most.
	maxPause = 32
)

// tidy gives memory that a past load needed back to the system. Go does that within minutes by itself; until then the
// next load of another kind could exceed the memory of a container.
func tidy(ctx context.Context) {
	var t tidying
	for tick := time.Tick(tidyEvery); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			if t.due(readMemory()) {
				debug.FreeOSMemory()
				t.done(readMemory())
			}
		}
	}
}

// A tidying decides when to free memory.
type tidying struct {
	cycles      uint64 // of the garbage collector, at the latest look
	skip, pause int    // looks to skip, after a collection that freed little
	live        uint64 // before the latest collection of ours
}

// due reports whether there is memory to give back, or probably: when nothing was collected since the latest look, a quiet
// server does not know how much of what a past load used is garbage.
func (t *tidying) due(m memory) bool {
	quiet := m.cycles == t.cycles
	t.cycles, t.live = m.cycles, m.live
	if m.unused > tidyAbove {
		return true
	}
	if t.skip > 0 {
		t.skip--
		return false
	}
	return quiet && m.live > tidyAbove
}

// done notes what a collection has left. If that is most, the next one waits longer.
func (t *tidying) done(m memory) {
	t.cycles = m.cycles
	if m.live > t.live/8*7 {
		t.pause = min(max(1, 2*t.pause), maxPause)
	} else {
		t.pause = 0
	}
	t.skip = t.pause
}

// A memory is how a process uses its memory, in bytes.
type memory struct {
	cycles uint64 // of the garbage collector so far
	live   uint64 // what the latest of them has left
	unused uint64 // held without objects, or with those of live that are gone since
}

func readMemory() memory {
	samples := []runtimemetrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	runtimemetrics.Read(samples)
	m := memory{samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[3].Value.Uint64() + samples[4].Value.Uint64()}
	if objects := samples[2].Value.Uint64(); objects < m.live {
		m.unused += m.live - objects
	}
	return m
}
