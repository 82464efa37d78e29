package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store/register"
)

// run keeps the worker until ctx ends. The grace of newcomers relies on a look that begins one interval
// after the previous one began, and soon after a failed one.
func (l *Lease) run(ctx context.Context) {
	defer close(l.done)
	again := register.Backoff{Random: l.cfg.Generator.Random}
	pause := max(l.untilLook(), again.Next())
	for l.pause(ctx, pause) == nil {
		if l.turn(ctx) {
			again.Tries = 0
			pause = max(l.untilLook(), again.Next())
		} else {
			if l.cfg.Generator.Time.Monotonic()-l.began >= patience(l.cfg.Look) { // it hung, and ids may end with the next
				again.Tries = 0
			}
			pause = min(l.cfg.Look, again.Next())
		}
	}
}

// pause waits until the next look, which calls may hurry.
func (l *Lease) pause(ctx context.Context, d time.Duration) error {
	pause, end := l.awaited(ctx)
	defer end()
	sleep := l.cfg.Generator.Time.Sleep
	if idle, ok := turns.Idle(l.cfg.Generator.Time); ok {
		sleep = idle
	}
	if err := sleep(pause, d); ctx.Err() != nil {
		return err
	}
	return nil
}

// untilLook returns how long to wait for the next look.
func (l *Lease) untilLook() time.Duration {
	return l.cfg.Look - (l.cfg.Generator.Time.Monotonic() - l.began)
}

// turn keeps the worker, and then releases those left, in the time that remains until the next look: slow releases must
// not delay that. False: look again soon.
func (l *Lease) turn(ctx context.Context) bool {
	clock := l.cfg.Generator.Time
	began := clock.Monotonic()
	l.tellEnd()
	looked := l.keep(ctx)
	if looked {
		l.giveBack(ctx, min(began+l.cfg.Look-clock.Monotonic(), patience(l.cfg.Look)))
	}
	return looked
}

// keep renews the fence when half the window is left, else looks at the slot. It replaces a lost worker.
func (l *Lease) keep(ctx context.Context) bool {
	defer l.wake()
	background := ctx
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, callTimeout)
	defer cancel()
	l.mu.Lock()
	held := l.grant
	l.settled = cancel
	l.mu.Unlock()
	ask := l.ask()
	err := l.look(ctx, held, func(ctx context.Context) error {
		if held.Through-ask.From > l.window/2 {
			return l.source.Look(ctx, held)
		}
		further, err := l.source.Renew(ctx, held, ask)
		if err == nil && (further.Worker != held.Worker || further.Through < held.Through) {
			return fmt.Errorf("lease: a broken source: it renews worker %d up to tick %d as worker %d up to %d", held.Worker, held.Through, further.Worker, further.Through)
		}
		if err == nil {
			further.After = held.After // it identifies the grant
			l.renewed(further)
		}
		return err
	})
	switch {
	case err == nil:
		var before error
		l.note(func(s *State) { l.lost, before, s.Err = false, s.Err, nil; l.outage.Ends() })
		if before != nil {
			l.cfg.Log.Info("the worker is kept again", "worker", held.Worker)
		}
	case errors.Is(err, ErrLost):
		l.takeOther(background, held, err)
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
		l.failed("keep the worker", held.Worker, err)
	}
	return err == nil || errors.Is(err, ErrLost)
}

// same reports whether two grants are one, perhaps before and after a renewal.
func same(a, b firn.Grant) bool { return a.Worker == b.Worker && a.After == b.After }

func (l *Lease) renewed(held firn.Grant) {
	l.mu.Lock()
	l.state.Renewals++
	if same(l.grant, held) {
		l.grant = held
	}
	l.mu.Unlock()
	l.cfg.Log.Debug("fence moved", "worker", held.Worker, "fence", l.fenceTime(held))
}
