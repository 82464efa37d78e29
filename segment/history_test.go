package segment_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store/storetest"
)

var histories = flag.Int("histories", 400, "how many random histories to play")

// actor is the time of one process: what it has started ends with it.
type actor struct {
	*stage
	dead bool
}

func (a *actor) Go(do func()) {
	a.stage.Go(func() {
		if !a.dead {
			do()
		}
	})
}

type process struct {
	actor    *actor
	segments *segment.Segments
}

// history is a random course of several processes over one store that fails,
// loses answers and is away at times.
type history struct {
	*world
	random    *rand.Rand
	processes []*process
	step      int64
	stripe    segment.Stripe
	busy      map[*process]bool // has a call under way
	depth     int               // of what happens within a call of the store
	over      bool
	down      bool
	faulty    bool
	cutOff    bool // the store applies writes, and every answer is lost
	issued    int
	raised    map[string]firn.ID // what an operator ruled out for those who begin later
}

func (h *history) start(i int) {
	a := &actor{stage: h.stage}
	s := h.open(func(c *segment.Config) {
		c.Store = before{h.store, h.meanwhile}
		c.Time = a
		c.MinStep, c.MaxStep = h.step, h.step*int64(1+h.random.IntN(20))
		c.Target = time.Second * time.Duration(1+h.random.IntN(100))
		c.Ahead = 0.1 + 0.9*h.random.Float64()
		c.Chain = 1 + h.random.IntN(8)
		c.Fetches = 1 + h.random.IntN(3)
		c.Stride, c.Offset = h.stripe.Stride, h.stripe.Offset
	})
	for name, last := range h.raised {
		h.last[h.name(s, name)] = last
	}
	h.processes[i] = &process{actor: a, segments: s}
}

// meanwhile lets others act between two exchanges with the store.
func (h *history) meanwhile() {
	if h.depth > 2 || h.over {
		return
	}
	h.depth++
	defer func() { h.depth-- }()
	switch h.random.IntN(6) {
	case 0:
		h.stage.act()
	case 1:
		h.act()
	}
}

// act does one thing.
func (h *history) act() {
	i := h.random.IntN(len(h.processes))
	p := h.processes[i]
	name := []string{"orders", "users"}[h.random.IntN(2)]
	if h.busy[p] {
		return // two calls at once have no order, and the first may wait for what would be killed
	}
	h.busy[p] = true
	defer func() { h.busy[p] = false }()
	switch what := h.random.IntN(100); {
	case what < 8:
		n := h.name(p.segments, name)
		count := 1 + h.random.IntN(5*int(h.step))
		err := h.takeAll(n, count)
		h.allow(err)
		if err == nil {
			h.issued += count
		}
	case what < 16 && h.stripe.Stride == 1:
		n := h.name(p.segments, name)
		r, err := n.Reserve(context.Background(), 1+h.random.IntN(3*int(h.step)))
		h.allow(err)
		for id := range r.All() {
			h.note(n, id)
		}
		h.issued += r.Len()
	case what < 54:
		n := h.name(p.segments, name)
		count := 1 + h.random.IntN(3*int(h.step))
		_, err := h.take(n, count)
		h.allow(err)
		if err == nil {
			h.issued += count
		}
	case what < 69:
		h.stage.act()
	case what < 79:
		h.stage.now += time.Duration(h.random.IntN(5000)) * time.Millisecond
	case what < 84: // killed
		p.actor.dead = true
		h.start(i)
	case what < 88:
		ctx, cancel := context.WithCancel(context.Background())
		if h.random.IntN(4) == 0 {
			cancel()
		}
		err := p.segments.Close(ctx)
		cancel()
		h.allow(err)
		h.start(i)
	case what < 91:
		n := h.name(p.segments, name)
		h.allow(n.Raise(context.Background(), h.last[n]+firn.ID(h.random.IntN(200))))
	case what < 97:
		h.raise(h.name(p.segments, name))
	case what < 98:
		h.cutOff = !h.cutOff
	case what < 99:
		h.down = !h.down
		h.store.SetDown(h.down)
	default:
		h.faulty = !h.faulty
	}
}

// raise rules ids out for all who begin later, often ids that are granted already.
func (h *history) raise(n *segment.Namespace) {
	last := max(h.last[n], 0) + firn.ID(h.random.Int64N(5*h.step))
	if _, err := segment.RaiseCounter(context.Background(), h.mem, n.String(), last, h.stripe); err != nil {
		h.t.Fatal(err)
	}
	h.raised[n.String()] = max(h.raised[n.String()], last)
}

// allow fails on what must not happen: a wait that nothing can end. (Within a
// call of the store it may be for that call.) Other errors may be of a fetch in
// worse times.
func (h *history) allow(err error) {
	h.t.Helper()
	if errors.Is(err, errStuck) && h.depth == 0 {
		h.t.Fatal(err)
	}
}

func TestRandomHistoriesRepeatNoIDAndKeepOrder(t *testing.T) {
	total := 0
	for seed := range uint64(*histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			h := &history{world: w, busy: map[*process]bool{}, raised: map[string]firn.ID{}, random: w.stage.random, step: 1 + w.stage.random.Int64N(20)}
			h.stripe = []segment.Stripe{{Offset: 0, Stride: 1}, {Offset: 1, Stride: 3}}[seed%2]
			w.store.Script = func(storetest.Call) storetest.Outcome {
				if h.cutOff {
					return storetest.FailApplied
				}
				if h.faulty && h.random.IntN(2) == 0 {
					return []storetest.Outcome{
						storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate, storetest.Refuse,
					}[h.random.IntN(4)]
				}
				return storetest.Pass
			}
			h.processes = make([]*process, 1+h.random.IntN(4))
			for i := range h.processes {
				h.start(i)
			}
			for range 300 {
				h.act()
			}
			for name, seen := range w.seen {
				for id := range seen {
					if int64(id)%h.stripe.Stride != h.stripe.Offset {
						t.Fatalf("id %d of %s is not of the stripe", id, name)
					}
				}
			}
			total += h.issued
			// Once all is well again, all go on.
			h.store.SetDown(false)
			h.down, h.faulty, h.cutOff, h.over = false, false, false, true
			h.stage.now += time.Minute
			h.stage.settle()
			h.stage.now += time.Minute
			for _, p := range h.processes {
				for _, name := range []string{"orders", "users"} {
					if _, err := w.take(h.name(p.segments, name), 200); err != nil {
						t.Fatalf("all is well, but: %v", err)
					}
				}
				w.close(p.segments)
			}
		})
	}
	if total < 50*(*histories) {
		t.Errorf("only %d ids were issued in %d histories", total, *histories)
	}
}
