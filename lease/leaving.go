package lease

import (
	"context"
	"errors"
	"slices"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
)

// A farewell is a worker left, with the last tick that ids of it may carry.
type farewell struct {
	grant firn.Grant
	last  firn.Tick
}

// goodbyes takes the workers left off the list. Those that are held again under a
// later grant need nothing any more. The caller holds mu.
func (l *Lease) goodbyes() []farewell {
	due := slices.DeleteFunc(l.left, func(f farewell) bool {
		_, again := l.spare[f.grant.Worker]
		return again || f.grant.Worker == l.grant.Worker
	})
	l.left = nil
	return due
}

// release gives a worker back. One that belongs to another by now is nobody's loss.
func (l *Lease) release(ctx context.Context, f farewell) error {
	if err := l.source.Release(ctx, f.grant, f.last); err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	l.cfg.Log.Info("worker released", "worker", f.grant.Worker)
	return nil
}

// giveBack releases workers left. What fails is tried again at the next turn, until
// the fence has freed the worker, and at last by Close, which may have cut it off.
func (l *Lease) giveBack(ctx context.Context) {
	l.mu.Lock()
	due := l.goodbyes()
	l.mu.Unlock()
	background := ctx
	ctx, cancel := turns.WithTimeout(ctx, l.cfg.Generator.Time, defaultPatience) // the next look waits for it
	defer cancel()
	var again []farewell
	for i, f := range due {
		if ctx.Err() != nil { // those that had no turn come first at the next
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

// unreleased notes that a worker left could not be given back, which says nothing of the
// one in use.
func (l *Lease) unreleased(worker int64, err error) {
	l.note(func(s *State) { s.Errors++ })
	l.cfg.Log.Warn("could not release a worker left", "worker", worker, "error", err)
}
