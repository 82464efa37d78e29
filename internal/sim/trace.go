package sim

import (
	"fmt"

	"github.com/firn-id/firn/lease"
)

// A trace is the story of a history, kept only where somebody wants to read it.
type trace struct {
	w     *world
	on    bool
	story []string
}

func newTrace(w *world) *trace { return &trace{w: w, on: w.Trace} }

func (t *trace) say(m *machine, format string, args ...any) {
	if !t.on {
		return
	}
	who := "-"
	if m != nil {
		who = m.name
	}
	t.story = append(t.story, fmt.Sprintf("%s %6d %s  %s", t.w.clock(), t.w.steps, who, fmt.Sprintf(format, args...)))
}

func (t *trace) lines() []string { return t.story }

func describe(c *lease.Config) string {
	g := &c.Generator
	pinned := ""
	if c.Slots.Pinned != nil {
		pinned = fmt.Sprintf(", pinned to worker %d, ahead: %v", *c.Slots.Pinned, c.Slots.PinnedAhead)
	}
	return fmt.Sprintf("clock %v, rollback [%v], ahead %v, start %v%s", g.Clock, g.Rollback, g.Ahead, g.Start, pinned)
}
