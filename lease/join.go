package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// join lists the pool or a part of it, compares clocks, and does what a newcomer must do before it may claim a slot.
// After errAgain the caller lists the pool again. Wrote keeps the revision at which this newcomer
// closed the pool, because no holder seemed alive, or opened it again; else 0.
//
// A list shows each register at a moment of its own. That is enough: the pool's record is replaced over
// the listed revision, or is read again after a claim, and a slot is claimed over the listed revision. So
// neither has changed meanwhile. Only enter draws a conclusion from several slots: that the store was set
// back, in the same life, to a copy older than a window. It can miss that if it happens during the list.
// It would miss it right after the list too. A part shows as much as the pool if slots in it are held.
func (s *poolSource) join(ctx context.Context, of part, wrote *store.Revision) (Pool, reading, error) {
	pool, here, err := s.examine(ctx, of)
	for err == nil && !s.rules.shows(pool, tickOf(s.cfg.Generator.Layout, s.wall(here))) {
		of = s.partOf(of.of, of.digits+1)
		pool, here, err = s.examine(ctx, of)
	}
	if err != nil {
		return Pool{}, reading{}, err
	}
	if s.cfg.Store.Traits().Clock == nil && !s.rules.trusting { // an embedded store's holders have one clock
		if there, ok := clockOfOthers(pool, tickOf(s.cfg.Generator.Layout, s.wall(here))); ok && there.Sub(here.wall) > s.cfg.Tolerance {
			return Pool{}, reading{}, &ClockError{Here: here.wall, There: there, Whose: "that of most hosts that hold workers in pool " + s.cfg.Pool +
				" (if their clocks were wrong, and their processes have ended, firn workers release frees the workers)", Tolerance: s.cfg.Tolerance}
		}
	}
	now, err := s.cfg.Generator.Layout.Tick(s.wall(here))
	if err != nil {
		return Pool{}, reading{}, err
	}
	own := *wrote != 0 && pool.revision == *wrote
	next, wait, err := s.rules.enter(pool, own, now, here)
	if err != nil || next == nil {
		return pool, here, err
	}
	if wait > 0 {
		// Each newcomer waits by its own monotonic clock, so clocks are not compared.
		why := "the pool is new, or its store may have forgotten holders"
		if own { // enter has closed it
			why = "a worker was never returned, and no fence lies ahead: its store may have been set back"
		}
		s.cfg.Log.Info("waiting before a worker is granted", "pool", s.cfg.Pool, "for", wait, "because", why)
		if err := s.attend(ctx, pool, wait); err != nil {
			err = turns.Ended(ctx, fmt.Sprintf("lease: wait %v, as %s (pool %q)", wait, why, s.cfg.Pool), err)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w; each try starts the wait again and may need two of them: allow more than %v", err, 2*wait)
			}
			return Pool{}, reading{}, err
		}
	}
	revision, err := s.writePool(ctx, pool.revision, *next)
	*wrote = 0
	if own || next.Settled > pool.Settled {
		*wrote = revision
	}
	return Pool{}, reading{}, err
}

// examine lists a pool, or its record and a part of its slots, and compares clocks meanwhile.
func (s *poolSource) examine(ctx context.Context, of part) (Pool, reading, error) {
	var entries []store.Entry
	here, clockErr, err := s.beside(ctx, func() (err error) {
		entries, err = s.list(ctx, of)
		return err
	})
	if err := errors.Join(clockErr, err); err != nil {
		return Pool{}, reading{}, fmt.Errorf("lease: join pool %q: %w", s.cfg.Pool, err)
	}
	pool, err := readPool(s.cfg.Pool, entries)
	pool.part = of
	return pool, here, err
}

