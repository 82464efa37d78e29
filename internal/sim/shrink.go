package sim

import (
	"maps"
	"time"
)

// Shrink looks for a smaller history with the same kind of finding: fewer processes, fewer kinds of
// faults, fewer faults. It returns the options that play it, and the result. The search ends when
// nothing more can be left out, or after a time.
func Shrink(o Options, limit time.Duration) (Options, Result) {
	o = o.filled()
	o.Trace, o.Count = false, false
	best := Run(o)
	if best.Finding == nil {
		return o, best
	}
	s := &shrinking{options: o, best: best, until: time.Now().Add(limit)}
	for s.smaller() {
	}
	return s.options, s.best
}

type shrinking struct {
	options Options
	best    Result
	until   time.Time
}

// try plays a history and keeps it if it has the same kind of finding.
func (s *shrinking) try(change func(*Options)) bool {
	if time.Now().After(s.until) {
		return false
	}
	o := s.options
	o.Without = append([]string(nil), o.Without...)
	o.Skip = maps.Clone(o.Skip)
	change(&o)
	r := Run(o)
	if r.Finding == nil || r.Finding.Kind != s.best.Finding.Kind {
		return false
	}
	s.options, s.best = o, r
	return true
}

// smaller tries once to leave out each possible part, and reports whether it could leave anything out.
func (s *shrinking) smaller() bool {
	any := false
	if at := s.best.Finding.Step; s.options.Steps == 0 || at < s.options.Steps {
		any = s.try(func(o *Options) { o.Steps = at }) || any
	}
	for n := 1; n < s.best.Machines; n++ {
		if s.try(func(o *Options) { o.Machines = n }) {
			any = true
			break
		}
	}
	left := map[string]bool{}
	for _, name := range s.options.Without {
		left[name] = true
	}
	for k := range kinds {
		if !left[k.String()] && s.best.Kinds[k] > 0 {
			any = s.try(func(o *Options) { o.Without = append(o.Without, k.String()) }) || any
		}
	}
	return s.fewer() || any
}

// fewer leaves out single faults: first large groups of them, then small ones.
func (s *shrinking) fewer() bool {
	any := false
	for part := (s.best.numbers + 1) / 2; part > 0; part /= 2 {
		for from := 1; from <= s.best.numbers; from += part {
			new := 0
			any = s.try(func(o *Options) {
				if o.Skip == nil {
					o.Skip = map[int]bool{}
				}
				for n := from; n < from+part; n++ {
					if !o.Skip[n] {
						o.Skip[n] = true
						new++
					}
				}
			}) && new > 0 || any
		}
	}
	return any
}
