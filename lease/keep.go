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
	for looked := true; l.pause(ctx, pause, looked) == nil; {
		began := clock.Monotonic()
		if looked = l.turn(ctx); looked {
			again.Tries = 0
			pause = max(l.cfg.Look-(clock.Monotonic()-began), again.Next())
		} else {
			pause = min(l.cfg.Look, again.Next())
		}
	}
}

// pause waits until the next look. It ends early if calls wait for a look, unless the last one has failed: then the next
// is soon.
func (l *Lease) pause(ctx context.Context, d time.Duration, looked bool) error {
	pause, end := context.WithCancel(ctx)
	defer end()
	l.mu.Lock()
	if l.hurry = end; !looked {
		l.hurry = func() {}
	}
	if l.waiting {
		l.hurry()
	}
	l.mu.Unlock()
	sleep := l.cfg.Generator.Time.Sleep
	if c, ok := l.cfg.Generator.Time.(idler); ok {
		sleep = c.Idle
	}
	err := sleep(pause, d)
	l.mu.Lock()
	l.waiting = false // for the look that begins now
	l.mu.Unlock()
	if ctx.Err() == nil {
		return nil
	}
	return err
}

// An idler is a clock for tests, as in firntest. Its Sleep moves it, since the caller waits for that. No caller waits for
// the next look, which has another method.
type idler interface {
	Idle(ctx context.Context, d time.Duration) error
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
	defer l.wake(1)
	background := ctx
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, callTimeout)
	defer cancel()
	l.mu.Lock()
	held := l.grant
	l.settled = cancel
	l.mu.Unlock()
	ask, began := l.ask(), l.cfg.Generator.Time.Monotonic()
	err := l.look(ctx, held.Worker, func(ctx context.Context) error {
		if held.Through-ask.From > l.window/2 {
			return l.source.Look(ctx, held)
		}
		further, err := l.source.Renew(ctx, held, ask)
		if err == nil {
			l.renewed(further)
		}
		return err
	})
	switch {
	case err == nil:
		l.note(func(s *State) { l.lost, s.Last = false, nil })
	case errors.Is(err, ErrLost):
		l.takeOther(background, held, ask, began, err)
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
	l.cfg.Log.Debug("fence moved", "worker", held.Worker, "fence", l.fenceTime(held))
}
