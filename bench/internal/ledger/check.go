package ledger

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// maxFindings bounds how many examples are kept.
const maxFindings = 4

// Findings are the results of a check.
type Findings struct {
	IDs, Bad int64            // all ids, and those that must not have been issued
	ByMark   map[uint32]Count // the same for each mark
	Examples []Example
}

// A Count is a part of Findings.
type Count struct{ IDs, Bad int64 }

// An Example has wrong ids and the two calls that conflict.
type Example struct {
	IDs       Run
	It, Other Place
}

// A Place is a call whose ids are in a file.
type Place struct {
	File            string
	Asked, Answered time.Duration
	Mark            uint32
}

func (e Example) String() string {
	return fmt.Sprintf("%d (%d ids): %s, and %s", e.IDs.First, e.IDs.Count, e.It, e.Other)
}

func (p Place) String() string {
	return fmt.Sprintf("%s asked at %v and answered at %v", filepath.Base(p.File), p.Asked.Round(time.Microsecond), p.Answered.Round(time.Microsecond))
}

func (f *Findings) count(mark uint32, ids, bad int64) {
	c := f.ByMark[mark]
	c.IDs += ids
	c.Bad += bad
	f.ByMark[mark] = c
	f.IDs += ids
	f.Bad += bad
}

func (f *Findings) example(e Example) {
	if len(f.Examples) < maxFindings {
		f.Examples = append(f.Examples, e)
	}
}

// Duplicates finds the ids that occur more than once in the files. All occurrences but one are bad; each
// counts for the mark of the later answer.
func Duplicates(files []string) (Findings, error) {
	type piece struct {
		Run
		call uint32
	}
	f := Findings{ByMark: map[uint32]Count{}}
	var calls []Place
	var pieces []piece
	if err := each(files, func(path string, b Batch) {
		f.count(b.Mark, b.Runs.Count(), 0)
		for _, r := range b.Runs {
			pieces = append(pieces, piece{r, uint32(len(calls))})
		}
		calls = append(calls, Place{path, b.Asked, b.Answered, b.Mark})
	}); err != nil {
		return f, err
	}
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.First, b.First) })
	var furthest piece // among the runs that begin below, the one with the greatest id
	for i, p := range pieces {
		if i > 0 && p.First <= furthest.Last() {
			both := Run{p.First, min(p.Last(), furthest.Last()) - p.First + 1}
			later, earlier := calls[p.call], calls[furthest.call]
			if later.Answered < earlier.Answered {
				later, earlier = earlier, later
			}
			f.count(later.Mark, 0, both.Count)
			f.example(Example{both, later, earlier})
		}
		if i == 0 || p.Last() > furthest.Last() {
			furthest = p
		}
	}
	return f, nil
}

// Order finds the ids that are not greater than all ids of calls that were answered before theirs was sent.
func Order(files []string) (Findings, error) {
	type call struct {
		Place
		runs Runs
	}
	f := Findings{ByMark: map[uint32]Count{}}
	var asked []call
	if err := each(files, func(path string, b Batch) {
		asked = append(asked, call{Place{path, b.Asked, b.Answered, b.Mark}, b.Runs})
	}); err != nil {
		return f, err
	}
	slices.SortFunc(asked, func(a, b call) int { return cmp.Compare(a.Asked, b.Asked) })
	answered := slices.SortedFunc(slices.Values(asked), func(a, b call) int { return cmp.Compare(a.Answered, b.Answered) })
	greatest, from := int64(-1), Place{}
	for _, c := range asked {
		for ; len(answered) > 0 && answered[0].Answered < c.Asked; answered = answered[1:] {
			for _, run := range answered[0].runs {
				if run.Last() > greatest {
					greatest, from = run.Last(), answered[0].Place
				}
			}
		}
		late := notAbove(c.runs, greatest)
		f.count(c.Mark, c.runs.Count(), late)
		if late > 0 {
			f.example(Example{Run{c.runs[0].First, late}, c.Place, from})
		}
	}
	return f, nil
}

// notAbove counts the ids that are not greater than a bound.
func notAbove(runs Runs, bound int64) (n int64) {
	for _, r := range runs {
		if r.First <= bound {
			n += min(r.Last(), bound) - r.First + 1
		}
	}
	return n
}
