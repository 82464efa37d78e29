package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
)

// How a lease stops while its look is overdue. A holder that was paused, or gets no processor, cannot notice that the
// store has forgotten it, and newcomers wait no longer than a holder needs that looks in time. So the generator never
// has more ticks than those until the next look is overdue: each look that ends allows some more, up to the fence. One
// that finds its slot forgotten allows them once the slot is written again. One that fails, or finds that the worker is
// lost, allows them too, since holders go on while the store is away. But a look that ended when it was overdue counts
// only if it has found its slot as it should be: after a pause a connection may be dead, an answer may lose against a
// time-out, and who was granted the ticks meanwhile may be forgotten.

// overdueAfter is how long after the beginning of a look the next one has ended: it begins a look later, or when
// a hanging one is answered, and takes a call. A quarter of a call is for processors that are busy. This is less
// than the grace of newcomers.
func overdueAfter(look time.Duration) time.Duration {
	call := patience(look)
	return max(look, call) + call + call/4
}

// overdue is that of these slots; 0 if newcomers do not wait for looks, or wait for all fences.
func (s *Slots) overdue() time.Duration {
	if s.rules.trusting || s.rules.strict > 0 {
		return 0
	}
	return overdueAfter(s.cfg.Look)
}

// late reports whether newcomers may have waited for long enough since a look began.
func (s *Slots) late(look reading) bool {
	return s.overdue() > 0 && look.until(s.read()) > s.rules.grace
}

// A lookState is what a look of [Slots] has found so far.
type lookState struct {
	good   func() // is called once the slot is as it should be
	forgot bool   // the store has less than it had confirmed
}

type lookKey struct{}

func stateOf(ctx context.Context) *lookState {
	if s, ok := ctx.Value(lookKey{}).(*lookState); ok {
		return s
	}
	return &lookState{good: func() {}}
}

// allowed returns the part of a new grant that the generator gets at first. The claim asked for a window beyond the
// tick at which it was made: the process may have been paused since.
func (l *Lease) allowed(grant firn.Grant, window firn.Tick) firn.Grant {
	l.count(readingOf(l.cfg.Generator.Time))
	grant.Through = l.until(grant, max(grant.Through-window, grant.After+1))
	return grant
}

// until returns how far the generator may go after a look that began at a tick.
func (l *Lease) until(grant firn.Grant, began firn.Tick) firn.Tick {
	unit := l.cfg.Generator.Layout.Unit()
	if ticks := firn.Tick((l.overdue + unit - 1) / unit); ticks > 0 && grant.Through-began > ticks {
		return began + ticks
	}
	return grant.Through
}

// look calls a function that looks at the slot of a worker; the generator may go on once it says so.
func (l *Lease) look(ctx context.Context, worker int64, do func(ctx context.Context) error) error {
	at, began := readingOf(l.cfg.Generator.Time), l.ask().From
	allow := func(good bool) {
		l.mu.Lock()
		grant, last := l.grant, l.counted
		l.mu.Unlock()
		overdue := last.until(readingOf(l.cfg.Generator.Time)) > l.overdue
		if grant.Worker != worker || overdue && !good {
			return
		}
		l.count(at)
		if err := l.gen.Extend(worker, l.until(grant, began)); err != nil {
			// The generator is between two workers, halted or closed: the next turn looks at the worker that it has then.
			l.cfg.Log.Debug("looked at a worker not in use", "worker", worker, "error", err)
		}
		l.wake(0)
	}
	state := &lookState{good: func() { allow(true) }}
	err := do(context.WithValue(ctx, lookKey{}, state))
	switch {
	case err == nil: // with a fence that this look may have moved
		allow(true)
	case !state.forgot && !errors.Is(err, ErrOverlap) && !errors.Is(err, errPast):
		allow(false)
	}
	return err
}

// count records the beginning of a look that counts.
func (l *Lease) count(look reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counted = look
}

// wake lets the callers that wait for a look see whether they may go on, after more turns.
func (l *Lease) wake(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns += more
	close(l.looked)
	l.looked = make(chan struct{})
}

// atFence is [firn.Config.AtFence]: it waits while a look is overdue, for three at most. The first to end may have begun
// before the process was paused, and the second may find a dead connection.
func (l *Lease) atFence(ctx context.Context, at *firn.FenceError) error {
	for last, waited := 0, false; ; waited = true {
		l.mu.Lock()
		looked, turn, through, lost, closing := l.looked, l.turns, l.grant.Through, l.lost, l.closing
		l.mu.Unlock()
		last = cmp.Or(last, turn+3)
		switch fence := l.gen.State().Fence; {
		case closing:
			return firn.ErrClosed
		case fence > at.Tick, waited && l.gen.Now() <= fence: // the clock may have been set back
			return nil
		case at.Revoked || lost || fence >= through:
			return at
		case turn >= last:
			return fmt.Errorf("lease: the process was stopped, or its clock jumped, and every look at the slot of worker %d has failed since: %w", at.Worker, at)
		}
		l.mu.Lock()
		l.waiting = true
		l.hurry()
		l.mu.Unlock()
		if err := turns.Wait(ctx, l.cfg.Generator.Time, looked); err != nil {
			return turns.Ended(ctx, "lease: wait for a look at the slot", err)
		}
	}
}

// Check is [firn.Generator.Check]. It returns nil while calls wait for a look that is overdue.
func (l *Lease) Check() error {
	err := l.gen.Check()
	var at *firn.FenceError
	if !errors.As(err, &at) || at.Revoked {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Last == nil && at.Tick < l.grant.Through {
		return nil
	}
	return err
}
