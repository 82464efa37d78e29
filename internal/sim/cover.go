package sim

import (
	"context"
	"errors"
	"log/slog"
	"math/bits"

	"github.com/firn-id/firn/store"
)

// A cover notes which situations a history came to: which step of the protocol came
// after which and how it ended, what had struck before, what the lease said in its
// log, and how near two processes came to each other. Histories that came to a new
// one are worth changing.
type cover struct {
	w    *world
	hits [coverSize]uint8
}

const coverSize = 1 << 13

func (c *cover) hit(feature ...uint64) {
	h := uint64(14695981039346656037)
	for _, f := range feature {
		h = (h ^ f) * 1099511628211
	}
	if n := &c.hits[(h^h>>32)%coverSize]; *n < 255 {
		*n++
	}
}

// What the features are about.
const (
	aboutOrder = iota
	aboutFault
	aboutLog
	aboutGap
	aboutError
)

// recently is for how long a fault counts as the cause of what happens.
const recently = int64(10e9)

// cause is the latest fault, if it struck just now.
func (c *cover) cause() uint64 {
	if f := &c.w.faults; f.count > 0 && c.w.now-f.at < recently {
		return uint64(f.last) + 1
	}
	return 0
}

// reach notes a step of the protocol and how it ended.
func (c *cover) reach(m *machine, at moment, how string) {
	if c.w.quiet {
		return
	}
	end := uint64(len(how)) // they differ in length
	c.hit(aboutOrder, uint64(m.before), uint64(at), end)
	if cause := c.cause(); cause > 0 {
		c.hit(aboutFault, cause, uint64(at), end)
	}
	m.before = at
}

// outcome is the kind of an error of the store.
func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, store.ErrConflict):
		return "conflict"
	case errors.Is(err, store.ErrNotFound):
		return "not found"
	default:
		return "failed"
	}
}

// gap notes how many ticks lie between two grants of one worker: below zero they
// overlap.
func (c *cover) gap(ticks int64) {
	if ticks >= 0 {
		c.hit(aboutGap, uint64(bits.Len64(uint64(ticks))), c.cause())
	}
}

// said notes a text that does not vary with the numbers in a history.
func (c *cover) said(about uint64, text string) {
	h := uint64(0)
	for i := range len(text) {
		if b := text[i]; b < '0' || b > '9' {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	c.hit(about, h, c.cause())
}

// failed notes an error by its text.
func (c *cover) failed(err error) {
	if err != nil && !c.w.quiet {
		c.said(aboutError, err.Error())
	}
}

// A listener is what the lease logs to: its messages tell which way it took.
type listener struct{ m *machine }

func (l listener) Enabled(context.Context, slog.Level) bool { return true }
func (l listener) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l listener) WithGroup(string) slog.Handler            { return l }
func (l listener) Handle(_ context.Context, r slog.Record) error {
	if w := l.m.w; !w.quiet {
		w.cover.said(aboutLog, r.Message)
	}
	return nil
}

// features are what a history came to, each with about how often.
func (c *cover) features() []uint32 {
	var list []uint32
	for i, n := range c.hits {
		if n > 0 {
			list = append(list, uint32(i)<<4|uint32(bits.Len8(n)))
		}
	}
	return list
}
