package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// own is a custom [lease.Source]: an authority that assigns numbers and keeps the promise of a source,
// but is slow, fails, and takes numbers away at any time.
type own struct {
	m *machine
	l *life
}

// The authority's table: the latest grant of each worker, and its holder.
type authority map[worker]*entitled

type entitled struct {
	through firn.Tick
	to      firn.Grant
	of      *life
}

// exchange is a call of the authority. Its answer is not lost: the promise of a source is about the
// grants it has returned.
func (o *own) exchange(ctx context.Context, do func() error) error {
	w, t := o.m.w, o.m.w.running
	done := false
	var err error
	if w.store.down <= w.now && o.m.cut <= w.now && !w.faults.strikes(lostRequest) {
		turn := t.turn + 1
		w.after(w.travel(), func() {
			if t.turn == turn && !t.ended && !t.killed {
				done, err = true, do()
				t.wake()
			}
		})
	}
	t.at(w.now + int64(w.plan.patience))
	t.wait(ctx, nil)
	if !done {
		return fmt.Errorf("the source of one's own: %w: no answer", store.ErrUnavailable)
	}
	return err
}

// Acquire implements [lease.Source].
func (o *own) Acquire(ctx context.Context, asked func() lease.Ask) (g firn.Grant, err error) {
	w := o.m.w
	ask := asked()
	err = o.exchange(ctx, func() error {
		for n := range w.plan.layout.MaxWorker() + 1 {
			e := w.authority[worker{o.l.datacenter, n}]
			if e == nil {
				e = &entitled{through: -1}
				w.authority[worker{o.l.datacenter, n}] = e
			}
			if e.through < ask.Now {
				g = firn.Grant{Worker: n, After: max(e.through, ask.From-1), Through: max(ask.Now, ask.From) + ask.Window}
				if last := w.plan.layout.MaxTick(); ask.From > last-ask.Window {
					g.Through = last
				}
				e.through, e.to, e.of = g.Through, g, o.l
				return nil
			}
		}
		return &lease.FullError{Pool: "own", Workers: w.plan.layout.MaxWorker() + 1, Next: noon.Add(time.Duration(w.now))}
	})
	return g, err
}

// held runs do if this is still the authority's latest grant of its worker.
func (o *own) held(ctx context.Context, held firn.Grant, do func(e *entitled) error) error {
	return o.exchange(ctx, func() error {
		e := o.m.w.authority[worker{o.l.datacenter, held.Worker}]
		if e.of != o.l || e.to.After != held.After {
			return fmt.Errorf("the source of one's own: %w", lease.ErrLost)
		}
		return do(e)
	})
}

// Renew implements [lease.Source].
func (o *own) Renew(ctx context.Context, held firn.Grant, ask lease.Ask) (firn.Grant, error) {
	renewed := held
	err := o.held(ctx, held, func(e *entitled) error {
		renewed.Through = max(held.Through, min(max(ask.Now, ask.From)+ask.Window, o.m.w.plan.layout.MaxTick()))
		e.through = max(e.through, renewed.Through)
		return nil
	})
	if err != nil {
		return held, err
	}
	return renewed, nil
}

// Look implements [lease.Source].
func (o *own) Look(ctx context.Context, held firn.Grant) error {
	return o.held(ctx, held, func(*entitled) error { return nil })
}

// Traits implements [lease.Source].
func (o *own) Traits() lease.Traits { return lease.Traits{} }

// Release implements [lease.Source].
func (o *own) Release(ctx context.Context, held firn.Grant, last firn.Tick) error {
	return o.held(ctx, held, func(e *entitled) error {
		e.through = max(last, held.After)
		e.of = nil
		return nil
	})
}
