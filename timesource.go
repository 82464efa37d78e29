package firn

import (
	"context"
	"math"
	"time"
)

// A TimeSource provides the clocks and the sleep of generators and leases. Tests and
// simulations replace it. Implementations must be safe for concurrent use.
//
// For [Config.Lag] it must have one more method: AfterFunc(d time.Duration, f func()) calls f in a
// goroutine of its own when d of monotonic time has passed, as [time.AfterFunc] does.
type TimeSource interface {
	// Wall returns the wall clock's time, which may jump in both directions.
	Wall() time.Time
	// Monotonic returns the time since a fixed moment. It never goes back; it
	// may stand still while the machine is suspended.
	Monotonic() time.Duration
	// Sleep waits for d of monotonic time. It returns [context.Cause] of ctx
	// when that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

// unixNanos returns a time in Unix ns. Past the year 2262 it returns the greatest int64,
// before 1677 the least, where [time.Time.UnixNano] would overflow.
func unixNanos(t time.Time) int64 {
	switch {
	case t.Before(firstNano):
		return math.MinInt64
	case t.After(lastNano):
		return math.MaxInt64
	default:
		return t.UnixNano()
	}
}

var firstNano, lastNano = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)

// SystemTime returns the machine's clocks.
func SystemTime() TimeSource { return systemTime{} }

// started is the zero of the system's monotonic readings. Subtracting one fixed
// [time.Time] is the cheapest clock reading in Go: it takes half as long as time.Now.
var started = time.Now()

type systemTime struct{}

func (systemTime) Wall() time.Time          { return time.Now() }
func (systemTime) Monotonic() time.Duration { return time.Since(started) }

func (systemTime) AfterFunc(d time.Duration, f func()) { time.AfterFunc(d, f) }

func (systemTime) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Done() == nil {
		time.Sleep(d)
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
