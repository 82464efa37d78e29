package cli

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// paced is a load of n callers at a rate.
func paced(t *testing.T, callers int, rate string, d time.Duration) load {
	t.Helper()
	r, err := parseCallRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	return load{callers: callers, batch: 1, processes: 1, duration: d, rate: r}
}

func discard([]firn.ID) {}

func TestCallsBeginWhenTheyAreDue(t *testing.T) {
	var calls atomic.Int64
	f, err := driveAt(t.Context(), paced(t, 8, "1000/s", 300*time.Millisecond), func(_ context.Context, ids []firn.ID) (int, error) {
		return len(ids), sleep(time.Millisecond, &calls)
	}, discard)
	if err != nil {
		t.Fatal(err)
	}
	// Each of the 8 callers makes one call before that is not timed.
	if got := f.calls.total; got != 300 || f.ids != 300-f.unbegun+8 || calls.Load() != f.ids {
		t.Errorf("%d calls were timed and %d not begun; %d calls, %d ids", got, f.unbegun, calls.Load(), f.ids)
	}
}

// TestAHaltIsSeenByAllCallsThatWereDue has a target stand still for 200 ms. One caller
// after the other would see one slow call; of those due, every one waits.
func TestAHaltIsSeenByAllCallsThatWereDue(t *testing.T) {
	var calls atomic.Int64
	const halt = 200 * time.Millisecond
	f, err := driveAt(t.Context(), paced(t, 1, "500/s", time.Second), func(_ context.Context, ids []firn.ID) (int, error) {
		if calls.Load() == 100 {
			return len(ids), sleep(halt, &calls)
		}
		return len(ids), sleep(0, &calls)
	}, discard)
	if err != nil {
		t.Fatal(err)
	}
	if f.calls.most < halt || f.slow < 75 { // those of 150 ms at 500 a second
		t.Errorf("%d of %d calls took longer than %v, the longest %v", f.slow, f.calls.total, slowCall, f.calls.most)
	}
}

func TestCallsThatFindNoCallerAreNotForgotten(t *testing.T) {
	var calls atomic.Int64
	f, err := driveAt(t.Context(), paced(t, 1, "1000/s", 200*time.Millisecond), func(_ context.Context, ids []firn.ID) (int, error) {
		return len(ids), sleep(90*time.Millisecond, &calls)
	}, discard)
	if err != nil {
		t.Fatal(err)
	}
	if f.calls.total != 200 || f.unbegun < 190 || f.slow < 100 {
		t.Errorf("%d calls timed, %d not begun, %d slow", f.calls.total, f.unbegun, f.slow)
	}
}

func TestAFailedCallEndsASchedule(t *testing.T) {
	want := errors.New("no more")
	var calls atomic.Int64
	f, err := driveAt(t.Context(), paced(t, 3, "1000/s", time.Hour), func(_ context.Context, ids []firn.ID) (int, error) {
		if calls.Add(1) == 50 {
			return 0, want
		}
		return len(ids), nil
	}, discard)
	if !errors.Is(err, want) || f.calls.total > 100 {
		t.Errorf("%v; %d calls", err, f.calls.total)
	}
}

func sleep(d time.Duration, calls *atomic.Int64) error {
	calls.Add(1)
	time.Sleep(d)
	return nil
}

func TestRatesOfCallsAreRead(t *testing.T) {
	for _, text := range []string{"1/h", "600/m", "1000000/s", "60000000/m"} {
		if r, err := parseCallRate(text); err != nil || r.String() != text {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"0/s", "-1/s", "5", "5/d", "1000001/s", "60000001/m", "x/s", "1e3/s", " 1/s"} {
		if _, err := parseCallRate(text); !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "5000/s or 600/m, at most 1000000/s") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
