package segment

import (
	"context"
	"fmt"
	"sync"

	"github.com/firn-id/firn/internal/turns"
)

// giveBack stops all names and gives back what they leave unused, several at a time. After
// a failure the rest is not tried: the store is away, and there may be many.
func (s *Segments) giveBack(ctx context.Context) error {
	to, ok := s.source.(Returner)
	calls := turns.Pool{Time: s.cfg.Time, Most: s.cfg.Fetches}
	var mu sync.Mutex // guards given and failed
	names, given := 0, 0
	var failed error // the first
	for n := range s.All() {
		unused := n.stop()
		if unused.Count == 0 || !ok {
			continue
		}
		names++
		calls.Go(func() {
			limited, cancel := turns.WithTimeout(ctx, s.cfg.Time, callTimeout)
			defer cancel()
			back, err := to.Return(limited, n.name, unused)
			mu.Lock()
			defer mu.Unlock()
			if back {
				given++
			}
			if err != nil && failed == nil {
				failed = err
				calls.Close()
			}
		})
	}
	if names == 0 {
		return nil
	}
	// Each call ends with ctx, so this does too.
	if err := calls.Wait(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	s.cfg.Log.Info("segments closed", "names", names, "given back", given)
	if failed != nil {
		return fmt.Errorf("%w; unused ids of %d names stay unused", failed, names-given)
	}
	return nil
}
