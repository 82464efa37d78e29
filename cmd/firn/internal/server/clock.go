package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn"
)

// A clockWatch reports steps of the wall clock, whatever clock the pools use: a steady clock hides
// a step from ids, and a store without a clock has nothing to compare with.
type clockWatch struct {
	time  firn.TimeSource
	log   *slog.Logger
	steps *prometheus.CounterVec

	ahead time.Duration // the wall clock's reading minus the monotonic one, at the latest look
	known bool          // there was such a look
}

const (
	clockLook = time.Second
	// leastStep is the smallest difference between two looks that is a step. Slewing moves both clocks.
	leastStep = 10 * time.Millisecond
	// longestReading is how long a look may take: if the process is paused in between, the next look counts.
	longestReading = 2 * time.Millisecond

	directionBack    = "back"
	directionForward = "forward"
)

func newClockWatch(source firn.TimeSource, log *slog.Logger, to *prometheus.Registry) *clockWatch {
	w := &clockWatch{time: source, log: log, steps: counters("firn_clock_steps_total",
		"Steps of this machine's wall clock, by direction: back or forward. A machine that was suspended steps forward.",
		"direction")}
	for _, direction := range []string{directionBack, directionForward} {
		w.steps.WithLabelValues(direction)
	}
	to.MustRegister(w.steps)
	w.ahead, w.known = w.read()
	return w
}

// read returns the wall clock's reading minus the monotonic one, and whether both are of the same moment.
func (w *clockWatch) read() (ahead time.Duration, exact bool) {
	before := w.time.Monotonic()
	wall := w.time.Wall()
	after := w.time.Monotonic()
	return time.Duration(wall.UnixNano()) - before, after-before <= longestReading
}

// look compares the clocks with the latest look.
func (w *clockWatch) look() {
	ahead, exact := w.read()
	if !exact {
		return
	}
	step := ahead - w.ahead
	switch {
	case !w.known:
	case step <= -leastStep:
		w.steps.WithLabelValues(directionBack).Inc()
		w.log.Warn("the wall clock went back", "by", -step, "now", w.time.Wall())
	case step >= leastStep:
		w.steps.WithLabelValues(directionForward).Inc()
		w.log.Warn("the wall clock went forward: it was set, or the machine was suspended", "by", step, "now", w.time.Wall())
	}
	w.ahead, w.known = ahead, true
}

// run looks at the clocks until ctx ends.
func (w *clockWatch) run(ctx context.Context) {
	for tick := time.Tick(clockLook); ; {
		select {
		case <-tick:
			w.look()
		case <-ctx.Done():
			return
		}
	}
}
