package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// A Counter is where the ids of a name continue, according to the store.
type Counter struct {
	// Next is where the next range begins: at most a stride above the last id.
	Next   uint64
	Stripe Stripe
}

// ReadCounter returns the counter of name, in whatever form. Errors: [store.ErrNotFound] if there is no counter,
// *[store.TakenError] if it is no segment, [store.ErrForeign], *[firn.SyntaxError] for an invalid name, and the store's.
func ReadCounter(ctx context.Context, s store.Store, name string) (Counter, error) {
	if err := cmp.Or(config.RequiredArgument("segment", "the store", s), store.CheckName("segment", name)); err != nil {
		return Counter{}, err
	}
	entry, err := s.Get(ctx, register.CounterKey(name))
	if err != nil {
		return Counter{}, fmt.Errorf("segment: read the counter of %q: %w", name, err)
	}
	c, err := readCounter(name, entry, &register.Use{Kind: kind})
	return c.Counter, err
}

// RaiseCounter makes the next range of name begin above last, the last id used, or -1 before id 0, to take over from
// another system, and returns the counter. It makes a missing counter, whose form ([Config.Form]) its
// first user decides, and never lowers one. Processes keep using the ranges that they hold, and do not
// give them back. Errors are those of ReadCounter except the first, *[StripeError] if the counter has
// another stripe, and *[firn.RangeError] for a last below -1.
func RaiseCounter(ctx context.Context, s store.Store, name string, last firn.ID, stripe Stripe) (Counter, error) {
	if err := config.RequiredArgument("segment", "the store", s); err != nil {
		return Counter{}, err
	}
	cfg := Config{Store: s, Offset: stripe.Offset, Stride: stripe.Stride}
	if err := cfg.check(); err != nil {
		return Counter{}, err
	}
	if last < -1 {
		return Counter{}, outside(name, "last id", int64(last), -1, math.MaxInt64)
	}
	c := newCounters(&cfg)
	c.mine.Form = store.Form{}
	return c.raise(ctx, name, uint64(last)+1, last)
}

// raise makes the next range of name begin at least, up to 2^63, or above. It also writes a counter that
// is already further: as long as the record is the one that granted the last range, that range may be given
// back, which would lower the counter below least; and the record read may be a write that the
// store will lose. A counter that must exist, and is missing or was set back, is only raised if last, which somebody named, is an
// id and not below what is known here.
func (c *counters) raise(ctx context.Context, name string, least uint64, last firn.ID) (Counter, error) {
	if err := store.CheckName("segment", name); err != nil {
		return Counter{}, err
	}
	raised := Counter{Stripe: c.stripe}
	_, err := c.register(name).Update(ctx, func(found store.Entry) ([]byte, error) {
		now, err := c.read(name, found)
		if err != nil {
			return nil, err
		}
		if _, err := c.below(name, found, now); err != nil && int64(last) < max(c.cfg.Memory.Of(name).High(), 1) {
			return nil, err
		}
		raised.Next = max(c.stripe.from(least), now.Next)
		return c.encode(now.use, raised.Next, 0)
	})
	if err != nil {
		return Counter{}, explain(ctx, "raise the counter of", name, err)
	}
	return raised, nil
}

// Look checks that the store still has the counter as far as this process knows it, and raises it otherwise: then the
// store was wiped or set back, which State().SetBacks counts, and processes that start from now on make no id again that
// this one knows of. With Config.MustExist it raises nothing, and returns a *[store.SetBackError]. A process that fetches
// seldom calls it every few seconds. Errors are those of Next except *[ExhaustedError]. With your own [Source] it does nothing.
func (n *Namespace) Look(ctx context.Context) error {
	n.mu.Lock()
	closed := n.ids.closed
	n.mu.Unlock()
	if closed {
		return firn.ErrClosed
	}
	c, ok := n.all.source.(*counters)
	if !ok {
		return nil
	}
	limited, cancel := turns.WithTimeout(ctx, n.all.cfg.Time, callTimeout)
	defer cancel()
	return overdue(ctx, c.look(limited, n.name))
}

// look is [Namespace.Look].
func (c *counters) look(ctx context.Context, name string) error {
	high := c.cfg.Memory.Of(name).High() // read first: whatever others write meanwhile, the counter must be above it
	if high == 0 {
		return nil
	}
	r := c.register(name)
	entry, err := r.Read(ctx)
	var now counter
	if err == nil {
		now, err = c.read(name, entry)
	}
	if err == nil && now.Next <= uint64(high) {
		err = c.raiseBack(ctx, name, r)
	}
	if err != nil {
		return explain(ctx, "look at the counter of", name, err)
	}
	return nil
}

// raiseBack raises a counter above what is known here, unless ids were just given back to it.
func (c *counters) raiseBack(ctx context.Context, name string, r *register.Register) error {
	known, err := c.enter(ctx, "look at", name)
	if err != nil {
		return err
	}
	defer known.Leave()
	r.Forget() // others may have moved it before
	_, err = r.Update(ctx, func(found store.Entry) ([]byte, error) {
		now, err := c.read(name, found)
		if err != nil {
			return nil, err
		}
		if back, err := c.setBack(name, found, now); err != nil || !back {
			return nil, err
		}
		return c.encode(now.use, c.stripe.from(uint64(known.High())+1), 0)
	})
	if err == nil {
		known.Had(known.High()) // the store has as much again
	}
	return err
}

// Raise makes all later ids greater than last, to take over from another counter, or after the store
// has forgotten some: last is the last id used, or -1. It never lowers. It drops the held ranges that
// begin at last or below, and raises the counter in the store above last and all ids held here. Errors
// are those of Next except *[ExhaustedError], and a *[firn.RangeError] for a last below -1 or above Max. With Config.MustExist
// a counter that is missing or was set back is raised only by a last of 1 or more that is not below what this process has had;
// otherwise the error is a *[store.SetBackError], and nothing is dropped.
// Other processes keep using the ranges they hold, and do not give them back. Raise the counter of your
// own [Source] yourself.
func (n *Namespace) Raise(ctx context.Context, last firn.ID) error {
	if last < -1 || last > n.all.cfg.Max {
		return outside(n.name, "last id", int64(last), -1, int64(n.all.cfg.Max))
	}
	n.mu.Lock()
	if n.ids.closed {
		n.mu.Unlock()
		return firn.ErrClosed
	}
	c, ok := n.all.source.(*counters)
	if !ok || !c.cfg.MustExist { // which may refuse it, and then keeps what is in memory
		n.ids.ruleOut(last)
	}
	above := max(n.ids.above(), last)
	n.mu.Unlock()
	if ok {
		limited, cancel := turns.WithTimeout(ctx, n.all.cfg.Time, callTimeout)
		defer cancel()
		if _, err := c.raise(limited, n.name, max(uint64(above)+1, uint64(c.cfg.Start)), last); err != nil {
			return overdue(ctx, err)
		}
	}
	err := n.prepareAbove(ctx, last)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrExhausted) && !errors.Is(err, firn.ErrClosed) {
		err = n.prepareAbove(ctx, last) // it was of a fetch from before the raise
	}
	if errors.Is(err, ErrExhausted) {
		return nil // no id is left above last, as in package sequence
	}
	return err
}

// prepareAbove is [Namespace.Prepare] once the counter is above last.
func (n *Namespace) prepareAbove(ctx context.Context, last firn.ID) error {
	n.mu.Lock()
	n.ids.ruleOut(last)
	n.refill.retry()
	n.mu.Unlock()
	return n.Prepare(ctx)
}
