package firn

import (
	"math"
	"time"
)

// A steady clock reads the wall clock once and counts on with the monotonic
// clock, so it never goes back. It looks at the wall clock again once a second:
//
//   - If the wall clock stays ahead (the machine was suspended, or its clock was
//     corrected), it steps forward, after [steadyPatience] looks in a row.
//   - If the wall clock is behind (it was set back, or was wrong at the start), it
//     falls back, but not below the last id issued, and from there runs slower by one
//     part in [steadySlowing] until the wall clock has caught up.
//
// It reads no clock itself: its methods get the readings as arguments.
type steady struct {
	mono int64 // a monotonic reading, in ns
	time int64 // the time that the clock showed at that reading, in Unix ns
	slow bool  // it runs slower since then

	next    int64 // the monotonic reading of the next look at the wall
	ahead   int   // looks in a row that found the wall clock ahead
	nearest int64 // the least lead of the wall clock in these looks, in ns
}

const (
	steadyLook     = int64(time.Second)
	steadyPatience = 3
	// steadySlack is how far the two clocks may differ without a correction. It is more than
	// the jitter of two readings, and too little to matter to users.
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
		// d = m - m/16 rounded down; the estimate for m is off by at most one step.
		m := saturatingAdd(d, d/(steadySlowing-1))
		if m == math.MaxInt64 { // centuries away, where the estimate would be far off
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

// due reports whether it is time to look at the wall clock.
func (s *steady) due(mono int64) bool { return mono >= s.next }

// retreat sets a clock that is ahead of the wall clock back to it, but not below used. So a
// clock that followed the wall clock into a wrong year comes back with it, unless ids were
// issued there.
func (s *steady) retreat(mono, wall, used int64) {
	now := s.at(mono)
	if saturatingSub(now, wall) > steadySlack && now > used {
		s.mono, s.time = mono, max(wall, used)
		s.slow = saturatingSub(s.time, wall) > steadySlack // still ahead of the wall clock
	}
}

// look corrects the clock, given the present readings of both clocks. It never sets the
// clock below used, the time of the last id.
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
