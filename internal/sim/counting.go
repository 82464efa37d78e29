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

// names of the counters that all processes share.
const (
	segmentNames  = 3
	sequenceNames = 2
	maxStride     = 3
)

// counts are the counters of one life.
type counts struct {
	*counting
	l         *life
	segments  *segment.Segments
	offset    int64 // of the ids of segments
	stride    int64
	sequences *sequence.Sequences
	named     [segmentNames]*segment.Namespace
	ordered   [sequenceNames]*sequence.Namespace
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
			c.m.spawn(n.call)
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
	// Each offset behaves like a store of its own, which does not know of the others.
	if n.stride = w.plan.stride; n.stride > 1 {
		n.offset = int64(c.m.id) % n.stride
		cfg.Offset, cfg.Stride = n.offset, n.stride
	}
	var err error
	if n.segments, err = segment.New(cfg); err != nil {
		return nil, err
	}
	if n.sequences, err = sequence.New(sequence.Config{
		Store: c.m.client(), Timeout: pick(r, time.Second, 5*time.Second), Time: c.m, Random: w.library.Uint64,
	}); err != nil {
		return nil, err
	}
	for i := range n.named {
		if n.named[i], err = n.segments.Namespace(n.segmentName(i)); err != nil {
			return nil, err
		}
		if w.plan.regime == Counted {
			n.top[i] = w.oracle.raised[i][n.offset]
		}
	}
	for i := range n.ordered {
		if n.ordered[i], err = n.sequences.Namespace(fmt.Sprintf("seq%d", i)); err != nil {
			return nil, err
		}
	}
	w.trace.say(c.m, "starts, with steps of %d to %d", cfg.MinStep, cfg.MaxStep)
	return n, nil
}

// call requests ids until it is time to leave.
func (n *counts) call() {
	w := n.m.w
	for !n.l.asked && !n.ended {
		for range 1 + w.choices.IntN(5) {
			w.steps++
			ctx, cancel := n.m.WithTimeout(context.Background(), time.Duration(1+w.choices.Int64N(int64(2*time.Second))))
			from := n.m.start()
			n.ask(ctx)
			cancel()
			w.oracle.waited(n.l, "a call with a context", from, 2*time.Second+slack)
			if n.l.asked || n.ended {
				return
			}
		}
		n.m.rest(n.l, seldom(w.choices, w.think()))
	}
}

// ask makes one of the possible calls.
func (n *counts) ask(ctx context.Context) {
	r := n.m.w.choices
	switch i := r.IntN(segmentNames); r.IntN(24) {
	case 0, 1:
		n.raise(ctx, i)
	case 2:
		n.raiseSequence(ctx, r.IntN(sequenceNames))
	case 3, 4:
		n.consecutive(ctx, i)
	case 5, 6, 7, 8, 9, 10, 11:
		n.fromSequence(ctx, r.IntN(sequenceNames))
	default:
		n.fromSegment(ctx, i)
	}
}

func (n *counts) segmentName(i int) string { return fmt.Sprintf("seg%d-%d", i, n.offset) }

// fromSegment makes ids that are new, and greater than all ids this life had before the call.
func (n *counts) fromSegment(ctx context.Context, i int) {
	before := n.top[i]
	r, err := n.named[i].Take(ctx, 1+n.m.w.choices.IntN(6))
	n.failed(err)
	if err == nil {
		n.got(i, before, r)
	}
}

// consecutive makes consecutive ids.
func (n *counts) consecutive(ctx context.Context, i int) {
	before, count := n.top[i], 1+n.m.w.choices.IntN(12)
	r, err := n.named[i].Reserve(ctx, count)
	n.failed(err)
	if err != nil {
		return
	}
	if r.Len() != count || r.Stride != 1 {
		n.m.w.oracle.find("order", n.m, "segment %d: %v for %d consecutive ids", i, r, count)
	}
	n.got(i, before, r)
}

// got checks a range; before was the greatest id at the start of the call.
func (n *counts) got(i int, before firn.ID, r segment.Range) {
	o := &n.m.w.oracle
	for id := range r.All() {
		if id <= before {
			o.find("order", n.m, "segment %d: id %d after %d", i, id, before)
		}
		if int64(id)%n.stride != n.offset {
			o.find("order", n.m, "segment %d: id %d is not of offset %d, stride %d", i, id, n.offset, n.stride)
		}
		before = id
		o.counted(n.l, fmt.Sprintf("segment %d", i), uint64(i+1), id)
	}
	n.top[i] = max(n.top[i], before)
}

// raise rules ids out: for this life, or for all later lives.
func (n *counts) raise(ctx context.Context, i int) {
	if n.m.w.choices.IntN(2) == 0 {
		n.raiseCounter(i)
		return
	}
	last := n.top[i] + firn.ID(n.m.w.choices.IntN(200))
	err := n.named[i].Raise(ctx, last)
	n.failed(err)
	if err == nil {
		n.m.w.trace.say(n.m, "segment %d: raised above %d", i, last)
		n.top[i] = max(n.top[i], last)
	}
}

// raiseCounter acts like an operator who takes over a counter from another system. It works without
// delay, and only while the store can confirm: [segment.RaiseCounter] cannot wait on the simulated
// clock.
func (n *counts) raiseCounter(i int) {
	w := n.m.w
	if r := w.store.main.replica; r != nil && !r.linked {
		return
	}
	last := n.top[i] + firn.ID(w.choices.IntN(20*int(n.stride)))
	now, err := segment.RaiseCounter(context.Background(), direct{w.store}, n.segmentName(i), last, segment.Stripe{Offset: n.offset, Stride: n.stride})
	w.trace.say(n.m, "segment %d: an operator raises the counter above %d: %d, %v", i, last, now.Next, err)
	w.oracle.documented(n.m, err)
	if err == nil {
		w.oracle.raised[i][n.offset] = max(w.oracle.raised[i][n.offset], last)
	}
}

// raiseSequence rules ids out for all processes.
func (n *counts) raiseSequence(ctx context.Context, i int) {
	o := &n.m.w.oracle
	last := max(o.sequenced[i], n.last[i]) + firn.ID(n.m.w.choices.IntN(50))
	err := n.ordered[i].Raise(ctx, last)
	n.failed(err)
	if err == nil {
		n.m.w.trace.say(n.m, "sequence %d: raised above %d", i, last)
		o.sequenced[i], n.last[i] = max(o.sequenced[i], last), max(n.last[i], last)
	}
}

// fromSequence makes an id greater than all ids any process had before the call.
func (n *counts) fromSequence(ctx context.Context, i int) {
	o := &n.m.w.oracle
	before := o.sequenced[i]
	if n.m.w.plan.regime == Forgetful {
		before = n.last[i]
	}
	first, err := n.ordered[i].Reserve(ctx, 2)
	n.failed(err)
	if err != nil {
		return
	}
	if first <= before {
		o.find("order", n.m, "sequence %d: id %d after %d was issued", i, first, before)
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

// end gives the rest back, and checks that no ids follow.
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
		if id, err := n.named[i].Next(ctx); !errors.Is(err, firn.ErrClosed) {
			n.m.w.oracle.find("order", n.m, "segment %d: id %d after the end, %v", i, id, err)
		}
	}
}
