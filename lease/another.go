package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/turns"
)

// How a lease takes another worker, after a loss or for the policy switch, and releases those left.

// takeOther replaces a lost worker. Until it succeeds the generator continues up to its fence, unless it is
// halted: these ticks stay its own unless the store has granted them again.
func (l *Lease) takeOther(ctx context.Context, lost firn.Grant, cause error) {
	l.halt(ctx, lost, cause)
	var first bool
	l.note(func(s *State) {
		if first = !l.lost; first { // until another worker is found, each turn finds the same loss
			s.Losses++
		}
		l.lost, s.Err = true, cause
	})
	if first {
		l.cfg.Log.Warn("worker lost, taking another", "worker", lost.Worker, "error", cause)
	}
	ask := l.ask
	if l.cfg.Generator.Clock != firn.ClockVirtual {
		ask = func() Ask { return l.newAsk(l.gen.State().Last + 1) }
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.settled = cancel
	moved := !same(l.grant, lost)
	l.mu.Unlock()
	if moved {
		return
	}
	began := l.cfg.Generator.Time.Monotonic()
	grant, err := l.search(ctx, cancel, lost, ask)
	switch {
	case err == nil:
		if err := l.gen.Replace(l.aboveEarlier(l.allowed(grant, l.window), ask)); err != nil {
			l.failed("go on with another worker", grant.Worker, err)
			return
		}
		l.began = began // of the claim, not of a look at the lost worker
		l.note(func(*State) { l.lost = false })
		l.cfg.Log.Info("worker leased", "worker", grant.Worker, "fence", l.fenceTime(grant))
	case !errors.Is(ctx.Err(), context.Canceled): // canceled: there is another worker already, or the lease ends
		l.fail("take another worker", lost.Worker, err, first)
	}
}

// halt stops the generator if another process may have been granted the same ticks. It then releases the lost
// worker, so that its next grant begins above the ticks used here. If that fails, the next turn finds the same loss.
// It also stops the generator after errPast, since the slot is no longer read then. Otherwise, once a clock that was
// ahead is right again, the generator would continue up to that fence, although the store may have lost the slot.
func (l *Lease) halt(ctx context.Context, lost firn.Grant, cause error) {
	overlap := errors.Is(cause, ErrOverlap)
	if overlap {
		l.note(func(s *State) {
			if s.Overlaps == 0 || !same(l.overlap, lost) { // not yet counted
				l.overlap = lost
				s.Overlaps++
			}
		})
	}
	l.mu.Lock()
	current := same(l.grant, lost)
	l.mu.Unlock()
	if !current || !overlap && !errors.Is(cause, errPast) {
		return
	}
	last, halted := l.gen.Halt(lost.Worker)
	if !halted {
		return
	}
	l.mu.Lock()
	if same(l.grant, lost) {
		l.grant.Through = last // this worker can then be granted here again, even if only the answer of the release is lost
	}
	l.mu.Unlock()
	if !overlap {
		return // the slot stays as it is: see errPast
	}
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, patience(l.cfg.Look))
	defer cancel()
	if err := l.release(ctx, pendingRelease{lost, last}); err != nil {
		l.unreleased(lost.Worker, err)
	}
}

// search acquires another worker. Meanwhile the generator uses the lost one up to its fence, and search
// looks at its slot: if the store has forgotten who took it, it is held again, and cancel ends the
// search. A failed look is not reported: the same store fails the search.
func (l *Lease) search(ctx context.Context, cancel func(), lost firn.Grant, ask func() Ask) (grant firn.Grant, err error) {
	clock := l.cfg.Generator.Time
	acquiring, end := turns.WithTimeout(ctx, clock, l.searchLimit())
	defer end()
	done := make(chan struct{})
	turns.Go(clock, func() {
		defer close(done)
		grant, err = l.other(acquiring, ask)
	})
	for ctx.Err() == nil {
		awaited, stop := l.awaited(ctx)
		pause, over := turns.WithTimeout(awaited, clock, max(l.untilLook(), l.cfg.Look/4))
		waitErr := turns.Wait(pause, clock, done)
		over()
		stop()
		if waitErr == nil {
			return grant, err
		}
		bounded, over := turns.WithTimeout(ctx, clock, callTimeout)
		lookErr := l.look(bounded, lost, func(ctx context.Context) error { return l.source.Look(ctx, lost) })
		over()
		l.halt(ctx, lost, lookErr)
		if lookErr == nil {
			cancel()
		}
	}
	waitErr := turns.Wait(context.WithoutCancel(ctx), clock, done) // Acquire ends with ctx
	return grant, errors.Join(err, waitErr)
}

// searchLimit bounds one search for another worker.
func (l *Lease) searchLimit() time.Duration {
	return callTimeout + l.traits.Wait
}

