package segment

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/memstore"
)

// standing is a clock that stands still.
type standing struct{ firn.TimeSource }

func (standing) Monotonic() time.Duration { return time.Hour }

func TestThePauseAfterAFailureGrowsAndBeginsAgainAfterASuccess(t *testing.T) {
	clock := standing{firn.SystemTime()}
	s, err := New(Config{Store: memstore.New(nil), Time: clock, Random: func() uint64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	f := &refill{all: s}
	away := errors.New("away")
	pauses := func() (all []time.Duration) {
		for range 3 {
			f.end(away, false)
			all = append(all, f.notBefore-clock.Monotonic())
		}
		return all
	}
	first := pauses()
	if first[0] != time.Millisecond || first[1] != 2*first[0] || first[2] != 2*first[1] {
		t.Errorf("the pauses are %v", first)
	}
	f.end(nil, true)
	if again := pauses(); again[0] != first[0] || again[1] != first[1] {
		t.Errorf("after a success they are %v", again)
	}
}

// Each fetch beyond the last id wastes a range that another process could use; a source that has none wastes nothing.
func TestARangeBeyondTheLastIDIsNotFetchedAgainSoon(t *testing.T) {
	clock := standing{firn.SystemTime()}
	s, err := New(Config{Store: memstore.New(nil), Time: clock, Random: func() uint64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	for granted, want := range map[bool]time.Duration{true: beyondPause, false: time.Millisecond} {
		f := &refill{all: s}
		f.end(&ExhaustedError{}, granted)
		if pause := f.notBefore - clock.Monotonic(); pause != want {
			t.Errorf("granted %v: a pause of %v", granted, pause)
		}
	}
}

func TestAFetchIsAsLongAsTheLongestRowThatCallersWaitFor(t *testing.T) {
	var q waiters
	for _, w := range []waiter{{count: 5, row: true}, {count: 9, row: true}, {count: 99}, {count: 7, row: true}} {
		q.join(&w)
	}
	if n := q.longest(); n != 9 {
		t.Errorf("the longest is %d", n)
	}
}

func TestACallerThatWasServedDoesNotLeave(t *testing.T) {
	var q waiters
	var first, second waiter
	q.join(&first)
	q.join(&second)
	q.serve(nil, errors.New("away"))
	q.join(&second)
	if q.leave(&first) || !q.leave(&second) || q.line.Len() != 0 {
		t.Errorf("%d callers are left", q.line.Len())
	}
}

func TestTheLeastStepIsNotAboveTheGreatest(t *testing.T) {
	for greatest, want := range map[int64]int64{0: defaultMinStep, 10: 10, 10 * defaultMinStep: defaultMinStep} {
		c := Config{Store: memstore.New(nil), MaxStep: greatest}
		if err := c.check(); err != nil || c.MinStep != want {
			t.Errorf("with at most %d: at least %d, %v", greatest, c.MinStep, err)
		}
	}
}
