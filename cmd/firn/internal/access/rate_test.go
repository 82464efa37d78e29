package access_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

func TestRatesAreParsedAndFormatted(t *testing.T) {
	for _, text := range []string{"1/s", "50000/s", "600/m", "10/h", "1000000000/s"} {
		r, err := access.ParseRate(text)
		if err != nil || r.String() != text || r.IsZero() {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "5", "0/s", "-1/s", "1.5/s", "5/", "5/d", "5/s/s", "x/s", "1000000001/s", "99999999999999999999/s"} {
		if _, err := access.ParseRate(text); err == nil || !strings.Contains(err.Error(), "as in 50000/s") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// clock is a monotonic clock that moves only by pass.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Duration   { return time.Duration(c.at.Load()) }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

func TestABucketHoldsTheRate(t *testing.T) {
	var c clock
	b := access.NewBucket("token shop", access.Rate{Count: 1000, Per: time.Second}, c.now)
	for i := range 1000 {
		if _, ok := b.Take(1); !ok {
			t.Fatalf("id %d of the first second was held back", i)
		}
	}
	if wait, ok := b.Take(1); ok || wait != time.Millisecond {
		t.Errorf("after a second's worth: %v, %v", wait, ok)
	}
	for range 5000 { // steps of 0.7 ms: 3.5 s
		c.pass(700 * time.Microsecond)
		b.Take(1)
	}
	// The rate allowed 3500 more ids, and all were requested.
	if wait, ok := b.Take(1); ok || wait > time.Millisecond {
		t.Errorf("in the long run: %v, %v", wait, ok)
	}
	c.pass(time.Hour) // no more than a second's worth is kept
	if _, ok := b.Take(1000); !ok {
		t.Error("a rested bucket is full")
	}
	if _, ok := b.Take(1); ok {
		t.Error("a rested bucket has more than a second's worth")
	}
}

func TestABatchAboveTheRateIsServedAndDelaysLaterOnes(t *testing.T) {
	var c clock
	b := access.NewBucket("token shop", access.Rate{Count: 10, Per: time.Second}, c.now)
	if _, ok := b.Take(105); !ok {
		t.Fatal("a batch above the rate was held back for ever")
	}
	wait, ok := b.Take(1)
	if ok || wait != 9600*time.Millisecond {
		t.Errorf("the debt of 95 ids and the next: %v, %v", wait, ok)
	}
	c.pass(wait - 1)
	if _, ok := b.Take(1); ok {
		t.Error("served before it said")
	}
	c.pass(1)
	if _, ok := b.Take(1); !ok {
		t.Error("not served when it said")
	}
	b.Return(1)
	if _, ok := b.Take(1); !ok {
		t.Error("what was returned is gone")
	}
}

func TestTheLargestBatchAtTheLowestRateDoesNotOverflow(t *testing.T) {
	var c clock
	b := access.NewBucket("token shop", access.Rate{Count: 1, Per: time.Hour}, c.now)
	b.Take(10_000_000)
	if wait, ok := b.Take(10_000_000); ok || wait < time.Hour {
		t.Errorf("%v, %v", wait, ok)
	}
}

func TestConcurrentCallersTakeNoMoreThanTheRate(t *testing.T) {
	var c clock
	b := access.NewBucket("token shop", access.Rate{Count: 5000, Per: time.Second}, c.now)
	var taken atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 2000 {
				if _, ok := b.Take(1); ok {
					taken.Add(1)
				}
			}
		})
	}
	group.Wait()
	if taken.Load() != 5000 {
		t.Errorf("%d ids of 5000", taken.Load())
	}
}

func BenchmarkTake(b *testing.B) {
	started := time.Now()
	bucket := access.NewBucket("token shop", access.Rate{Count: 1_000_000_000, Per: time.Second}, func() time.Duration { return time.Since(started) })
	for b.Loop() {
		bucket.Take(1)
	}
}

// All callers of a namespace wait until the debt of one request is paid.
func TestARequestMakesOnlyAShortDebtInASharedBucket(t *testing.T) {
	var c clock
	b := access.NewSharedBucket("namespace users", access.Rate{Count: 600, Per: time.Minute}, c.now)
	var f *failure.Failure
	if err := b.Charge(701); !errors.As(err, &f) || f.Status != 413 || !strings.Contains(f.Message, "namespace users has a rate of 600/m, so 701 ids are too many at once: ask for at most 700") {
		t.Fatal(err)
	}
	if left := b.Left(1000); left != 600 {
		t.Errorf("%d are left", left)
	}
	if err := b.Charge(700); err != nil {
		t.Fatal(err)
	}
	if wait, ok := b.Take(1); ok || wait != 10*time.Second+100*time.Millisecond {
		t.Errorf("the next id in %v, %v", wait, ok)
	}
	if left := b.Left(1000); left != 0 {
		t.Errorf("%d are left", left)
	}
	c.pass(10*time.Second + 100*time.Millisecond)
	if wait, ok := b.Take(200); ok || wait != 9900*time.Millisecond { // 100 by then, and a debt of 100
		t.Errorf("200 ids in %v, %v", wait, ok)
	}
	if left := b.Left(1000); left != 1 {
		t.Errorf("%d are left", left)
	}
	c.pass(9900 * time.Millisecond)
	if wait, ok := b.Take(200); !ok {
		t.Errorf("not served when it said, but in %v", wait)
	}
	slow := access.NewSharedBucket("namespace few", access.Rate{Count: 1, Per: time.Hour}, c.now)
	if err := slow.Charge(1); err != nil {
		t.Error(err)
	}
	if err := slow.Charge(2); !errors.As(err, &f) || !strings.Contains(f.Message, "at most 1") {
		t.Error(err)
	}
}
