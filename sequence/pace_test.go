package sequence

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// delays lets a pace make additions until it has taken n breaks, and returns after how
// many additions each came, and how long it was.
func delays(p *pace, n int, chance uint64) (said []string) {
	for wins := 0; len(said) < n && wins < 1000; wins++ {
		if d := p.delay(p.ended, func() uint64 { return chance }); d > 0 {
			said = append(said, fmt.Sprint(wins, " ", d))
			wins = 0
		}
		p.wins++
	}
	return said
}

func TestALoneProcessTakesABreakNowAndThen(t *testing.T) {
	for _, c := range []struct {
		trip   time.Duration
		chance uint64
		want   string
	}{
		{0, 1, "[16 100µs 32 100µs 64 100µs 128 100µs 128 100µs]"},
		{time.Millisecond, 1, "[16 2ms 32 2ms 64 2ms 128 2ms 128 2ms]"},
		{time.Millisecond, 2, "[16 4ms 32 4ms 64 4ms 128 4ms 128 4ms]"},
		{time.Millisecond, 1 << 5, "[16 64ms 32 64ms 64 64ms 128 64ms 128 64ms]"},
		{time.Millisecond, 1 << 60, "[16 64ms 32 64ms 64 64ms 128 64ms 128 64ms]"},
		{time.Minute, 1, "[16 40ms 32 40ms 64 40ms 128 40ms 128 40ms]"},
		{time.Minute, 4, "[16 100ms 32 100ms 64 100ms 128 100ms 128 100ms]"},
	} {
		if got := fmt.Sprint(delays(&pace{trip: c.trip, ended: time.Hour}, 5, c.chance)); got != c.want {
			t.Errorf("trips of %v, chance %d: %s, want %s", c.trip, c.chance, got, c.want)
		}
	}
	p := &pace{trip: time.Millisecond, ended: time.Hour, wins: 100}
	if d := p.delay(p.ended+2*time.Millisecond+1, func() uint64 { return 1 }); d != 0 || p.wins != 0 {
		t.Errorf("after a break of its own: %v, %d", d, p.wins)
	}
	p.wins = 100
	if d := p.delay(p.ended+2*time.Millisecond, func() uint64 { return 1 }); d != 2*time.Millisecond {
		t.Errorf("after two trips, which are no break: %v", d)
	}
}

func TestAProcessThatSawOthersWaitsARandomTime(t *testing.T) {
	p := &pace{trip: time.Millisecond, ended: time.Hour}
	for i, by := range []string{"a", "b", "a", "", "b"} {
		p.see(time.Hour, by)
		if want := min(i+1, 2); p.others != want {
			t.Errorf("%d others were seen, want %d", p.others, want)
		}
	}
	most := func() uint64 { return uint64(4*time.Millisecond) - 1 } // twice a trip for each of two
	if d := p.delay(time.Hour, most); d != 4*time.Millisecond-1 {
		t.Error(d)
	}
	if d := p.delay(time.Hour+time.Millisecond, most); d != 3*time.Millisecond-1 {
		t.Errorf("some of it has passed: %v", d)
	}
	if d := p.delay(time.Hour+time.Second, most); d != 0 || p.others != 2 {
		t.Errorf("all of it has passed: %v, %d", d, p.others)
	}
	if d := p.delay(time.Hour+time.Second+1, most); d != 0 || p.others != 0 || len(p.seen) != 0 {
		t.Errorf("the others have gone: %v, %d", d, p.others)
	}
	for i := range 41 {
		p.see(time.Hour, fmt.Sprint(i))
	}
	if p.others != maxSeen || len(p.seen) != maxSeen || p.seen[maxSeen-1] != "40" {
		t.Errorf("of many %d are distinguished: %v", p.others, p.seen)
	}
	for range maxSeen {
		p.see(time.Hour, "")
	}
	if p.others != 0 {
		t.Errorf("%d others are still seen", p.others)
	}
	p.see(time.Hour, "a")
	p.see(time.Hour+time.Second, "") // which says nothing of when another was here
	if p.delay(time.Hour+time.Second+1, most); p.others != 0 || p.bout != minBout {
		t.Errorf("%d others are seen a second later, the next break is after %d", p.others, p.bout)
	}
}

