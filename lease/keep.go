package lease

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store/register"
)

// run keeps the worker until ctx ends. The grace of newcomers relies on a look that begins one interval
// after the previous one began, and soon after a failed one.
func (l *Lease) run(ctx context.Context) {
	defer close(l.done)
	clock := l.cfg.Generator.Time
	pause, again := l.cfg.Look, register.Backoff{Random: l.cfg.Generator.Random}
	for l.pause(ctx, pause) == nil {
		began := clock.Monotonic()
		if l.turn(ctx) {
			again.Tries = 0
			pause = max(l.cfg.Look-(clock.Monotonic()-began), again.Next())
		} else {
			pause = min(l.cfg.Look, again.Next())
		}
	}
}

// pause waits until the next look. Sleep of a clock for tests moves that clock, since its caller waits for
// that. No caller waits for a look, so such a clock has another method for it: see firntest.
func (l *Lease) pause(ctx context.Context, d time.Duration) error {
	clock := l.cfg.Generator.Time
	if c, ok := clock.(interface {
		Idle(context.Context, time.Duration) error
	}); ok {
		return c.Idle(ctx, d)
	}
	return clock.Sleep(ctx, d)
}

// turn keeps the worker, and then releases those left, in the time that remains until the next look: slow releases must
// not delay that. False: look again soon.
func (l *Lease) turn(ctx context.Context) bool {
	clock := l.cfg.Generator.Time
	began := clock.Monotonic()
	l.tellEnd()
	looked := l.keep(ctx)
	if left := l.cfg.Look - (clock.Monotonic() - began); looked && left > 0 {
		l.giveBack(ctx, min(left, patience(l.cfg.Look)))
	}
	return looked
}

// keep renews the fence when half the window is left, else looks at the slot. It replaces a lost worker.
func (l *Lease) keep(ctx context.Context) bool {
	background := ctx
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, callTimeout)
	defer cancel()
	l.mu.Lock()
	held := l.grant
	l.settled = cancel
	l.mu.Unlock()
	ask := l.ask()
	var err error
	if held.Through-ask.From <= l.window/2 {
		var further firn.Grant
		if further, err = l.source.Renew(ctx, held, ask); err == nil {
			l.renewed(further)
		}
	} else {
		err = l.source.Look(ctx, held)
	}
	switch {
	case err == nil:
		l.note(func(s *State) { l.lost, s.Last = false, nil })
	case errors.Is(err, ErrLost):
		l.takeOther(background, held, ask, err)
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
		l.failed("keep the worker", held.Worker, err)
	}
	return err == nil || errors.Is(err, ErrLost)
}

func (l *Lease) renewed(held firn.Grant) {
	l.mu.Lock()
	l.state.Renewals++
	if l.grant.Worker == held.Worker {
		l.grant = held
	}
	l.mu.Unlock()
	if err := l.gen.Extend(held.Worker, held.Through); err != nil {
		// The generator is between two workers, or closed: its fence stays, and
		// the next turn renews the worker that it has then.
		l.cfg.Log.Debug("renewed a worker not in use", "worker", held.Worker, "error", err)
	}
	l.cfg.Log.Debug("fence moved", "worker", held.Worker, "fence", l.fenceTime(held))
}
