package segment_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefetch"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

var _ prefetch.Source[firn.ID] = (*segment.Namespace)(nil)

func mustOpen(t *testing.T, cfg segment.Config) *segment.Segments {
	t.Helper()
	s, err := segment.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// slow is a store-like source whose answers take d.
func slow(d time.Duration, calls, most *atomic.Int64) sourceFunc {
	var mu sync.Mutex
	next := map[string]firn.ID{}
	var under atomic.Int64
	return func(ctx context.Context, name string, ask segment.Ask) (segment.Range, error) {
		calls.Add(1)
		now := under.Add(1)
		defer under.Add(-1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return segment.Range{}, context.Cause(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		r := segment.Range{First: next[name] + 1, Count: ask.Step, Stride: 1}
		next[name] = r.Last()
		return r, nil
	}
}

// TestConcurrentCallersOfSmallStepsWaitAndDoNotFail has every range end at once
// under full load: no id is issued twice, lost or out of order, and no call fails.
func TestConcurrentCallersOfSmallStepsWaitAndDoNotFail(t *testing.T) {
	for _, step := range []int64{1, 3, 100, 5000} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			mem := memstore.New(nil)
			var mu sync.Mutex
			seen := map[firn.ID]bool{}
			const each = 3000
			for range 2 { // the second begins where the first has given back
				s := mustOpen(t, segment.Config{Store: mem, MinStep: step, MaxStep: step, Max: 1 << 40})
				n, err := s.Namespace("orders")
				if err != nil {
					t.Fatal(err)
				}
				var group sync.WaitGroup
				for i := range 6 {
					group.Go(func() {
						mine := make([]firn.ID, 0, each)
						for len(mine) < each {
							var err error
							switch i % 3 {
							case 0:
								var id firn.ID
								id, err = n.Next(t.Context())
								mine = append(mine, id)
							case 1:
								var r segment.Range
								r, err = n.Take(t.Context(), min(17, each-len(mine)))
								mine = r.AppendTo(mine)
							default:
								ids := make([]firn.ID, min(23, each-len(mine)))
								_, err = n.Fill(t.Context(), ids)
								mine = append(mine, ids...)
							}
							if err != nil {
								t.Error(err)
								return
							}
						}
						mu.Lock()
						defer mu.Unlock()
						last := firn.ID(0)
						for _, id := range mine {
							if id <= last || seen[id] {
								t.Errorf("id %d after %d, seen before: %v", id, last, seen[id])
							}
							seen[id], last = true, id
						}
					})
				}
				group.Wait()
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for id := firn.ID(1); id <= 2*6*each; id++ {
				if !seen[id] {
					t.Fatalf("id %d was lost", id)
				}
			}
		})
	}
}

func TestIDsOfClosingSegmentsAreEitherGivenBackOrIssued(t *testing.T) {
	mem := memstore.New(nil)
	var mu sync.Mutex
	seen := map[firn.ID]bool{}
	for range 50 {
		s := mustOpen(t, segment.Config{Store: mem, MinStep: 1000})
		n, err := s.Namespace("orders")
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for {
					id, err := n.Next(t.Context())
					if errors.Is(err, firn.ErrClosed) {
						return
					}
					mu.Lock()
					if err != nil || seen[id] {
						t.Errorf("id %d, %v, seen before: %v", id, err, seen[id])
					}
					seen[id] = true
					mu.Unlock()
				}
			})
		}
		for { // let them get going
			mu.Lock()
			going := len(seen)%7 == 3
			mu.Unlock()
			if going {
				break
			}
			runtime.Gosched()
		}
		group.Go(func() { _ = s.Close(context.Background()) })
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		group.Wait()
	}
	for id := range firn.ID(len(seen)) {
		if !seen[id+1] {
			t.Fatalf("id %d was lost", id+1)
		}
	}
}

func TestCallersShareOneFetchAndLeaveItWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, most atomic.Int64
		s := mustOpen(t, segment.Config{Source: slow(5*time.Second, &calls, &most)})
		n, err := s.Namespace("orders")
		if err != nil {
			t.Fatal(err)
		}
		var ids sync.Map
		var group sync.WaitGroup
		for range 500 {
			group.Go(func() {
				id, err := n.Next(t.Context())
				if err != nil {
					t.Error(err)
				}
				ids.Store(id, true)
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		started := time.Now()
		if _, err := n.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != time.Second {
			t.Errorf("%v after %v", err, time.Since(started))
		}
		group.Wait()
		if calls.Load() > 2 { // the first range, and the one after it, since many ids are gone
			t.Errorf("%d fetches", calls.Load())
		}
		for id := firn.ID(1); id <= 500; id++ {
			if _, ok := ids.Load(id); !ok {
				t.Errorf("id %d was lost", id)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestFetchesInProgressAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, most atomic.Int64
		s := mustOpen(t, segment.Config{Source: slow(time.Second, &calls, &most), Fetches: 7})
		started := time.Now()
		var group sync.WaitGroup
		for i := range 70 {
			group.Go(func() {
				if id, err := s.Next(t.Context(), fmt.Sprint("name-", i)); err != nil || id != 1 {
					t.Errorf("%d, %v", id, err)
				}
			})
		}
		group.Wait()
		if most.Load() != 7 || time.Since(started) != 10*time.Second {
			t.Errorf("%d at once, %v", most.Load(), time.Since(started))
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAFetchThatHangsEndsAndCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, most atomic.Int64
		s := mustOpen(t, segment.Config{Source: slow(time.Hour, &calls, &most)})
		started := time.Now()
		_, err := s.Next(t.Context(), "orders")
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || err.Error() != "segment: no answer within 10s: context deadline exceeded" || time.Since(started) != 10*time.Second {
			t.Errorf("%v after %v; the caller's context lasts", err, time.Since(started))
		}
		time.Sleep(time.Second)
		waiting := make(chan error, 1)
		go func() {
			_, err := s.Next(context.Background(), "orders")
			waiting <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		started = time.Now()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != 3*time.Second {
			t.Errorf("Close: %v after %v", err, time.Since(started))
		}
		if err := <-waiting; !errors.Is(err, firn.ErrClosed) {
			t.Errorf("a waiter at Close: %v", err)
		}
		synctest.Wait()
	})
}

func TestCloseWakesCallersThatWaitForAFetchThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := mustOpen(t, segment.Config{Source: sourceFunc(func(context.Context, string, segment.Ask) (segment.Range, error) {
			<-hangs
			return segment.Range{First: 1, Count: 10}, nil
		})})
		var woken error
		go func() { _, woken = s.Next(context.Background(), "orders") }()
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Close(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if !errors.Is(woken, firn.ErrClosed) {
			t.Errorf("a waiting caller got: %v", woken)
		}
		close(hangs)
	})
}

func TestCloseGivesBackTheRangeOfAFetchInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		delayed := before{mem, func() { time.Sleep(time.Second) }}
		s := mustOpen(t, segment.Config{Store: delayed, Ahead: 1})
		if id, err := s.Next(t.Context(), "orders"); err != nil || id != 1 {
			t.Errorf("%d, %v", id, err)
		}
		synctest.Wait() // the next range is being fetched
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		again := mustOpen(t, segment.Config{Store: mem})
		if id, err := again.Next(t.Context(), "orders"); err != nil || id != 2 {
			t.Errorf("%d, %v: want no gap", id, err)
		}
		if err := again.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// hundredThousand opens so many names, and returns what one costs in bytes.
func hundredThousand(t testing.TB, use bool) float64 {
	const names = 100_000
	source := sourceFunc(func(_ context.Context, _ string, ask segment.Ask) (segment.Range, error) {
		return segment.Range{First: ask.Above + 1, Count: ask.Step, Stride: 1}, nil
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	s, err := segment.New(segment.Config{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		n, err := s.Namespace(fmt.Sprint("tenant-", i, ".orders"))
		if err != nil {
			t.Fatal(err)
		}
		if use { // a range in use, another ahead
			if r, err := n.Take(context.Background(), 500); err != nil || r.Len() != 500 {
				t.Fatal(err)
			}
			if _, err := n.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
		runtime.Gosched() // until fetches under way have ended
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines for %d idle names", now-goroutines, names)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := float64(after.HeapAlloc+after.StackInuse) - float64(before.HeapAlloc+before.StackInuse)
	runtime.KeepAlive(s)
	return used / names
}

func TestAnIdleNameCostsLessThanAKibibyte(t *testing.T) {
	for _, use := range []bool{false, true} {
		each := hundredThousand(t, use)
		t.Logf("used %v: %.0f bytes a name", use, each)
		if each > 1024 {
			t.Errorf("%.0f bytes a name", each)
		}
	}
}

func TestANameIsTheSameForAllConcurrentFirstCallers(t *testing.T) {
	s, err := segment.New(segment.Config{Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	const rounds, callers = 20_000, 2
	var got [callers][rounds]*segment.Namespace
	var here atomic.Int64
	var group sync.WaitGroup
	for caller := range got {
		group.Go(func() {
			for round := range got[caller] {
				name := fmt.Sprint("n", round)
				for here.Add(1); here.Load() < int64(callers*(round+1)); {
					runtime.Gosched()
				}
				n, err := s.Namespace(name)
				if err != nil {
					t.Error(err)
				}
				got[caller][round] = n
			}
		})
	}
	group.Wait()
	if got[0] != got[1] {
		t.Error("there are two of one name")
	}
}
