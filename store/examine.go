package store

import "fmt"

// A Finding is the result of one check of an examination, see [Traits].
type Finding struct {
	Subject string // a word or two: "persistence", "eviction"
	Verdict Verdict
	Says    string // the present state
	Advice  string // what to do about it; empty if all is well
}

// String is the finding on one line, for logs and reports.
func (f Finding) String() string {
	line := f.Subject + ": " + f.Says
	if f.Advice != "" {
		line += ": " + f.Advice
	}
	return line
}

// A Verdict is the severity of a finding.
type Verdict int

// The verdicts.
const (
	Good     Verdict = iota // as it should be
	Doubtful                // safe only under further conditions, or unknown
	Bad                     // slots can be lost or cannot be written
)

// String is the verdict as a word.
func (v Verdict) String() string {
	if v < Good || v > Bad {
		return fmt.Sprintf("Verdict(%d)", int(v))
	}
	return [...]string{"good", "doubtful", "bad"}[v]
}
