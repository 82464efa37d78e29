package sim

import (
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
)

// A trace is the story of a history, kept only on request.
type trace struct {
	w     *world
	on    bool
	story []string

	// Consecutive ids of one process that are not printed yet.
	made        int
	by          *machine
	first, last firn.ID
	when        string
}

func newTrace(w *world) *trace { return &trace{w: w, on: w.Trace} }

func (t *trace) say(m *machine, format string, args ...any) {
	if !t.on {
		return
	}
	t.flush()
	t.tell(t.now(), m, fmt.Sprintf(format, args...))
}

func (t *trace) now() string { return fmt.Sprintf("%12.6f %7d", float64(t.w.now)/1e9, t.w.steps) }

func (t *trace) tell(when string, m *machine, text string) {
	who := "-"
	if m != nil {
		who = m.name
	}
	t.story = append(t.story, fmt.Sprintf("%s %s  %s", when, who, text))
}

// id records an id, together with those directly before it.
func (t *trace) id(m *machine, id firn.ID) {
	if !t.on {
		return
	}
	if t.made == 0 || t.by != m || partsOf(t.w.plan.layout, id).Worker != partsOf(t.w.plan.layout, t.last).Worker || id < t.last {
		t.flush()
		t.by, t.first, t.when = m, id, t.now()
	}
	t.made++
	t.last = id
}

func (t *trace) flush() {
	switch {
	case t.made == 1:
		t.tell(t.when, t.by, "issues "+t.w.oracle.show(t.first))
	case t.made > 1:
		t.tell(t.when, t.by, fmt.Sprintf("issues %d ids, %s to %s", t.made, t.w.oracle.show(t.first), t.w.oracle.show(t.last)))
	}
	t.made = 0
}

func (t *trace) lines() []string {
	t.flush()
	return t.story
}

// A config is printed only with a trace.
type config lease.Config

func (c *config) String() string {
	if c == nil {
		return "no settings yet"
	}
	g := &c.Generator
	pinned := ""
	if c.Pinned != nil {
		pinned = fmt.Sprintf(", pinned to worker %d, spares %v, ahead: %v", *c.Pinned, c.Spares, c.PinnedAhead)
	}
	return fmt.Sprintf("clock %v, rollback [%v], ahead %v, lag %v, start %v%s", g.Clock, g.Rollback, g.Ahead, g.Lag, g.Start, pinned)
}
