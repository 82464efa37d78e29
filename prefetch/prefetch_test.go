package prefetch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefetch"
)

// counter makes 1, 2, 3, … and fails as its fail function decides.
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
	t.Cleanup(func() { b.Close() })
	return b
}

func TestIDsKeepTheSourcesOrderWithoutLoss(t *testing.T) {
	b := newBuffer(t, prefetch.Config[int64]{Source: &counter{}, Size: 7})
	for want := range int64(1000) {
		if got, err := b.Next(t.Context()); err != nil || got != want+1 {
			t.Fatalf("id %d, %v, want %d", got, err, want+1)
		}
	}
}

func TestConcurrentCallersGetEveryIDOnceDespiteSourceErrors(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	boom := errors.New("boom")
	source := &counter{fail: func(int) (int, error) {
		if random.IntN(3) == 0 {
			return random.IntN(3), boom // no, one or two ids, and an error
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
					n := b.TryFill(few)
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

func TestAnEmptyBufferReturnsTheSourcesErrorAndRecovers(t *testing.T) {
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
		for range 10 { // callers do not notice the outage while the buffer has ids
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
		if _, err := b.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "prefetch: wait for an id: context deadline exceeded" {
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
		for range 2 {
			if err := b.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
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
			if _, err := b.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "broken source") {
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

func TestIDsOlderThanMaxAgeAreDropped(t *testing.T) {
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

func TestAllInvalidSettingsAreReportedAtOnce(t *testing.T) {
	_, err := prefetch.New(prefetch.Config[int64]{Size: 1 << 21, MaxAge: -1})
	if !errors.Is(err, firn.ErrRange) || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("%v", err)
	}
	if _, err := prefetch.New(prefetch.Config[int64]{Source: &counter{}, Size: 10, Refill: 10}); !errors.Is(err, firn.ErrRange) {
		t.Errorf("%v", err)
	}
}

// A nil pointer is what a call returned whose error was ignored.
func TestNoSourceIsAnError(t *testing.T) {
	for _, source := range []prefetch.Source[int64]{nil, (*counter)(nil), sourceFunc(nil)} {
		b, err := prefetch.New(prefetch.Config[int64]{Source: source})
		if !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%T: %v, %v", source, b, err)
		}
	}
}

func TestDurationsOutOfRangeAreNamedWithTheirFieldsAndLimits(t *testing.T) {
	for want, change := range map[string]func(*prefetch.Config[int64]){
		"max age 1ns is out of range: 1ms to 2562047h0m0s are allowed":                        func(c *prefetch.Config[int64]) { c.MaxAge = 1 },
		"max age 999.999µs is out of range: 1ms to 2562047h0m0s are allowed":                  func(c *prefetch.Config[int64]) { c.MaxAge = time.Millisecond - 1 },
		"max age -1ns is out of range: 1ms to 2562047h0m0s are allowed":                       func(c *prefetch.Config[int64]) { c.MaxAge = -1 },
		"pause -1s is out of range: 0s to 24h0m0s are allowed":                                func(c *prefetch.Config[int64]) { c.Pause = -time.Second },
		"pause 24h0m0.000000001s is out of range: 0s to 24h0m0s are allowed":                  func(c *prefetch.Config[int64]) { c.Pause = 24*time.Hour + 1 },
		"prefetch: Config.Target: target -1s is out of range: 0s to 2562047h0m0s are allowed": func(c *prefetch.Config[int64]) { c.Target = -time.Second },
	} {
		cfg := prefetch.Config[int64]{Source: &counter{}}
		change(&cfg)
		_, err := prefetch.New(cfg)
		var outside *firn.RangeError
		if !errors.As(err, &outside) || !strings.Contains(err.Error(), want) || !strings.EqualFold(outside.Field, strings.ReplaceAll(outside.What, " ", "")) {
			t.Errorf("%#v, want %q", outside, want)
		}
	}
}

// drawn records how long the buffer waits after failures.
type drawn struct {
	firn.TimeSource
	waits chan time.Duration
}

func (d drawn) Sleep(ctx context.Context, wait time.Duration) error {
	d.waits <- wait
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestTheLongestPauseLastsAboutAsLongAsConfigured(t *testing.T) {
	const longest = 24 * time.Hour
	for random, want := range map[uint64]time.Duration{0: longest / 2, uint64(longest) - 1: longest*3/2 - 1, 1<<64 - 1: 0} {
		waits := make(chan time.Duration, 1)
		b := newBuffer(t, prefetch.Config[int64]{
			Source: &counter{fail: func(int) (int, error) { return 0, errors.New("boom") }},
			Pause:  longest, Time: drawn{firn.SystemTime(), waits}, Random: func() uint64 { return random },
		})
		if d := <-waits; d < longest/2 || d >= longest*3/2 || want != 0 && d != want {
			t.Errorf("drawing %d it waits for %v, want %v", random, d, want)
		}
		b.Close()
	}
}

// late simulates a loaded machine: each wait returns a second late.
type late struct{ firn.TimeSource }

func (late) Go(do func()) { go do() }

func (late) Wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		time.Sleep(time.Second) // of virtual time
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (late) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func TestAWaitingCallerGetsAnIDWhateverItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &counter{}
		slow := sourceFunc(func(ctx context.Context, dst []int64) (int, error) {
			time.Sleep(time.Second)
			return source.Fill(ctx, dst)
		})
		b := newBuffer(t, prefetch.Config[int64]{Source: slow, Size: 10, MaxAge: time.Millisecond, Time: late{firn.SystemTime()}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ids := make([]int64, 3)
		if n, err := b.Fill(ctx, ids); n != 3 || err != nil || ids[0] != 1 {
			t.Errorf("%d, %v, %v", n, ids, err)
		}
		if s := b.State(); s.Fills > 5 || s.Issued != 3 {
			t.Errorf("%+v", s)
		}
		got := make(chan int64, 4)
		for range cap(got) { // together they take one whole batch
			go func() {
				id, err := b.Next(ctx)
				if err != nil {
					t.Error(err)
				}
				got <- id
			}()
		}
		seen := map[int64]bool{}
		for range cap(got) {
			seen[<-got] = true
		}
		if len(seen) != cap(got) || seen[0] {
			t.Errorf("%v", seen)
		}
		b.Close()
	})
}

func TestASourceSlowerThanMaxAgeIsCalledOnlyOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &counter{}
		slow := sourceFunc(func(ctx context.Context, dst []int64) (int, error) {
			time.Sleep(time.Second)
			return source.Fill(ctx, dst)
		})
		b := newBuffer(t, prefetch.Config[int64]{Source: slow, Size: 10, MaxAge: time.Millisecond})
		for range 100 {
			if _, err := b.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		if s := b.State(); s.Fills > 200 {
			t.Errorf("%+v", s)
		}
		fills := b.State().Fills
		time.Sleep(time.Hour)
		if s := b.State(); s.Fills != fills {
			t.Errorf("no caller wanted ids, yet the source was called %d times", s.Fills-fills)
		}
		b.Close()
	})
}

func TestAWaiterServedAsItsContextEndsReturnsTheID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		give := make(chan struct{})
		source := &counter{}
		held := sourceFunc(func(ctx context.Context, dst []int64) (int, error) {
			<-give
			cancel()
			return source.Fill(ctx, dst[:1])
		})
		b := newBuffer(t, prefetch.Config[int64]{Source: held, Size: 4})
		type answer struct {
			id  int64
			err error
		}
		first, second := make(chan answer, 1), make(chan answer, 1)
		go func() { id, err := b.Next(ctx); first <- answer{id, err} }()
		synctest.Wait()
		go func() { id, err := b.Next(context.Background()); second <- answer{id, err} }()
		synctest.Wait()
		close(give)
		a, c := <-first, <-second
		// Whichever event the first caller sees first, no id is lost or issued twice.
		if a.err != nil && (a.id != 0 || c != answer{1, nil}) || a.err == nil && (a.id != 1 || c != answer{2, nil}) {
			t.Errorf("%+v, %+v", a, c)
		}
		b.Close()
	})
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
