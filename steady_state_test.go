package firn

import (
	"math"
	"testing"
	"time"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

// steadyAt100 returns a clock that shows 100s at the monotonic reading 0.
func steadyAt100() steady { return startSteady(0, 100*sec) }

func TestASteadyClockAdvancesWithTheMonotonicClock(t *testing.T) {
	s := startSteady(7*sec, 100*sec)
	for mono, want := range map[int64]int64{7 * sec: 100 * sec, 8 * sec: 101 * sec, 23 * sec: 116 * sec} {
		if got := s.at(mono); got != want {
			t.Errorf("at %d: %d, not %d", mono, got, want)
		}
	}
	s.slow = true
	if got := s.at(23 * sec); got != 115*sec {
		t.Errorf("slow, after 16s: %d, not 15s more", got)
	}
	if s.due(8*sec-1) || !s.due(8*sec) {
		t.Error("the wall is looked at after a second")
	}
}

// when is the exact inverse of at: it returns the first reading at which the clock shows a time.
func TestASteadyClockKnowsWhenItShowsATime(t *testing.T) {
	for _, slow := range []bool{false, true} {
		s := startSteady(1000, 5000)
		s.slow = slow
		for time := int64(4990); time < 5600; time++ {
			mono := s.when(time)
			if time <= 5000 {
				if mono != 1000 {
					t.Fatalf("slow %t: the past %d is shown at %d, not at once", slow, time, mono)
				}
				continue
			}
			if s.at(mono) < time || s.at(mono-1) >= time {
				t.Fatalf("slow %t: %d is shown first at %d: there it is %d, before it %d", slow, time, mono, s.at(mono), s.at(mono-1))
			}
		}
		if got := s.when(math.MaxInt64); got < math.MaxInt64/2 {
			t.Errorf("slow %t: the end of time is shown at %d", slow, got)
		}
	}
	s := startSteady(0, math.MinInt64)
	if s.slow = true; s.when(math.MaxInt64-1) != math.MaxInt64 {
		t.Errorf("a time centuries away is shown at %d", s.when(math.MaxInt64-1))
	}
}

func TestASteadyClockFollowsAWallThatStaysAhead(t *testing.T) {
	s := steadyAt100()
	for i, lead := range []int64{50 * ms, 30 * ms} {
		mono := int64(i+1) * sec
		if s.look(mono, 100*sec+mono+lead, 0); s.at(mono) != 100*sec+mono || s.slow {
			t.Fatalf("after %d looks: %+v", i+1, s)
		}
	}
	// The third look in a row steps forward by the least lead.
	if s.look(3*sec, 103*sec+40*ms, 0); s.at(3*sec) != 103*sec+30*ms || s.next != 4*sec {
		t.Fatalf("%+v", s)
	}
	// Then the count and the least lead start again.
	for i := int64(4); i < 6; i++ {
		if s.look(i*sec, s.at(i*sec)+(50+5*i)*ms, 0); s.time != 100*sec+i*sec+30*ms {
			t.Fatalf("look %d: %+v", i, s)
		}
	}
	if s.look(6*sec, s.at(6*sec)+80*ms, 0); s.time != 106*sec+100*ms {
		t.Errorf("%+v", s)
	}
}

func TestOneLookWithoutALeadOfTheWallRestartsTheCount(t *testing.T) {
	for name, lead := range map[string]int64{"level": 0, "within the slack": steadySlack, "behind": -steadySlack} {
		s := steadyAt100()
		for i, l := range []int64{50 * ms, 50 * ms, lead, 50 * ms, 50 * ms} {
			mono := int64(i+1) * sec
			if s.look(mono, 100*sec+mono+l, math.MaxInt64); s.at(mono) != 100*sec+mono {
				t.Fatalf("%s, look %d: %+v", name, i+1, s)
			}
		}
		if s.look(6*sec, 106*sec+50*ms, math.MaxInt64); s.at(6*sec) != 106*sec+50*ms {
			t.Errorf("%s, the third look in a row: %+v", name, s)
		}
	}
	s := steadyAt100() // a lead one nanosecond above the slack counts
	for i := range int64(3) {
		s.look((i+1)*sec, s.at((i+1)*sec)+2*ms+1, 0)
	}
	if s.time != 103*sec+2*ms+1 {
		t.Errorf("%+v", s)
	}
}

func TestASteadyClockFallsBackToTheWallButNotBelowUsedTimes(t *testing.T) {
	for _, c := range []struct {
		claim      string
		wall, used int64
		want       int64
		slow       bool
	}{
		{"to the wall", 90 * sec, 80 * sec, 90 * sec, false},
		{"to what is used, and slow from there", 90 * sec, 95 * sec, 95 * sec, true},
		{"to what is used, near enough to the wall", 90 * sec, 90*sec + 2*ms, 90*sec + 2*ms, false},
		{"just too far from the wall", 90 * sec, 90*sec + 2*ms + 1, 90*sec + 2*ms + 1, true},
		{"not at all within the slack", 101*sec - 2*ms, 80 * sec, 101 * sec, false},
		{"just beyond the slack", 101*sec - 2*ms - 1, 80 * sec, 101*sec - 2*ms - 1, false},
		{"not at all where all is used", 90 * sec, 101 * sec, 101 * sec, true},
		{"by a nanosecond", 90 * sec, 101*sec - 1, 101*sec - 1, true},
		{"never forward", 150 * sec, 80 * sec, 101 * sec, false},
	} {
		s := steadyAt100()
		if s.look(sec, c.wall, c.used); s.at(sec) != c.want || s.slow != c.slow || s.next != 2*sec {
			t.Errorf("%s: %+v, not %d and slow %t", c.claim, s, c.want, c.slow)
		}
		r := steadyAt100()
		r.retreat(sec, c.wall, c.used)
		if c.want == 101*sec && r != steadyAt100() || c.want != 101*sec && (r.at(sec) != c.want || r.slow != c.slow) {
			t.Errorf("%s: retreat to %+v", c.claim, r)
		}
	}
}

// A slow clock runs at full speed again when the wall clock has caught up.
func TestASlowSteadyClockCatchesUp(t *testing.T) {
	s := steadyAt100()
	s.look(sec, 100*sec, 101*sec) // the wall clock is a second behind the used time
	for i := int64(2); i < 17; i++ {
		if s.look(i*sec, (99+i)*sec, math.MaxInt64); !s.slow {
			t.Fatalf("after %ds: %+v", i, s)
		}
	}
	if s.look(17*sec, 116*sec, math.MaxInt64); s.slow || s.time != 116*sec {
		t.Errorf("%+v", s)
	}
}
