package objectid_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/objectid"
)

// jumpy is the machine's time with a wall clock that the test can set.
type jumpy struct {
	firn.TimeSource
	set atomic.Int64
}

func (j *jumpy) Wall() time.Time { return j.TimeSource.Wall().Add(time.Duration(j.set.Load())) }

func (j *jumpy) Sleep(ctx context.Context, d time.Duration) error {
	j.set.Add(int64(d)) // so that the wall clock shows d later
	return j.TimeSource.Sleep(ctx, min(d, time.Millisecond))
}

func TestConcurrentCallersGetUniqueIncreasingIDsWhileTheClockJumps(t *testing.T) {
	clock := &jumpy{TimeSource: firn.SystemTime()}
	g, err := objectid.New(objectid.Config{Time: clock})
	if err != nil {
		t.Fatal(err)
	}
	var (
		callers, setter sync.WaitGroup
		done            = make(chan struct{})
		mu              sync.Mutex
		seen            = map[objectid.ID]bool{}
	)
	setter.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				clock.set.Add(rand.Int64N(int64(20*time.Second)) - int64(10*time.Second))
			}
		}
	})
	for who := range 4 {
		callers.Go(func() {
			var last objectid.ID
			for range 100 {
				ids := make([]objectid.ID, 1+who*700)
				filled, err := g.Fill(t.Context(), ids)
				if err != nil || filled != len(ids) {
					t.Error(filled, err)
				}
				one, err := g.Next(t.Context())
				if err != nil {
					t.Error(err)
				}
				ids = append(ids, one)
				for _, id := range ids {
					if bytes.Compare(id[:], last[:]) <= 0 {
						t.Errorf("%v after %v", id, last)
					}
					last = id
				}
				mu.Lock()
				for _, id := range ids {
					if seen[id] {
						t.Errorf("%v was issued twice", id)
					}
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	close(done)
	setter.Wait()
}
