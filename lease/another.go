package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
)

// How a lease comes to another worker, in the place of a lost one or for the policy switch,
// and gives back those it has left.

// takeOther replaces a lost worker. Until it succeeds the generator goes on up
// to its fence, which is its own for good unless the store has granted it again.
func (l *Lease) takeOther(ctx context.Context, lost firn.Grant, ask Ask, cause error) {
	l.cfg.Log.Warn("worker lost, taking another", "worker", lost.Worker, "error", cause)
	l.halt(ctx, lost, cause)
	l.note(func(s *State) { s.Losses, s.Last = s.Losses+1, cause })
	if l.cfg.Generator.Clock != firn.Virtual {
		// The look that found the loss may have taken long, and the clock may have been wrong before.
		ask = l.anew(l.gen.State().Last + 1)
	}
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, l.patience())
	defer cancel()
	l.mu.Lock()
	l.settled = cancel
	moved := l.grant.Worker != lost.Worker
	l.mu.Unlock()
	if moved {
		return
	}
	grant, err := l.search(ctx, cancel, lost, ask)
	switch {
	case err == nil:
		if err := l.gen.Replace(grant); err != nil {
			l.failed("go on with another worker", grant.Worker, err)
		}
	case !errors.Is(ctx.Err(), context.Canceled): // else there is another already, or the lease ends
		l.failed("take another worker", lost.Worker, err)
	}
}

// halt stops the generator where another may have been granted what is held, unless it has another
// worker already. The worker is given back, so that its next grant begins above what was used
// here. If that fails, the next turn finds the same loss.
func (l *Lease) halt(ctx context.Context, lost firn.Grant, cause error) {
	if !errors.Is(cause, ErrOverlap) || !l.gen.Halt(lost.Worker) {
		return
	}
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, defaultPatience)
	defer cancel()
	last := l.gen.State().Last
	l.mu.Lock()
	if l.grant.Worker == lost.Worker {
		l.grant.Through = last // so that it can be granted again here, also if only the answer is lost
	}
	l.mu.Unlock()
	if err := l.release(ctx, farewell{lost, last}); err != nil {
		l.unreleased(lost.Worker, err)
	}
}

// search acquires another worker. Meanwhile the lost one is in use up to its fence, and is
// looked at: where the store has forgotten who took it, it is held again, and cancel ends
// the search. A store that fails the look fails the search too, which reports it.
func (l *Lease) search(ctx context.Context, cancel func(), lost firn.Grant, ask Ask) (grant firn.Grant, err error) {
	clock := l.cfg.Generator.Time
	done := make(chan struct{})
	turns.Go(clock, func() {
		defer close(done)
		grant, err = l.other(ctx, ask)
	})
	for ctx.Err() == nil {
		pause, stop := turns.WithTimeout(ctx, clock, l.cfg.Look)
		waitErr := turns.Wait(pause, clock, done)
		stop()
		if waitErr == nil {
			return grant, err
		}
		lookErr := l.source.Look(ctx, lost)
		l.halt(ctx, lost, lookErr)
		if lookErr == nil {
			cancel()
		}
	}
	waitErr := turns.Wait(context.WithoutCancel(ctx), clock, done) // ctx ends it by itself
	return grant, errors.Join(err, waitErr)
}

// patience is how long another worker is searched for at a time.
func (l *Lease) patience() time.Duration {
	if s, ok := l.source.(fitting); ok {
		return callTimeout + s.waits()
	}
	return callTimeout
}

// other acquires a worker beside the one in use, and puts it in spare. A worker that the
// source granted twice is not used, nor one that comes after the lease has ended.
func (l *Lease) other(ctx context.Context, ask Ask) (firn.Grant, error) {
	grant, err := l.source.Acquire(ctx, ask)
	if err != nil {
		return firn.Grant{}, err
	}
	l.mu.Lock()
	closing := l.closing
	_, twice := l.spare[grant.Worker] // even if later: one of the two would be installed, the other renewed
	twice = twice || l.grant.Worker == grant.Worker && grant.After < l.grant.Through && l.grant.After < grant.Through
	if !twice && !closing { // under the same lock, so that Close finds what it did not refuse
		l.spare[grant.Worker] = grant
	}
	l.mu.Unlock()
	switch {
	case twice:
		// Not given back: that would end the grant in use.
		return firn.Grant{}, fmt.Errorf("lease: the source granted worker %d a second time, from tick %d on", grant.Worker, grant.After+1)
	case closing:
		return firn.Grant{}, errors.Join(firn.ErrClosed, l.unused(ctx, grant))
	}
	return grant, nil
}

