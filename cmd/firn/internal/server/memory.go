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
)

// tidy gives memory that a past load needed back to the system. Go does that within minutes by itself; until then the
// next load of another kind could exceed the memory of a container.
func tidy(ctx context.Context) {
	ticker := time.NewTicker(tidyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if unused() > tidyAbove {
				debug.FreeOSMemory()
			}
		}
	}
}

// unused returns the bytes of memory that the process holds without objects in it, and those of objects that the latest garbage
// collection had left and that are gone since.
func unused() uint64 {
	samples := []runtimemetrics.Sample{{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(samples)
	free := samples[0].Value.Uint64() + samples[1].Value.Uint64()
	if objects, live := samples[2].Value.Uint64(), samples[3].Value.Uint64(); objects < live {
		free += live - objects
	}
	return free
}
