package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
)

// A holder that was paused, suspended or starved has not looked at its slot. If the store has forgotten it meanwhile,
// newcomers have waited for the grace, which suffices for a holder that looks in time. So the generator never has more
// ticks than those until the next look is overdue: each look that counts allows some more, up to the fence.
//
// A look counts if it finds its slot as it should be, and, before it is overdue, also if it fails: holders go on while
// the store is away. When it ends matters, not when it begins: after a pause a connection may be dead, an answer may
// lose against a time-out, and who was granted the ticks meanwhile may be forgotten. Nor does a failed look count that
// ended later than its time-out, or beside processors that are very busy: the store may have answered. A look that
// finds its slot forgotten counts once the slot is written again, and until then no failed one does.

// overdueAfter is how long after the beginning of a look the next one has ended. It begins a look later, or after the calls
// of this one, a read and a write, and takes a call. A quarter of a call is for processors that are busy. This is less
// than the grace of newcomers.
func overdueAfter(look time.Duration) time.Duration {
	call := patience(look)
	return max(look, 2*call) + call + call/4
}

// overdue is that of these slots; 0 if newcomers do not wait for looks, or wait for all fences.
func (s *poolSource) overdue() time.Duration {
	if s.rules.trusting || s.rules.strict > 0 {
		return 0
	}
	return overdueAfter(s.cfg.Look)
}

// late reports whether newcomers may have waited for long enough since a look began.
func (s *poolSource) late(look reading) bool {
	return s.overdue() > 0 && look.until(s.read()) > s.rules.grace
}

// A look is one at the slot of a holding.
type look struct {
	slots  *poolSource
	at     holding
	began  reading
	allow  func() // lets the generator go on
	forgot bool   // the store has less than it had confirmed, and the slot is not written again
}

type allowKey struct{}

func (s *poolSource) beginLook(ctx context.Context, h holding) *look {
	allow, ok := ctx.Value(allowKey{}).(func())
	if !ok { // of a loan
		allow = func() {}
	}
	return &look{slots: s, at: h, began: s.read(), allow: allow, forgot: h.forgot}
}

// counts records that this look counts.
func (k *look) counts() {
	k.forgot = false
	k.slots.change(k.at, func(h *holding) {
		h.forgot = false
		if k.began.mono >= h.looked.mono { // two looks at a loan may overlap
			h.looked = k.began
		}
	})
	k.allow()
}

// failed decides whether a look that failed counts. One that finds the worker lost proves that no other was granted its
// ticks, unless newcomers may have waited before it. One that was not prompt was held up in this process, not by the store.
func (k *look) failed(err error) {
	ended, call := k.slots.read(), patience(k.slots.cfg.Look)
	runtime.Gosched() // where the processors are busy, this takes as long as an answer waits to be read
	now := k.slots.read()
	prompt := k.began.until(ended) <= call+call/4 && ended.until(now) <= call/2
	switch since := k.at.looked.until(now); {
	case errors.Is(err, ErrOverlap), errors.Is(err, errPast):
	case k.forgot:
		k.slots.change(k.at, func(h *holding) { h.forgot = true })
	case errors.Is(err, ErrLost) && since <= k.slots.rules.grace, since <= k.slots.overdue() && prompt:
		k.counts()
	}
}

// allowed returns the part of a new grant that the generator gets at first. The claim asked for a window beyond the
// tick at which it was made, which counts as a look: the process may have been paused since.
func (l *Lease) allowed(grant firn.Grant, window firn.Tick) firn.Grant {
	grant.Through = l.until(grant, max(grant.Through-window, grant.After+1))
	return grant
}

// until returns how far the generator may go after a look that began when its ids reached up to a tick.
func (l *Lease) until(grant firn.Grant, reach firn.Tick) firn.Tick {
	if ticks := l.ticks(l.overdue); ticks > 0 && grant.Through-reach > ticks {
		return reach + ticks
	}
	return grant.Through
}

// ticks rounds up.
func (l *Lease) ticks(d time.Duration) firn.Tick {
	unit := l.cfg.Generator.Layout.Unit()
	return firn.Tick((d + unit - 1) / unit)
}

