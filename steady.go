package firn

import (
	"math"
	"time"
)

// A steady clock reads the wall clock once and counts on with the monotonic
// clock, so it never goes back. It looks at the wall clock again once a second:
//
//   - the wall persistently ahead (the machine was suspended, or its clock was
//     put right): it steps forward, after [steadyPatience] looks in a row;
//   - the wall behind (its clock was set back, or was wrong at the start): it
//     falls back as far as no id has been issued yet, and from there runs slower
//     by one part in [steadySlowing] until the wall has caught up.
//
// It is a pure value: readings go in, time comes out.
type steady struct {
	mono int64 // the monotonic reading, in ns, at which the clock showed
	time int64 // this time, in Unix ns
	slow bool  // whether it runs slower since then

	next    int64 // the monotonic reading of the next look at the wall
	ahead   int   // looks in a row that found the wall ahead
	nearest int64 // the least lead of the wall among them, in ns
}

const (
	steadyLook     = int64(time.Second)
	steadyPatience = 3
	// steadySlack is how far the two clocks may differ without a correction: more than
	// the jitter of two readings, less than matters to users.
	steadySlack   = int64(2 * time.Millisecond)
	steadySlowing = 16
)

// startSteady starts the clock at a time, given the monotonic reading of now.
func startSteady(mono, at int64) steady {
	return steady{mono: mono, time: at, next: mono + steadyLook}
}

// at returns the time at a monotonic reading not before the last look.
func (s *steady) at(mono int64) int64 {
	d := mono - s.mono
	if s.slow {
		d -= d / steadySlowing
	}
	return saturatingAdd(s.time, d)
}

// when returns the first monotonic reading at which the clock shows t or more.
func (s *steady) when(t int64) int64 {
	d := saturatingSub(t, s.time)
	if d <= 0 {
		return s.mono
	}
	if s.slow {
		// d = m - m/16 rounded down; the estimate is at most a step off.
		m := saturatingAdd(d, d/(steadySlowing-1))
		if m == math.MaxInt64 { // centuries away: below it, no step would be near
			return m
		}
		for m-m/steadySlowing >= d {
			m--
		}
		for m-m/steadySlowing < d {
			m++
		}
		d = m
	}
	return saturatingAdd(s.mono, d)
}

// due reports whether to look at the wall.
func (s *steady) due(mono int64) bool { return mono >= s.next }

// retreat puts a clock that is ahead of the wall back to it, but not below a used
// time. So a clock that followed the wall into a wrong year comes back with it,
// unless ids were issued there.
func (s *steady) retreat(mono, wall, used int64) {
	now := s.at(mono)
	if saturatingSub(now, wall) > steadySlack && now > used {
		s.mono, s.time = mono, max(wall, used)
		s.slow = saturatingSub(s.time, wall) > steadySlack // it still has to catch up
	}
}

// look corrects the clock, given the present readings of both clocks. It never goes
// below used, the time of the last id.
func (s *steady) look(mono, wall, used int64) {
	s.retreat(mono, wall, used)
	now := s.at(mono)
	s.mono, s.time, s.next = mono, now, mono+steadyLook
	lead := saturatingSub(wall, now)
	s.slow = lead < -steadySlack
	if lead <= steadySlack {
		s.ahead = 0
		return
	}
	if s.ahead == 0 || lead < s.nearest {
		s.nearest = lead
	}
	s.ahead++
	if s.ahead >= steadyPatience {
		s.time += s.nearest
		s.ahead = 0
	}
}
