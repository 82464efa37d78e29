package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
)

// joinOnTime joins and compares clocks, at the same time where the store has one.
func (s *Slots) joinOnTime(ctx context.Context) (Pool, reading, error) {
	if _, ok := s.cfg.Store.(store.Clock); !ok {
		pool, err := s.join(ctx)
		here := s.read()
		if err == nil {
			err = s.checkOthers(pool, here)
		}
		return pool, here, err
	}
	var (
		here     reading
		clockErr error
	)
	checked := make(chan struct{})
	turns.Go(s.cfg.Time, func() {
		defer close(checked)
		here, clockErr = s.checkClock(ctx)
	})
	pool, err := s.join(ctx)
	// The check ends with ctx by itself; waiting for less would be a race.
	if waitErr := turns.Wait(context.WithoutCancel(ctx), s.cfg.Time, checked); waitErr != nil {
		return pool, here, waitErr
	}
	if clockErr != nil {
		return pool, here, clockErr
	}
	return pool, here, err
}

// join reads the pool, makes it if there is none, waits out its grace and
// checks its layout.
func (s *Slots) join(ctx context.Context) (Pool, error) {
	entries, err := s.cfg.Store.List(ctx, poolPrefix(s.cfg.Pool))
	if err != nil {
		return Pool{}, fmt.Errorf("lease: join pool %q: %w", s.cfg.Pool, err)
	}
	pool, found, err := readPool(s.cfg.Pool, entries)
	if err != nil {
		return Pool{}, err
	}
	if !found {
		if pool, err = s.makePool(ctx, pool); err != nil {
			return Pool{}, err
		}
	}
	if pool.Layout != s.cfg.Layout {
		return Pool{}, &PoolError{Pool: s.cfg.Pool, Have: "layout " + pool.Layout.String(), Want: s.cfg.Layout.String()}
	}
	if pool.Strict != s.cfg.Strict && (pool.Strict != 0 || !pool.Open) {
		return Pool{}, &PoolError{Pool: s.cfg.Pool, Have: "the strict wait " + pool.Strict.String(), Want: s.cfg.Strict.String()}
	}
	if pool.Strict != s.cfg.Strict {
		// Strictness is turned on by the first who has it, for all who join later. Those
		// who hold workers by now know nothing of it: their windows may be longer.
		if n, last := s.live(pool); n > 0 {
			return Pool{}, &PoolError{Pool: s.cfg.Pool, Want: "the strict wait " + s.cfg.Strict.String(),
				Have: fmt.Sprintf("%d holders without a strict wait, until %s at the latest", n, last.Format(time.RFC3339))}
		}
		return Pool{}, s.rewrite(ctx, pool)
	}
	if pool.Open {
		return pool, nil
	}
	if s.cfg.Grace > 0 {
		s.cfg.Log.Info("the pool is new: waiting for holders of an earlier life", "pool", s.cfg.Pool, "for", s.cfg.Grace)
	}
	// Whoever finds the pool not open waits the whole grace by its own
	// monotonic clock: no two clocks are compared.
	if err := s.cfg.Time.Sleep(ctx, s.cfg.Grace); err != nil {
		return Pool{}, fmt.Errorf("lease: wait %v for earlier holders of new pool %q: %w", s.cfg.Grace, s.cfg.Pool, err)
	}
	return Pool{}, s.rewrite(ctx, pool)
}

// live counts the slots whose fence has not passed, and says when the last one will.
func (s *Slots) live(pool Pool) (n int, last time.Time) {
	now := s.cfg.Time.Wall()
	for _, slot := range pool.Slots {
		if !slot.Until.After(now) {
			continue
		}
		n++
		if slot.Until.After(last) {
			last = slot.Until
		}
	}
	return n, last
}

// rewrite writes the record of a pool anew, open and as strict as this process
// is. It returns errMade where it succeeds: who came back meanwhile is to be read.
func (s *Slots) rewrite(ctx context.Context, pool Pool) error {
	if err := s.writePool(ctx, pool.revision, s.record(pool.Made, true)); err != nil {
		return err
	}
	return errMade
}

func (s *Slots) record(made time.Time, open bool) poolRecord {
	r := poolRecord{Layout: s.cfg.Layout.String(), Made: made, Open: open}
	if s.cfg.Strict > 0 {
		r.Strict = s.cfg.Strict.String()
	}
	return r
}

// makePool writes the record of a pool that has none. Slots may be there all
// the same, where a store lost one key and not the others.
func (s *Slots) makePool(ctx context.Context, pool Pool) (Pool, error) {
	if err := s.writePool(ctx, 0, s.record(s.cfg.Time.Wall().UTC(), s.cfg.Grace <= 0)); err != nil {
		return pool, err
	}
	return pool, errMade
}

// writePool writes the pool's record, or says errAgain when another did or it
// is not known: reading it anew tells.
func (s *Slots) writePool(ctx context.Context, old store.Revision, record poolRecord) error {
	value, err := encode(record)
	if err != nil {
		return err
	}
	_, err = s.cfg.Store.CompareAndSwap(ctx, poolKey(s.cfg.Pool), old, value)
	switch {
	case err == nil || errors.Is(err, store.ErrConflict):
		return nil
	case mayRetry(ctx, err):
		return fmt.Errorf("lease: write pool %q: %w: %w", s.cfg.Pool, errAgain, err)
	default:
		return fmt.Errorf("lease: write pool %q: %w", s.cfg.Pool, err)
	}
}
