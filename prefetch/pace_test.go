package prefetch_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefetch"
)

// draw takes n ids, spread evenly over d.
func draw(t *testing.T, b *prefetch.Buffer[int64], n int, d time.Duration) {
	t.Helper()
	for range n {
		time.Sleep(d / time.Duration(n))
		if _, err := b.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheBufferGrowsAndShrinksWithDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := prefetch.New(prefetch.Config[int64]{
			Source: &counter{}, MinSize: 10, Size: 100_000, Refill: 75_000, Target: 10 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		synctest.Wait()
		if s := b.State(); s.Size != 10 || s.Buffered != 10 {
			t.Errorf("before the first call: %+v", s)
		}
		draw(t, b, 100_000, 100*time.Second) // 1,000 a second
		synctest.Wait()
		s := b.State()
		if s.Size < 9_000 || s.Size > 11_000 {
			t.Errorf("1,000 ids a second, to last 10 seconds, need a size of 10,000: %+v", s)
		}
		if s.Lasts < 7*time.Second || s.Lasts > 11*time.Second {
			t.Errorf("it lasts %v, want between three quarters and all of 10s", s.Lasts)
		}
		draw(t, b, 20_000, 2000*time.Second) // 10 a second
		synctest.Wait()
		if s := b.State(); s.Size < 90 || s.Size > 200 || s.Buffered > s.Size {
			t.Errorf("10 ids a second, to last 10 seconds, need a size of 100: %+v", s)
		}
		if s := b.State(); s.Issued != 120_000 {
			t.Errorf("%+v", s)
		}
	})
}

func TestABurstGrowsTheBufferToItsMaximumSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 0
		source := sourceFunc(func(_ context.Context, dst []int64) (int, error) {
			most = max(most, len(dst))
			time.Sleep(time.Millisecond)
			return len(dst), nil
		})
		b, err := prefetch.New(prefetch.Config[int64]{Source: source, MinSize: 1, Size: 500})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		few := make([]int64, 3000)
		if n, err := b.Fill(t.Context(), few); n != len(few) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		synctest.Wait()
		if s := b.State(); s.Size != 500 || s.Buffered > 500 || most > 500 {
			t.Errorf("%+v, asked for %d at most", s, most)
		}
	})
}

func TestAfterALastingErrorTheSourceIsCalledOnlyOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var down atomic.Bool
		down.Store(true)
		source := &counter{fail: func(int) (int, error) {
			if down.Load() {
				return 0, boom
			}
			return 100, nil
		}}
		b, err := prefetch.New(prefetch.Config[int64]{Source: source, Size: 10, Refill: 9, Pause: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for range 100 { // within the pause: the error at once
			if _, err := b.Next(t.Context()); !errors.Is(err, boom) {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if s := b.State(); s.Fills != 1 {
			t.Errorf("no caller wanted ids, yet the source was called %d times", s.Fills)
		}
		if _, err := b.Next(t.Context()); !errors.Is(err, boom) || b.State().Fills != 2 {
			t.Errorf("after the pause the caller waits for a new attempt: %v, %d", err, b.State().Fills)
		}
		down.Store(false)
		if _, err := b.Next(t.Context()); !errors.Is(err, boom) {
			t.Errorf("within the pause: %v", err)
		}
		time.Sleep(2 * time.Second)
		if id, err := b.Next(t.Context()); err != nil || id != 1 {
			t.Errorf("a caller after the pause got %d, %v, want the new id 1", id, err)
		}
		synctest.Wait()
		down.Store(true)
		for range 10 { // buffered ids are still issued
			if _, err := b.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b.Close()
		if _, err := b.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

func TestFillReturnsHowManyIDsItWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		source := &counter{fail: func(call int) (int, error) {
			if call < 3 {
				return 4, nil
			}
			return 0, boom
		}}
		b := newBuffer(t, prefetch.Config[int64]{Source: source, Size: 4})
		ids := make([]int64, 20)
		if n, err := b.Fill(t.Context(), ids); n != 8 || !errors.Is(err, boom) || ids[7] != 8 {
			t.Errorf("%d, %v", n, err)
		}
		b.Close()
	})
}

func TestASourceWithSmallBatchesStillFillsTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &counter{fail: func(int) (int, error) { return 10, nil }}
		b := newBuffer(t, prefetch.Config[int64]{Source: source, Size: 100, Refill: 50})
		synctest.Wait()
		if s := b.State(); s.Buffered != 100 || s.Fills != 10 {
			t.Errorf("%+v", s)
		}
		draw(t, b, 49, time.Second)
		synctest.Wait()
		if s := b.State(); s.Fills != 10 {
			t.Errorf("filled above the mark: %+v", s)
		}
		draw(t, b, 1, time.Second)
		synctest.Wait()
		if s := b.State(); s.Buffered != 100 || s.Fills != 15 {
			t.Errorf("%+v", s)
		}
		b.Close()
	})
}