func TestAPaceLearnsHowLongACallTakes(t *testing.T) {
	p := &pace{}
	for range 100 {
		p.took(time.Millisecond)
	}
	if p.trip < 999*time.Microsecond || p.trip > time.Millisecond {
		t.Error(p.trip)
	}
}

// The time-out is for all attempts of a row, from the first that failed.
func TestARowOfAttemptsBeginsWithItsFirst(t *testing.T) {
	b := &backoff{}
	random := func() uint64 { return 0 }
	b.failed(false, 1, time.Hour, random)
	if !b.within(time.Second, time.Hour) || b.delay() != 0 {
		t.Errorf("the second is made at once: %+v", b)
	}
	b.failed(true, 1, time.Hour+500*time.Millisecond, random)
	if !b.within(time.Second, time.Hour+time.Second-1) || b.within(time.Second, time.Hour+time.Second) {
		t.Errorf("two failed: %+v", b)
	}
	b.failed(true, 2, time.Hour+time.Minute, random) // somebody did write
	if b.vain != 1 || b.conflicts != 2 || b.lost != 1 || !b.within(time.Second, time.Hour+time.Minute) || b.delay() != 0 {
		t.Errorf("a row of its own: %+v", b)
	}
	b.failed(true, 2, time.Hour+time.Minute, random)
	if wait := b.delay(); wait == 0 || b.delay() != 0 {
		t.Errorf("it waits %v, once: %+v", wait, b)
	}
	b.failed(false, 3, time.Hour+time.Minute, random) // a write that was lost says nothing of who wrote
	if b.vain != 3 {
		t.Errorf("%d attempts in a row: %+v", b.vain, b)
	}
	for want, b := range map[string]backoff{
		"others were quicker 2 times": {conflicts: 2}, "3 writes were not confirmed": {lost: 3},
		"others were quicker 2 times, and 3 writes were not confirmed": {conflicts: 2, lost: 3},
	} {
		if got := b.why(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// distant is a store whose calls take 8 ms.
type distant struct{ store.Store }

func (d distant) Get(ctx context.Context, key string) (store.Entry, error) {
	time.Sleep(8 * time.Millisecond)
	return d.Store.Get(ctx, key)
}

func (d distant) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	time.Sleep(8 * time.Millisecond)
	return d.Store.CompareAndSwap(ctx, key, old, value)
}

func TestReadsAndWritesSetThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, err := New(Config{Store: distant{memstore.New(nil)}})
		if err != nil {
			t.Fatal(err)
		}
		txn, err := all.Namespace("txn")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []time.Duration{1875 * time.Microsecond, 2640625} { // a read and a write, and a write
			if _, err := txn.Next(t.Context()); err != nil || txn.adder.pace.trip != want {
				t.Errorf("%v, %v, want %v", txn.adder.pace.trip, err, want)
			}
		}
	})
}

// A record that was read before says nothing of who is here now.
func TestWhoHasNotWrittenSinceIsNotSeenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memstore.New(nil))
		name := func() *Namespace {
			all, err := New(Config{Store: f})
			if err != nil {
				t.Fatal(err)
			}
			txn, err := all.Namespace("txn")
			if err != nil {
				t.Fatal(err)
			}
			return txn
		}
		if _, err := name().Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap {
				return storetest.Refuse
			}
			return storetest.Pass
		}
		txn := name()
		for _, others := range []int{1, 0} {
			if _, err := txn.Next(t.Context()); err == nil || txn.adder.pace.others != others {
				t.Errorf("%d others are seen, want %d: %v", txn.adder.pace.others, others, err)
			}
			time.Sleep(2 * forgetAfter)
		}
	})
}

func TestABackoffSaysWhatWasInTheWay(t *testing.T) {
	for want, b := range map[string]backoff{
		"others were quicker 2 times":                                  {conflicts: 2},
		"3 writes were not confirmed":                                  {lost: 3},
		"others were quicker 1 times, and 3 writes were not confirmed": {conflicts: 1, lost: 3},
		"others were quicker 1 times":                                  {conflicts: 1},
		"others were quicker 0 times":                                  {},
	} {
		if got := b.why(); got != want {
			t.Errorf("%+v: %s", b, got)
		}
	}
}
