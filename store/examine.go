package store

import "context"

// An Examined store can say whether its server is set up so that nothing it acknowledged is
// lost. Examine only reads; its error says that the server could not be asked at all.
type Examined interface {
	Examine(ctx context.Context) ([]Finding, error)
}

// A Finding is one thing that an examination looked at.
type Finding struct {
	Subject string // a word or two: "persistence", "eviction"
	Verdict Verdict
	Says    string // what is the case
	Advice  string // what to do about it; empty where all is well
}

// String is the finding on one line, for logs and reports.
func (f Finding) String() string {
	line := f.Subject + ": " + f.Says
	if f.Advice != "" {
		line += ": " + f.Advice
	}
	return line
}

// A Verdict says how grave a finding is.
type Verdict int

// The verdicts.
const (
	Good     Verdict = iota // as it should be
	Doubtful                // safe only as long as something else holds, or not known
	Bad                     // slots can be lost or not be written
)

// String is the verdict as a word.
func (v Verdict) String() string { return [...]string{"good", "doubtful", "bad"}[v] }
