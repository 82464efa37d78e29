// Package order is for tests: it checks histories of calls that took ids from one sequence. No id may
// appear twice, and every id must be greater than all ids received before its call began. The check is
// exact and cheap, so histories may be long. Do not use it for segments or leased workers: their ids rise only
// within a range or a process.
package order

import (
	"cmp"
	"fmt"
	"slices"
)

// A Call is a call that succeeded: it took N ids from First up, between two moments of one clock.
// Leave failed calls out of a history, since ids may be skipped.
type Call struct {
	Begin, End int64
	First, N   int64
	Who        int // for the error
}

func (c Call) last() int64 { return c.First + c.N - 1 }

// Check returns an error that names two contradictory calls, if there are any.
func Check(calls []Call) error {
	if err := unique(calls); err != nil {
		return err
	}
	begun := slices.SortedFunc(slices.Values(calls), func(a, b Call) int { return cmp.Compare(a.Begin, b.Begin) })
	ended := slices.SortedFunc(slices.Values(calls), func(a, b Call) int { return cmp.Compare(a.End, b.End) })
	var highest Call // of the calls that ended before the next one began
	for _, c := range begun {
		for len(ended) > 0 && ended[0].End < c.Begin {
			if highest.N == 0 || ended[0].last() > highest.last() {
				highest = ended[0]
			}
			ended = ended[1:]
		}
		if highest.N > 0 && c.First <= highest.last() {
			return fmt.Errorf("%+v began after %+v had ended and is not greater", c, highest)
		}
	}
	return nil
}

func unique(calls []Call) error {
	byID := slices.SortedFunc(slices.Values(calls), func(a, b Call) int { return cmp.Compare(a.First, b.First) })
	for i, c := range byID {
		if c.N < 1 || c.First < 1 || c.End < c.Begin {
			return fmt.Errorf("%+v is no call", c)
		}
		if i > 0 && byID[i-1].last() >= c.First {
			return fmt.Errorf("%+v and %+v have ids in common", byID[i-1], c)
		}
	}
	return nil
}
