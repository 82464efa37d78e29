package cli

import (
	"slices"
	"time"
)

// maxColumns is how many parts the time is divided into for [rehearsalResult.Strip] at most: each has a call at least.
const maxColumns = 72

// notable has what calls get, the most notable last.
var notable = []string{"", gotIssued, gotBehind, gotAhead, gotHistory, gotWaited, gotSwitched, gotRefused, gotWaiting}

// A strip has, of each part of the time, the most notable of what its calls got.
type strip struct {
	width time.Duration // of a part
	marks []string
}

func newStrip(total, every time.Duration) strip {
	n := max(min(total/every, maxColumns), 1)
	return strip{max(total/n, 1), make([]string, n)}
}

// mark marks the parts in which a call waited, and the one in which it got its answer.
func (s *strip) mark(row rehearsalRow) {
	last := s.part(row.After + row.Wait)
	for i := s.part(row.After); i < last; i++ {
		s.set(i, gotWaited)
	}
	s.set(last, row.Got)
}

func (s *strip) part(at time.Duration) int {
	return int(min(at/s.width, time.Duration(len(s.marks)-1)))
}

func (s *strip) set(i int, got string) {
	if slices.Index(notable, got) > slices.Index(notable, s.marks[i]) {
		s.marks[i] = got
	}
}