// look calls a function that looks at the slot of a worker; the generator may go on once that look counts.
func (l *Lease) look(ctx context.Context, held firn.Grant, do func(ctx context.Context) error) error {
	l.began = l.cfg.Generator.Time.Monotonic()
	reach := l.gen.Now() + l.ticks(l.cfg.Generator.Lead())
	counted := false
	allow := func() {
		l.mu.Lock()
		grant := l.grant
		if !counted {
			l.counted, counted = l.counted+1, true
		}
		l.mu.Unlock()
		if !same(grant, held) {
			return
		}
		if err := l.gen.Extend(held.Worker, l.until(grant, reach)); err != nil {
			// The generator is between two workers, halted or closed: the next turn looks at the worker that it has then.
			l.cfg.Log.Debug("looked at a worker not in use", "worker", held.Worker, "error", err)
		}
		l.wake()
	}
	err := do(context.WithValue(ctx, allowKey{}, allow))
	if err == nil { // also of a source of another kind, and with a fence that this look has moved
		allow()
	}
	l.mu.Lock()
	l.hurries = counted
	l.mu.Unlock()
	return err
}

// wake lets the callers that wait for a look see whether they may go on.
func (l *Lease) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.looked)
	l.looked, l.waiting = make(chan struct{}), false
}

// awaited returns a context that ends when calls wait for a look, unless the latest did not count: then the next is soon,
// or of no use.
func (l *Lease) awaited(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hurry = end; !l.hurries {
		l.hurry = func() {}
	}
	if l.waiting {
		l.hurry()
	}
	return ctx, end
}

// atFence is [firn.Config.AtFence]: while a look is overdue it waits for one that counts, for as long as two may take: the
// first may have begun before the process was paused. If both count, the fence is in the way of ids ahead of the clock.
func (l *Lease) atFence(ctx context.Context, at *firn.FenceError) error {
	call := patience(l.cfg.Look)
	bounded, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, 2*call+call/2)
	defer cancel()
	for last := 0; ; {
		g, now := l.gen.State(), l.gen.Now()
		l.mu.Lock()
		looked, counted, through, closing, hurries := l.looked, l.counted, l.grant.Through, l.closing, l.hurries
		l.mu.Unlock()
		waited := last > 0
		last = cmp.Or(last, counted+2)
		switch {
		case closing:
			return firn.ErrClosed
		case g.Fence > at.Tick, waited && max(g.Last+1, now) <= g.Fence: // the clock may have been set back
			return nil
		case at.Revoked || g.Fence >= through || counted >= last, now > through && !hurries: // no look allows more
			return l.because(at)
		}
		l.mu.Lock()
		l.waiting = true
		l.hurry()
		l.mu.Unlock()
		switch err := turns.Wait(bounded, l.cfg.Generator.Time, looked); {
		case err == nil:
		case ctx.Err() != nil:
			return turns.Ended(ctx, "lease: wait for a look at the slot", err)
		default:
			return fmt.Errorf("lease: the process was stopped, or its clock jumped, and no look at the slot of worker %d has succeeded since: %w", at.Worker, l.because(at))
		}
	}
}

// because returns at, with why the latest look failed.
func (l *Lease) because(at *firn.FenceError) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Err == nil {
		return at
	}
	return &unrenewed{at, l.state.Err}
}

// An unrenewed is a FenceError with the text of why. It does not match that: a deadline of a look is none of the caller's.
type unrenewed struct {
	at  *firn.FenceError
	why error
}

func (e *unrenewed) Error() string {
	return fmt.Sprintf("%v; the latest look at its slot failed: %v", e.at, e.why)
}

// Unwrap returns the FenceError.
func (e *unrenewed) Unwrap() error { return e.at }

// Public returns what callers without an account may see: the reason may name the holder's host.
func (e *unrenewed) Public() error { return e.at }

// Check is [firn.Generator.Check]. It returns nil while calls wait for a look that is overdue, up to the fence.
func (l *Lease) Check() error {
	err := l.gen.Check()
	var at *firn.FenceError
	if !errors.As(err, &at) || at.Revoked {
		return err
	}
	now := l.gen.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Err == nil && at.Tick < l.grant.Through && now <= l.grant.Through {
		return nil
	}
	return err
}
