//go:build !race

// A thousand clients of each kind exceed the race detector's memory; the matrix runs under it.

package leases

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// TestAThousandJoinAtOnce lets a thousand clients, as of separate processes, acquire workers of one
// pool at the same moment, and then fills the pool.
func TestAThousandJoinAtOnce(t *testing.T) {
	const many = 1000
	table := "| store | calls without contention | s to the last of 1,000 | conflicts, median | most |\n| --- | --- | --- | --- | --- |\n"
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) { // not in parallel, because they are timed
			b := m.make(t)
			ctx, cancel := context.WithTimeout(context.Background(), 12*time.Minute) // 1,000 newcomers read half a million znodes
			defer cancel()
			_, err := joining(t, b.open(t), "default").Acquire(ctx, ask(t)) // creates the pool
			check(t, err)
			s, calm := count(b.open(t))
			_, err = joining(t, s, "default").Acquire(ctx, ask(t))
			check(t, err)
			if calls := calm.reads.Load() + calm.writes.Load(); calls > 3 || calm.writes.Load() != 1 {
				t.Errorf("%d round trips to take a worker without contention, %d of them writes", calls, calm.writes.Load())
			}
			var (
				ready, done sync.WaitGroup
				mu          sync.Mutex
				begin       = make(chan struct{})
				late, out   atomic.Int64
				conflicts   []int64
				workers     = map[int64]bool{}
			)
			handles := make([]store.Store, many)
			opening := make(chan struct{}, 32) // the test times joining, not connecting
			for i := range handles {
				ready.Add(1)
				done.Go(func() {
					opening <- struct{}{}
					inner, err := storeurl.Open(ctx, b.url+b.few)
					<-opening
					if err != nil {
						t.Errorf("client %d: %v", i, err)
						ready.Done()
						return
					}
					handles[i] = inner
					_, err = inner.Get(ctx, "connects")
					if err != nil && !errors.Is(err, store.ErrNotFound) {
						t.Errorf("client %d: %v", i, err)
					}
					s, c := count(inner)
					slots := joining(t, s, "default")
					ready.Done()
					<-begin
					grant, err := slots.Acquire(ctx, ask(t))
					for errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil { // the machine is too slow for so many
						late.Add(1)
						time.Sleep(rand.N(10 * time.Second)) // until such a process is started again; a crowd that never pauses may never get in
						grant, err = slots.Acquire(ctx, ask(t))
					}
					if errors.Is(err, lease.ErrFull) && late.Load() > 0 { // a claim whose answer was lost holds its worker, too
						out.Add(1)
						return
					}
					if err != nil {
						t.Errorf("process %d: %v", i, err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if workers[grant.Worker] {
						t.Errorf("worker %d was granted twice", grant.Worker)
					}
					workers[grant.Worker] = true
					conflicts = append(conflicts, c.conflicts.Load())
				})
			}
			ready.Wait()
			begun := time.Now()
			close(begin)
			done.Wait()
			took := time.Since(begun)
			for _, s := range handles {
				if s != nil {
					check(t, s.Close())
				}
			}
			if n := late.Load(); n > 0 {
				t.Logf("%d tries ended without an answer from the store, and were repeated", n)
			}
			slices.Sort(conflicts)
			if held := len(conflicts); held+int(out.Load()) != many || out.Load() > late.Load() {
				t.Fatalf("%d of %d hold a worker, %d found the pool full", held, many, out.Load())
			}
			if median := conflicts[len(conflicts)/2]; median > 5 {
				t.Errorf("%d conflicts in the median", median)
			}
			table += fmt.Sprintf("| %s | %d reads, %d write, %d clock | %.1f | %d | %d |\n", m.name, calm.reads.Load(), calm.writes.Load(), calm.clock.Load(), took.Seconds(), conflicts[len(conflicts)/2], conflicts[len(conflicts)-1])
			if late.Load() > 0 {
				return // how many workers are held is not known
			}

			// 1,002 are held. The last 22 fill the pool, and then it reports that it is full.
			rest := b.open(t)
			for range 22 {
				_, err := joining(t, rest, "default").Acquire(ctx, ask(t))
				check(t, err)
			}
			var full *lease.FullError
			_, err = joining(t, rest, "default").Acquire(ctx, ask(t))
			if !errors.As(err, &full) || full.Workers != 1024 || full.Next.Before(begun.Add(59*time.Minute)) { // their windows are an hour
				t.Errorf("beyond 1,024: %v", err)
			}
		})
	}
	t.Log("\n" + table)
	if file := os.Getenv("FIRN_JOIN"); file != "" {
		check(t, os.WriteFile(file, []byte(table), 0o644))
	}
}