// other acquires a worker beside the one in use, into spare. It refuses a worker that the source
// granted twice, and one that arrives after Close.
func (l *Lease) other(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	grant, err := l.source.Acquire(ctx, ask)
	if err != nil {
		return firn.Grant{}, err
	}
	if err := config.Check("worker", grant.Worker, 0, l.Layout().MaxWorker(), "layout "+l.Layout().Bits()); err != nil {
		return firn.Grant{}, errors.Join(err, l.unused(ctx, grant))
	}
	l.mu.Lock()
	closing := l.closing
	_, twice := l.spare[grant.Worker] // even with later ticks: one grant would be installed, and the other renewed
	twice = twice || l.grant.Worker == grant.Worker && grant.After < l.grant.Through && l.grant.After < grant.Through
	if !twice && !closing { // under the same lock, so that Close finds every accepted grant
		l.spare[grant.Worker] = grant
	}
	l.mu.Unlock()
	switch {
	case twice:
		// Do not release it: that would end the grant in use.
		return firn.Grant{}, fmt.Errorf("lease: the source granted worker %d a second time, from tick %d on", grant.Worker, grant.After+1)
	case closing:
		return firn.Grant{}, errors.Join(firn.ErrClosed, l.unused(ctx, grant))
	}
	return grant, nil
}

// unused releases a grant under which no id was issued, even if ctx has ended.
func (l *Lease) unused(ctx context.Context, grant firn.Grant) error {
	ctx, cancel := turns.WithTimeout(context.WithoutCancel(ctx), l.cfg.Generator.Time, patience(l.cfg.Look))
	defer cancel()
	return l.source.Release(ctx, grant, grant.After)
}

// switchWorker is [firn.Config.Switch].
func (l *Lease) switchWorker(ctx context.Context, from firn.Tick) (firn.Grant, error) {
	caller := ctx
	// Next has no context, and the store may not answer.
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, l.searchLimit())
	defer cancel()
	l.mu.Lock()
	closing := l.closing
	l.switching = cancel // one call at a time switches
	l.mu.Unlock()
	if closing {
		return firn.Grant{}, firn.ErrClosed
	}
	grant, err := l.other(ctx, func() Ask { return l.newAsk(from) })
	l.mu.Lock()
	closing = l.closing
	l.mu.Unlock()
	switch {
	case err != nil && closing:
		return firn.Grant{}, fmt.Errorf("%w: %w", firn.ErrClosed, err)
	case err != nil && caller.Err() != nil: // that says nothing of the store
		return firn.Grant{}, err
	case err != nil:
		l.failed("switch worker", l.gen.State().Worker, err)
		return firn.Grant{}, err
	}
	l.note(func(s *State) { s.Switches, s.Err = s.Switches+1, nil; l.outage.Ends() })
	l.cfg.Log.Warn("the clock went back, switching worker", "worker", grant.Worker, "fence", l.fenceTime(grant))
	return l.allowed(grant, l.window), nil
}

// retired is [firn.Config.Retired]: the generator has left a worker for one in spare.
func (l *Lease) retired(old, worker int64, last firn.Tick) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grant.Worker == old {
		l.left = append(l.left, pendingRelease{l.grant, last})
	}
	l.waiting = true // for a look at the new worker: its claim may be some calls old
	l.hurry()
	if l.settled != nil {
		l.settled() // end calls for the old worker, so that the new one is looked at in time: newcomers rely on it
	}
	if grant, ok := l.spare[worker]; ok {
		l.grant = grant
		delete(l.spare, worker)
	}
}

// A pendingRelease is a worker to release, with the last tick that its ids may carry.
type pendingRelease struct {
	grant firn.Grant
	last  firn.Tick
}

// pendingReleases empties the list of workers left, and returns those not held again. The caller
// holds mu.
func (l *Lease) pendingReleases() []pendingRelease {
	due := slices.DeleteFunc(l.left, func(p pendingRelease) bool {
		_, again := l.spare[p.grant.Worker]
		return again || p.grant.Worker == l.grant.Worker
	})
	l.left = nil
	return due
}

// release gives a worker back, unless another process has it by now.
func (l *Lease) release(ctx context.Context, p pendingRelease) error {
	if err := l.source.Release(ctx, p.grant, p.last); err != nil && (ctx.Err() != nil || !errors.Is(err, ErrLost)) { // which may be the cause of ctx
		return err
	}
	l.cfg.Log.Info("worker released", "worker", p.grant.Worker)
	return nil
}

// giveBack releases the workers left, in no more than a time. It retries each turn until the fence has passed; Close
// tries once.
func (l *Lease) giveBack(ctx context.Context, within time.Duration) {
	l.mu.Lock()
	due := l.pendingReleases()
	l.mu.Unlock()
	background := ctx
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, within)
	defer cancel()
	var again []pendingRelease
	for i, p := range due {
		if ctx.Err() != nil { // the next turn begins with the rest
			again = append(due[i:], again...)
			break
		}
		err := l.release(ctx, p)
		if err == nil {
			continue
		}
		ended := background.Err() != nil
		if !ended {
			l.unreleased(p.grant.Worker, err)
		}
		// One window more, for a renewal that was applied but whose answer was lost.
		if ended || p.grant.Through >= l.ask().Now-l.window {
			again = append(again, p)
		}
	}
	l.mu.Lock()
	l.left = append(again, l.left...)
	l.mu.Unlock()
}

// unreleased records a failed release of a worker left. It does not affect the worker in use.
func (l *Lease) unreleased(worker int64, err error) {
	l.note(func(s *State) { s.Errors++ })
	l.cfg.Log.Warn("could not release a worker left", "worker", worker, "error", err)
}
