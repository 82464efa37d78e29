package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// join lists the pool and compares clocks, and does what a newcomer has to before it may
// claim a slot. It returns errAgain where the pool is to be listed anew. In opened it keeps
// the record by which it has just opened the pool after a wait, or 0.
func (s *Slots) join(ctx context.Context, opened *store.Revision) (Pool, reading, error) {
	var entries []store.Entry
	here, clockErr, err := s.beside(ctx, func() (err error) {
		entries, err = s.cfg.Store.List(ctx, poolPrefix(s.cfg.Pool))
		return err
	})
	if err := errors.Join(clockErr, err); err != nil {
		return Pool{}, here, fmt.Errorf("lease: join pool %q: %w", s.cfg.Pool, err)
	}
	pool, found, err := readPool(s.cfg.Pool, entries)
	if err != nil {
		return pool, here, err
	}
	if _, ok := s.cfg.Store.(store.Clock); !ok {
		if err := s.checkOthers(pool, here); err != nil {
			return pool, here, err
		}
	}
	now, err := s.tick(here)
	if err != nil {
		return pool, here, err
	}
	s.mu.Lock()
	s.grace = max(s.grace, pool.Grace)
	s.mu.Unlock()
	waited := pool.revision == *opened
	*opened = 0
	todo, err := s.rules.enter(pool, found, waited, s.notices(), now, here)
	if err != nil || !todo.write {
		return pool, here, err
	}
	if todo.wait > 0 {
		// Each newcomer waits by its own monotonic clock: no two clocks are compared.
		s.cfg.Log.Info("waiting for holders that the store may have forgotten", "pool", s.cfg.Pool, "for", todo.wait, "because", todo.why)
		if err := s.attend(ctx, pool, todo.wait); err != nil {
			return pool, here, fmt.Errorf("lease: wait %v, as %s (pool %q): %w", todo.wait, todo.why, s.cfg.Pool, err)
		}
	}
	written, err := s.writePool(ctx, pool.revision, todo.poolRecord)
	if todo.wait > 0 {
		*opened = written
	}
	return pool, here, err
}

// attend waits, while the store answers as quickly as a look of a holder needs: nobody can be
// seen in a store that stands still or is away. It returns errAgain if it was so, or if the pool's record was
// written meanwhile.
func (s *Slots) attend(ctx context.Context, pool Pool, wait time.Duration) error {
	for left := wait; left > 0; left -= s.cfg.Patience {
		if err := s.cfg.Time.Sleep(ctx, min(left, s.cfg.Patience)); err != nil {
			return err
		}
		asked := s.cfg.Time.Monotonic()
		entry, err := s.cfg.Store.Get(ctx, poolKey(s.cfg.Pool))
		switch took := s.cfg.Time.Monotonic() - asked; {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("%w: %w", errAgain, err)
		case entry.Revision != pool.revision: // which is never 0
			return fmt.Errorf("the record of pool %q changed meanwhile: %w", s.cfg.Pool, errAgain)
		case took > s.cfg.Patience:
			return fmt.Errorf("the store took %v to answer meanwhile: %w", took, errAgain)
		}
	}
	return nil
}

// maxLives bounds how often the record of a pool is written in one go, since the store
// began another life under it.
const maxLives = 4

// writePool writes the pool's record over a revision, and again until it names the life
// that confirmed it. It returns errMade where it succeeds: who came back meanwhile is to
// be read. If another wrote it, that is errAgain.
func (s *Slots) writePool(ctx context.Context, over store.Revision, record poolRecord) (store.Revision, error) {
	reg := s.register(poolKey(s.cfg.Pool))
	reg.Known(store.Entry{Key: reg.Key, Revision: over})
	for range maxLives {
		written, err := reg.Update(ctx, func(found store.Entry) ([]byte, error) {
			if found.Revision != over && !reg.Ours() {
				return nil, errAgain
			}
			return encode(record)
		})
		if err != nil {
			return 0, fmt.Errorf("lease: write pool %q: %w", s.cfg.Pool, err)
		}
		over = written.Revision
		var done bool
		if record, done = s.rules.confirmedIn(record, written.Life); done {
			return over, errMade
		}
	}
	return 0, fmt.Errorf("lease: write pool %q: %w: its store began another life again and again", s.cfg.Pool, store.ErrUnavailable)
}

// alarm makes newcomers wait, since the store had less than was confirmed to a holder
// here: it may have forgotten others too. It writes over a pool that is closed as well:
// who waits for it to open may have begun before this loss.
func (s *Slots) alarm(ctx context.Context) error {
	reg := s.register(poolKey(s.cfg.Pool))
	reg.Patience = s.cfg.Patience
	_, err := reg.Update(ctx, func(found store.Entry) ([]byte, error) {
		p := Pool{Name: s.cfg.Pool}
		if found.Revision == 0 {
			return encode(s.rules.closed(s.notices(), s.cfg.Time.Wall()))
		}
		if err := p.read(found); err != nil {
			return nil, err
		}
		record := p.record()
		record.Open = false
		return encode(record)
	})
	if err != nil {
		return fmt.Errorf("make newcomers wait: %w", err)
	}
	return nil
}

// unmoved makes sure, after a claim was confirmed, that the pool is as it was when it was
// listed: open, in the life that confirmed the claim, and not wiped or alarmed meanwhile.
func (s *Slots) unmoved(ctx context.Context, pool Pool, life string) error {
	if *pool.life != life {
		record := pool.record()
		record.Open, record.Life = false, &life
		s.cfg.Log.Warn("the store has another life than the pool was opened in: it may have forgotten holders", "pool", s.cfg.Pool, "was", *pool.life, "is", life)
		_, err := s.writePool(ctx, pool.revision, record)
		return err
	}
	for range maxTries {
		asked := s.cfg.Time.Monotonic()
		entry, err := s.cfg.Store.Get(ctx, poolKey(s.cfg.Pool))
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		case entry.Revision != pool.revision: // 0 if it is gone
			return fmt.Errorf("the record of pool %q changed meanwhile: %w", s.cfg.Pool, errAgain)
		case s.cfg.Time.Monotonic()-asked <= s.cfg.Patience:
			return nil
		}
		// The store may have forgotten the claim since, and others have waited for this
		// process to notice: from here on it is a holder, whose calls are that short.
	}
	return fmt.Errorf("%w: the record of pool %q took longer than %v to read", store.ErrUnavailable, s.cfg.Pool, s.cfg.Patience)
}

// latest returns the present tick as it follows from a reading, and by the wall clock if
// that is later: for judging whether a fence has passed, late is the safe side. It is
// the end of the layout where that has passed.
func (s *Slots) latest(from reading) firn.Tick {
	wall := s.wall(from)
	if here := s.cfg.Time.Wall(); here.After(wall) {
		wall = here
	}
	tick, err := s.cfg.Layout.Tick(wall)
	if err != nil && wall.After(s.cfg.Layout.Epoch()) {
		return s.cfg.Layout.MaxTick()
	}
	return tick
}
