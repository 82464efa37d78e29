package server

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/firn-id/firn/firntest"
)

// slowTime is a time whose wall clock takes a while to read.
type slowTime struct {
	*firntest.Clock
	takes time.Duration
}

func (s *slowTime) Wall() time.Time {
	s.Pass(s.takes)
	return s.Clock.Wall()
}

func TestAStepOfTheClockIsLoggedAndCounted(t *testing.T) {
	clock := &slowTime{Clock: firntest.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))}
	var log strings.Builder
	clock.takes = time.Second // a pause between the first readings
	w := newClockWatch(clock, slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry())
	for _, c := range []struct {
		claim         string
		step, takes   time.Duration
		back, forward float64
		says          string
	}{
		{"no step", 0, 0, 0, 0, ""},
		{"jitter", -9 * time.Millisecond, 0, 0, 0, ""},
		{"a step back", -10 * time.Millisecond, 0, 1, 0, `"the wall clock went back" by=10ms`},
		{"an hour back", -time.Hour, 0, 2, 0, `"the wall clock went back" by=1h0m0s now=2026-11-20T11:`},
		{"a pause between the readings, and a step", time.Hour, time.Second, 2, 0, ""},
		{"the step at the next look", 0, 0, 2, 1, "suspended\" by=1h0m0s"},
		{"no other", 0, 0, 2, 1, ""},
	} {
		log.Reset()
		clock.Pass(time.Second)
		clock.Step(c.step)
		clock.takes = c.takes
		w.look()
		back, forward := testutil.ToFloat64(w.steps.WithLabelValues("back")), testutil.ToFloat64(w.steps.WithLabelValues("forward"))
		if back != c.back || forward != c.forward || !strings.Contains(log.String(), c.says) || (c.says == "") != (log.Len() == 0) {
			t.Errorf("%s: %v back, %v forward, %q", c.claim, back, forward, log.String())
		}
	}
}
