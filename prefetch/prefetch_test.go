package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefetch"
)

// counter makes 1, 2, 3, … and fails as it is told.
type counter struct {
	next atomic.Int64
	fail func(call int) (most int, err error) // most ids this call, and its error
	call int
}

func (c *counter) Fill(ctx context.Context, dst []int64) (int, error) {
	c.call++
	most, err := len(dst), error(nil)
	if c.fail != nil {
		if most, err = c.fail(c.call); err == nil || most > len(dst) {
			most = min(most, len(dst))
		}
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	for i := range dst[:most] {
		dst[i] = c.next.Add(1)
	}
	return most, err
}

func newBuffer(t *testing.T, cfg prefetch.Config[int64]) *prefetch.Buffer[int64] {
	t.Helper()
	b, err := prefetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func TestIDsComeInTheSourcesOrderAndNoneIsLost(t *testing.T) {
	b := newBuffer(t, prefetch.Config[int64]{Source: &counter{}, Size: 7})
	for want := range int64(1000) {
		if got, err := b.Next(t.Context()); err != nil || got != want+1 {
			t.Fatalf("id %d, %v, want %d", got, err, want+1)
		}
	}
}

func TestConcurrentCallersGetEveryIDOnceThoughTheSourceFails(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	boom := errors.New("boom")
	source := &counter{fail: func(int) (int, error) {
		if random.IntN(3) == 0 {
			return random.IntN(3), boom // some ids and an error, or none
		}
		return 1 + random.IntN(20), nil
	}}
	b := newBuffer(t, prefetch.Config[int64]{Source: source, Size: 20})
	var mu sync.Mutex
	seen := map[int64]bool{}
	var group sync.WaitGroup
	note := func(id int64) {
		mu.Lock()
		defer mu.Unlock()
		if seen[id] {
			t.Errorf("id %d twice", id)
		}
		seen[id] = true
	}
	for i := range 6 {
		group.Go(func() {
			few := make([]int64, 3)
			for got := 0; got < 2000; {
				switch i % 3 {
				case 0:
					id, err := b.Next(t.Context())
					if err == nil {
						note(id)
						got++
					} else if !errors.Is(err, boom) {
						t.Error(err)
						return
					}
				case 1:
					if id, ok := b.TryNext(); ok {
						note(id)
						got++
					}
				default:
					n := b.Take(few)
					for _, id := range few[:n] {
						note(id)
					}
					got += n
				}
			}
		})
	}
	group.Wait()
	for id := int64(1); id <= int64(len(seen)); id++ {
		if !seen[id] {
			t.Fatalf("id %d of %d was lost", id, len(seen))
		}
	}
}

func TestAnEmptyBufferGivesTheSourcesErrorAndRecoversByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var down atomic.Bool
		source := &counter{fail: func(int) (int, error) {
			if down.Load() {
				return 0, boom
			}
			return 100, nil
		}}
		b, err := prefetch.New(prefetch.Config[int64]{Source: source, Size: 10, Refill: 9})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		synctest.Wait()
		down.Store(true)
		for range 10 { // the outage goes unnoticed while the buffer lasts
			if _, err := b.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if _, err := b.Next(t.Context()); !errors.Is(err, boom) {
			t.Fatalf("empty in an outage: %v", err)
		}
		time.Sleep(time.Hour) // of virtual time
		calls := b.State().Failures
		if calls > 4*3600*2+30 || calls < 4*3600/2 {
			t.Errorf("%d attempts in an hour of outage, want about 4 a second", calls)
		}
		down.Store(false)
		time.Sleep(time.Second)
		if id, err := b.Next(t.Context()); err != nil || id != 11 {
			t.Errorf("after the outage: %d, %v, want 11", id, err)
		}
	})
}

func TestNextWaitsForASlowSourceUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sourceFunc(func(ctx context.Context, dst []int64) (int, error) {
			select {
			case <-time.After(time.Minute):
				dst[0] = 7
				return 1, nil
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		})
		b, err := prefetch.New(prefetch.Config[int64]{Source: source, Size: 4})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a second: %v", err)
		}
		if id, err := b.Next(t.Context()); err != nil || id != 7 {
			t.Errorf("after a minute: %d, %v", id, err)
		}
		waiting := make(chan error)
		for range 3 {
			go func() {
				_, err := b.Next(context.Background())
				waiting <- err
			}()
		}
		synctest.Wait()
		go b.Close()
		b.Close()
		for range 3 {
			if err := <-waiting; !errors.Is(err, firn.ErrClosed) {
				t.Errorf("a waiter at Close: %v", err)
			}
		}
		if _, ok := b.TryNext(); ok {
			t.Error("an id after Close")
		}
		if _, err := b.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

type sourceFunc func(context.Context, []int64) (int, error)

func (f sourceFunc) Fill(ctx context.Context, dst []int64) (int, error) { return f(ctx, dst) }

func TestABrokenSourceIsAnErrorAndNotABusyLoop(t *testing.T) {
	for name, n := range map[string]int{"nothing": 0, "more than asked": 99, "less than nothing": -1} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			b, err := prefetch.New(prefetch.Config[int64]{Size: 4, Source: sourceFunc(func(context.Context, []int64) (int, error) {
				calls++
				return n, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, err := b.Next(t.Context()); !errors.Is(err, prefetch.ErrSource) {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(10 * time.Second)
			b.Close()
			if calls > 100 {
				t.Errorf("%s: called %d times in ten seconds", name, calls)
			}
		})
	}
}

func TestIDsThatLayTooLongAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := prefetch.New(prefetch.Config[int64]{Source: &counter{}, Size: 10, MaxAge: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		synctest.Wait()
		time.Sleep(59 * time.Second)
		if id, err := b.Next(t.Context()); err != nil || id != 1 {
			t.Errorf("within the age: %d, %v", id, err)
		}
		time.Sleep(2 * time.Second)
		if id, err := b.Next(t.Context()); err != nil || id != 11 {
			t.Errorf("past it: %d, %v, want the first of a new fill", id, err)
		}
		if s := b.State(); s.Expired != 9 {
			t.Errorf("%+v", s)
		}
	})
}

func TestImpossibleSettingsAreRefusedAllAtOnce(t *testing.T) {
	_, err := prefetch.New(prefetch.Config[int64]{Size: 1 << 21, MaxAge: -1})
	if !errors.Is(err, firn.ErrRange) || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("%v", err)
	}
	if _, err := prefetch.New(prefetch.Config[int64]{Source: &counter{}, Size: 10, Refill: 10}); !errors.Is(err, firn.ErrRange) {
		t.Errorf("%v", err)
	}
}

func ExampleBuffer() {
	generator, err := firn.New(firn.Config{Worker: 7})
	if err != nil {
		panic(err)
	}
	b, err := prefetch.New(prefetch.Config[firn.ID]{Source: generator, Size: 100})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	first, err := b.Next(context.Background())
	if err != nil {
		panic(err)
	}
	second, err := b.Next(context.Background())
	fmt.Println(second > first, err)
	// Output: true <nil>
}

func BenchmarkNext(b *testing.B) {
	buffer, err := prefetch.New(prefetch.Config[int64]{Source: &counter{}, Size: 1 << 16})
	if err != nil {
		b.Fatal(err)
	}
	defer buffer.Close()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := buffer.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChannel(b *testing.B) {
	ch := make(chan int64, 1<<16)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for i := int64(0); ; i++ {
			select {
			case ch <- i:
			case <-stop:
				return
			}
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		<-ch
	}
}