// list returns the entries of a pool, or its record and a part of its slots, which it reads at the same time.
func (s *poolSource) list(ctx context.Context, of part) ([]store.Entry, error) {
	if of.whole() {
		return s.cfg.Store.List(ctx, poolPrefix(s.cfg.Pool))
	}
	var record []store.Entry
	var recordErr error
	done := make(chan struct{})
	turns.Go(s.cfg.Generator.Time, func() {
		defer close(done)
		var e store.Entry
		if e, recordErr = s.cfg.Store.Get(ctx, poolKey(s.cfg.Pool)); recordErr == nil {
			record = []store.Entry{e}
		} else if errors.Is(recordErr, store.ErrNotFound) {
			recordErr = nil
		}
	})
	slots, err := s.cfg.Store.List(ctx, of.prefix(s.cfg.Pool, s.cfg.Generator.Layout, s.cfg.Generator.Datacenter))
	waitErr := turns.Wait(context.WithoutCancel(ctx), s.cfg.Generator.Time, done)
	return append(record, slots...), errors.Join(err, recordErr, waitErr)
}

// attend waits. It returns errAgain if the pool's record was written meanwhile, or could not be read
// within a look's time, or not be written: holders cannot look while the store hangs.
func (s *poolSource) attend(ctx context.Context, pool Pool, wait time.Duration) error {
	for left := wait; left > 0; left -= patience(s.cfg.Look) {
		if err := s.cfg.Generator.Time.Sleep(ctx, min(left, patience(s.cfg.Look))); err != nil {
			return err
		}
		reg := s.register(poolKey(s.cfg.Pool))
		err := s.unwritten(ctx, reg, pool)
		if err == nil {
			err = reg.Writable(ctx) // holders that find their slots gone must write them
		}
		if err != nil {
			return again(ctx, err)
		}
	}
	return nil
}

// unwritten returns an error unless the pool's record is the one that was listed, and the store
// answers within the time that a holder's look may take.
func (s *poolSource) unwritten(ctx context.Context, reg *register.Register, pool Pool) error {
	asked := s.cfg.Generator.Time.Monotonic()
	entry, err := reg.Read(ctx)
	switch {
	case err != nil:
		return err
	case entry.Revision != pool.revision: // 0 if it is gone
		return fmt.Errorf("the record of pool %q changed meanwhile: %w", s.cfg.Pool, errAgain)
	case s.cfg.Generator.Time.Monotonic()-asked > patience(s.cfg.Look):
		return turns.Fault(ctx, errSlow, fmt.Errorf("the record of pool %q took longer than %v to read", s.cfg.Pool, patience(s.cfg.Look)))
	}
	return nil
}

// maxLives bounds how often writePool writes because the store began another life.
const maxLives = 4

var errLives = errors.New("its store began another life again and again")

// writePool writes the pool's record over a revision, and again until it names the life that confirmed
// it. Success is errMade, so that the caller reads the pool again: holders may have come back.
func (s *poolSource) writePool(ctx context.Context, over store.Revision, record Pool) (store.Revision, error) {
	reg := s.register(poolKey(s.cfg.Pool))
	for range maxLives {
		written, err := replace(ctx, reg, over, func() ([]byte, error) { return register.Encode(record) })
		if err != nil {
			return 0, fmt.Errorf("lease: write pool %q: %w", s.cfg.Pool, err)
		}
		over = written.Revision
		var done bool
		if record, done = s.rules.confirmedIn(record, written.Life); done {
			return over, errMade
		}
	}
	return 0, fmt.Errorf("lease: write pool %q: %w", s.cfg.Pool, turns.Fault(ctx, store.ErrUnavailable, errLives))
}

// unmoved returns an error unless the pool, after a claim was confirmed, is as it was listed: open, in
// the life that confirmed the claim, and not wiped or alarmed meanwhile.
func (s *poolSource) unmoved(ctx context.Context, pool Pool, life string) error {
	if record, same := s.rules.confirmedIn(pool, life); !same {
		s.cfg.Log.Warn("the store was restarted or replaced: it may have forgotten holders", "pool", s.cfg.Pool)
		s.cfg.Log.Debug("the life of the store", "pool", s.cfg.Pool, "was", *pool.Life, "is", life)
		_, err := s.writePool(ctx, pool.revision, record)
		return err
	}
	err := errSlow
	for try := 0; try < maxTries && errors.Is(err, errSlow); try++ {
		// The store may forget the claim during a slow answer, and the wait of newcomers assumes that
		// holders, of which this process is one now, notice within Patience.
		err = s.unwritten(ctx, s.register(poolKey(s.cfg.Pool)), pool)
	}
	return err
}
