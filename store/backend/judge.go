package backend

import "github.com/firn-id/firn/store"

// A Judgment builds a finding from the first of its cases whose condition is true.
type Judgment struct {
	finding store.Finding
	made    bool
}

// Judge begins a judgment.
func Judge(subject string) *Judgment { return &Judgment{finding: store.Finding{Subject: subject}} }

// When adds a case.
func (j *Judgment) When(is bool, verdict store.Verdict, says, advice string) *Judgment {
	if is && !j.made {
		j.finding.Verdict, j.finding.Says, j.finding.Advice, j.made = verdict, says, advice, true
	}
	return j
}

// Else returns the finding. If no case applies, the verdict is good.
func (j *Judgment) Else(says string) store.Finding { return j.When(true, store.Good, says, "").finding }
