package sim

import (
	"context"
	"errors"
	"log/slog"
	"math/bits"

	"github.com/firn-id/firn/store"
)

// A cover records which situations a history reached: the order of protocol steps and their results,
// the faults before them, the lease's log messages, and how near two processes came to each other.
// Histories that reached a new situation are worth changing.
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

// The kinds of features.
const (
	aboutOrder = iota
	aboutFault
	aboutLog
	aboutGap
	aboutError
)

// recently is how long a fault counts as the cause of later events.
const recently = int64(10e9)

// cause returns the latest fault, if it was recent.
func (c *cover) cause() uint64 {
	if f := &c.w.faults; f.count > 0 && c.w.now-f.at < recently {
		return uint64(f.last) + 1
	}
	return 0
}

// reach records a step of the protocol and its result.
func (c *cover) reach(m *machine, at moment, how string) {
	if c.w.quiet {
		return
	}
	end := uint64(len(how)) // results differ in length
	c.hit(aboutOrder, uint64(m.before), uint64(at), end)
	if cause := c.cause(); cause > 0 {
		c.hit(aboutFault, cause, uint64(at), end)
	}
	m.before = at
}

// outcome returns the kind of a store's error.
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

// gap records how many ticks lie between two grants of one worker: below zero they overlap.
func (c *cover) gap(ticks int64) {
	if ticks >= 0 {
		c.hit(aboutGap, uint64(bits.Len64(uint64(ticks))), c.cause())
	}
}

// said records a text that does not vary with the numbers in a history.
func (c *cover) said(about uint64, text string) {
	h := uint64(0)
	for i := range len(text) {
		if b := text[i]; b < '0' || b > '9' {
			h = (h ^ uint64(b)) * 1099511628211
		}
	}
	c.hit(about, h, c.cause())
}

// failed records an error by its text.
func (c *cover) failed(err error) {
	if err != nil && !c.w.quiet {
		c.said(aboutError, err.Error())
	}
}

// A listener is the lease's log handler: the messages show which path the lease took.
type listener struct{ m *machine }

func (listener) NeverBlocks()                               {}
func (l listener) Enabled(context.Context, slog.Level) bool { return true }
func (l listener) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l listener) WithGroup(string) slog.Handler            { return l }
func (l listener) Handle(_ context.Context, r slog.Record) error {
	if w := l.m.w; !w.quiet {
		w.cover.said(aboutLog, r.Message)
	}
	return nil
}

// features are the situations a history reached, each with its approximate frequency.
func (c *cover) features() []uint32 {
	var list []uint32
	for i, n := range c.hits {
		if n > 0 {
			list = append(list, uint32(i)<<4|uint32(bits.Len8(n)))
		}
	}
	return list
}