// unused gives back a grant under which nothing was issued, in a time of its own, as ctx may have
// ended.
func (l *Lease) unused(ctx context.Context, grant firn.Grant) error {
	ctx, cancel := turns.WithTimeout(context.WithoutCancel(ctx), l.cfg.Generator.Time, defaultPatience)
	defer cancel()
	return l.source.Release(ctx, grant, grant.After)
}

// switchWorker is [firn.Config.Switch].
func (l *Lease) switchWorker(ctx context.Context, from firn.Tick) (firn.Grant, error) {
	// Next has no context, and a store may be silent.
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, l.patience())
	defer cancel()
	grant, err := l.other(ctx, l.anew(from))
	if err != nil {
		l.failed("switch worker", l.gen.State().Worker, err)
		return firn.Grant{}, err
	}
	l.note(func(s *State) { s.Switches++ })
	l.cfg.Log.Warn("the clock went back, switching worker", "worker", grant.Worker, "fence", l.fenceTime(grant))
	return grant, nil
}

// retired is [firn.Config.Retired]: the generator has left a worker for one in spare.
func (l *Lease) retired(old, worker int64, last firn.Tick) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grant.Worker == old {
		l.left = append(l.left, farewell{l.grant, last})
	}
	if l.settled != nil {
		l.settled() // the new one is to be looked at, as newcomers expect
	}
	if grant, ok := l.spare[worker]; ok {
		l.grant = grant
		delete(l.spare, worker)
	}
}

// A farewell is a worker left, with the last tick that ids of it may carry.
type farewell struct {
	grant firn.Grant
	last  firn.Tick
}

// goodbyes empties the list of workers left, and returns those that are not held again under
// a later grant. The caller holds mu.
func (l *Lease) goodbyes() []farewell {
	due := slices.DeleteFunc(l.left, func(f farewell) bool {
		_, again := l.spare[f.grant.Worker]
		return again || f.grant.Worker == l.grant.Worker
	})
	l.left = nil
	return due
}

// release gives a worker back, unless it belongs to another by now.
func (l *Lease) release(ctx context.Context, f farewell) error {
	if err := l.source.Release(ctx, f.grant, f.last); err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	l.cfg.Log.Info("worker released", "worker", f.grant.Worker)
	return nil
}

// giveBack releases workers left. One that fails is tried again at the next turn, until its
// fence has passed, and at last by Close, which may have cut it off.
func (l *Lease) giveBack(ctx context.Context) {
	l.mu.Lock()
	due := l.goodbyes()
	l.mu.Unlock()
	background := ctx
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, defaultPatience) // the next look waits for it
	defer cancel()
	var again []farewell
	for i, f := range due {
		if ctx.Err() != nil { // the rest comes first at the next turn
			again = append(due[i:], again...)
			break
		}
		err := l.release(ctx, f)
		if err == nil {
			continue
		}
		ended := background.Err() != nil
		if !ended {
			l.unreleased(f.grant.Worker, err)
		}
		// A window more, for a renewal that was applied without an answer.
		if ended || f.grant.Through >= l.ask().Now-l.window {
			again = append(again, f)
		}
	}
	l.mu.Lock()
	l.left = append(again, l.left...)
	l.mu.Unlock()
}

// unreleased notes that a worker left could not be given back: no fault of the one in use.
func (l *Lease) unreleased(worker int64, err error) {
	l.note(func(s *State) { s.Errors++ })
	l.cfg.Log.Warn("could not release a worker left", "worker", worker, "error", err)
}
