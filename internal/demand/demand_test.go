package demand

import (
	"math"
	"testing"
	"time"
)

func TestTheSizeFollowsTheDemandBothWays(t *testing.T) {
	l := Limits{Least: 10, Most: 100_000, Target: 10 * time.Second}
	var s Supply
	s.Start(0, l)
	if s.Size != 10 {
		t.Fatalf("it begins with %d", s.Size)
	}
	now, issued := time.Duration(0), int64(0)
	play := func(perSecond int64, seconds int) {
		for range seconds {
			now += time.Second
			issued += perSecond
			s.Measure(now, issued, l)
		}
	}
	for _, step := range []struct{ perSecond, want int64 }{
		{1_000, 10_000}, {10, 100}, {0, 10}, {1_000_000, 100_000},
	} {
		play(step.perSecond, 200)
		if s.Size < step.want*9/10 || s.Size > step.want*11/10 {
			t.Errorf("%d a second: a size of %d, want %d", step.perSecond, s.Size, step.want)
		}
		if rate := s.Rate(now, issued); math.Abs(rate-float64(step.perSecond)) > float64(step.perSecond)/10 {
			t.Errorf("%d a second: a rate of %v", step.perSecond, rate)
		}
	}
	if lasts := s.Lasts(now, issued, 5_000_000); lasts < 4900*time.Millisecond || lasts > 5100*time.Millisecond {
		t.Errorf("five million at a million a second last %v", lasts)
	}
}

func TestOneMeasureChangesTheSizeByABoundedFactor(t *testing.T) {
	l := Limits{Least: 1, Most: math.MaxInt64 / maxGrowth, Target: time.Minute}
	var s Supply
	s.Start(0, l)
	s.Size = 1000
	if calm := s.Measure(time.Second, 1<<40, l); s.Size != 4000 || calm {
		t.Errorf("after a burst: %d, calm %v", s.Size, calm)
	}
	if calm := s.Measure(time.Hour, 1<<40+1, l); s.Size != 2000 || !calm {
		t.Errorf("after a lull: %d, calm %v", s.Size, calm)
	}
	if calm := s.Measure(time.Hour+time.Second, 1<<40+2, l); s.Size != 2000 || calm {
		t.Errorf("a window too short to measure: %d, calm %v", s.Size, calm)
	}
	if calm := s.Measure(time.Hour, 1<<41, l); s.Size != 8000 || calm {
		t.Errorf("many in no time at all: %d, calm %v", s.Size, calm)
	}
}

func TestNothingIssuedLastsForEver(t *testing.T) {
	var s Supply
	s.Start(time.Hour, Limits{Least: 1, Most: 2, Target: time.Second})
	if got := s.Lasts(2*time.Hour, 0, 1); got != math.MaxInt64 {
		t.Errorf("%v", got)
	}
	if got := s.Lasts(2*time.Hour, 0, 0); got != 0 {
		t.Errorf("no ids last %v", got)
	}
	if got := s.Rate(time.Hour, 0); got != 0 {
		t.Errorf("a rate of %v at once", got)
	}
}
