package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
)

// A counting process makes ids of segments and sequences, as a server does.
type counting struct{ m *machine }

// names of counters that all processes share.
const (
	segmentNames  = 3
	sequenceNames = 2
)

// counts is what one life counts with.
type counts struct {
	*counting
	l         *life
	segments  *segment.Segments
	sequences *sequence.Sequences
	named     [segmentNames]*segment.Name
	ordered   [sequenceNames]*sequence.Sequence
	top       [segmentNames]firn.ID  // the greatest id that this life had
	last      [sequenceNames]firn.ID // the same for sequences
	ended     bool
}

func (c *counting) run(l *life) {
	w := c.m.w
	l.grants = nil
	for !l.asked {
		n, err := c.open(l)
		if err != nil {
			w.oracle.find("settings", c.m, "%v", err)
			return
		}
		for range w.choices.IntN(3) {
			c.m.spawn("caller", n.call)
		}
		n.call()
		n.end()
	}
}

func (c *counting) open(l *life) (*counts, error) {
	w, r := c.m.w, c.m.w.choices
	n := &counts{counting: c, l: l}
	most := pick[int64](r, 4, 30, 400)
	cfg := segment.Config{
		Store: c.m.client(), MinStep: pick[int64](r, 1, 4, most), MaxStep: most, Target: pick(r, time.Second, 20*time.Second),
		Ahead: pick(r, 0.2, 0.8, 1.0), Chain: pick(r, 1, 3), Time: c.m, Random: w.library.Uint64,
	}
	cfg.MinStep = min(cfg.MinStep, most)
	var err error
	if n.segments, err = segment.Open(cfg); err != nil {
		return nil, err
	}
	if n.sequences, err = sequence.Open(sequence.Config{
		Store: c.m.client(), Timeout: pick(r, time.Second, 5*time.Second), Time: c.m, Random: w.library.Uint64,
	}); err != nil {
		return nil, err
	}
	for i := range n.named {
		if n.named[i], err = n.segments.Name(fmt.Sprintf("seg%d", i)); err != nil {
			return nil, err
		}
		n.top[i] = -1
	}
	for i := range n.ordered {
		if n.ordered[i], err = n.sequences.Name(fmt.Sprintf("seq%d", i)); err != nil {
			return nil, err
		}
	}
	w.trace.say(c.m, "starts, with steps of %d to %d", cfg.MinStep, cfg.MaxStep)
	return n, nil
}

// call asks for ids until it is time to leave.
func (n *counts) call() {
	w := n.m.w
	for !n.l.asked && !n.ended {
		for range 1 + w.choices.IntN(5) {
			w.steps++
			ctx, cancel := n.m.WithTimeout(context.Background(), time.Duration(1+w.choices.Int64N(int64(2*time.Second))))
			if w.choices.IntN(3) > 0 {
				n.fromSegment(ctx, w.choices.IntN(segmentNames))
			} else {
				n.fromSequence(ctx, w.choices.IntN(sequenceNames))
			}
			cancel()
			if n.l.asked || n.ended {
				return
			}
		}
		n.m.rest(n.l, seldom(w.choices, w.think()))
	}
}

// fromSegment makes ids that are new, and greater than those this life had before
// it asked.
func (n *counts) fromSegment(ctx context.Context, i int) {
	o := &n.m.w.oracle
	before := n.top[i]
	r, err := n.named[i].Take(ctx, 1+n.m.w.choices.IntN(6))
	n.failed(err)
	if err != nil {
		return
	}
	for id := range r.All() {
		if id <= before {
			o.find("order", n.m, "segment %d: id %d after %d", i, id, before)
		}
		before = id
		o.counted(n.l, fmt.Sprintf("segment %d", i), uint64(i+1), id)
	}
	n.top[i] = max(n.top[i], before)
}

// fromSequence makes an id greater than all that anybody had before it asked.
func (n *counts) fromSequence(ctx context.Context, i int) {
	o := &n.m.w.oracle
	before := o.sequenced[i]
	if n.m.w.plan.regime == Forgetful {
		before = n.last[i]
	}
	first, err := n.ordered[i].Take(ctx, 2)
	n.failed(err)
	if err != nil {
		return
	}
	if first <= before {
		o.find("order", n.m, "sequence %d: id %d after somebody had %d", i, first, before)
	}
	for id := first; id < first+2; id++ {
		o.counted(n.l, fmt.Sprintf("sequence %d", i), uint64(segmentNames+i+1), id)
	}
	o.sequenced[i], n.last[i] = max(o.sequenced[i], first+1), max(n.last[i], first+1)
}

func (n *counts) failed(err error) {
	n.l.last = err
	if err != nil {
		n.m.w.trace.say(n.m, "%v", err)
		n.m.w.oracle.documented(n.m, err)
	}
}

// end gives back what is left, and checks that nothing comes after.
func (n *counts) end() {
	if n.ended {
		return
	}
	n.ended = true
	ctx, cancel := n.m.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := errors.Join(n.segments.Close(ctx), n.sequences.Close(ctx))
	n.m.w.trace.say(n.m, "has left: %v", err)
	n.m.w.oracle.documented(n.m, err)
	for i := range n.named {
		if id, err := n.named[i].Next(); !errors.Is(err, firn.ErrClosed) {
			n.m.w.oracle.find("order", n.m, "segment %d: id %d after the end, %v", i, id, err)
		}
	}
}

// leave does nothing more: calls end by their own contexts.
func (*counting) leave(*life) {}
