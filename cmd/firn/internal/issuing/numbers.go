package issuing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// businessNumbers makes texts with a number in them, over a sequence.
type businessNumbers struct {
	counter *sequences
	format  *numbering.Format
	clock   *heardClock // nil if the store has none
	mending
}

// number returns the template of a namespace, over its counter.
func (b *builder) number(name string, set settings.Namespace) (base, error) {
	cfg, _, err := set.NumberFormat()
	if err != nil {
		return nil, err
	}
	log := b.log(name)
	counter := sequence.Config{MustExist: set.MustExist, Store: b.service.store, Memory: b.service.memory, Log: log}
	s, err := newSequences(name, counter)
	if err != nil {
		return nil, err
	}
	made := &businessNumbers{counter: s}
	made.mending.look = made.look
	cfg.Counter = s.one
	if clock := s.one.Clock(); clock != nil {
		made.clock = &heardClock{clock: clock, doubt: made.begin, log: log}
		cfg.Clock = made.clock
	}
	if made.format, err = numbering.New(cfg); err != nil {
		return nil, errors.Join(err, s.close(ended))
	}
	return made, nil
}

func (s *businessNumbers) take(ctx context.Context, n int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return s.format.Reserve(ctx, n)
}

func (s *businessNumbers) state(state *State) {
	s.counter.state(state)
	state.Template = s.format.String()
	if s.clock != nil && state.err == nil {
		state.err = s.clock.err()
	}
}

func (s *businessNumbers) close(ctx context.Context) error {
	return errors.Join(s.mending.close(ctx), s.counter.close(ctx))
}

func (s *businessNumbers) able() error {
	err := s.counter.one.State().Err
	if err == nil && s.clock != nil {
		err = s.clock.err()
	}
	if err != nil {
		s.begin()
	}
	return err
}

func (s *businessNumbers) look(ctx context.Context) error {
	if s.clock != nil {
		if err := s.clock.read(ctx); err != nil {
			return err
		}
	}
	return s.counter.look(ctx)
}

// A heardClock is a store's clock that remembers whether the latest reading failed. Its
// methods may be called concurrently.
type heardClock struct {
	clock  store.Clock
	failed atomic.Pointer[error] // the error of the latest reading, or nil
	doubt  func()                // called when the outcome of a reading is unknown
	log    *slog.Logger
}

// Now implements [store.Clock].
func (c *heardClock) Now(ctx context.Context) (time.Time, error) {
	now, err := c.clock.Now(ctx)
	if err != nil && ctx.Err() != nil {
		// The caller gave up, which proves nothing about the store. But if the store hangs,
		// every caller may give up before its timeout.
		c.doubt()
		return now, err
	}
	c.note(err)
	return now, err
}

// read is Now for a probe, whose timeout is long enough: a timeout counts as a failure.
func (c *heardClock) read(ctx context.Context) error {
	_, err := c.clock.Now(ctx)
	if !errors.Is(ctx.Err(), context.Canceled) { // by the end of the service
		c.note(err)
	}
	return err
}

func (c *heardClock) note(err error) {
	if err == nil {
		if c.failed.Load() != nil && c.failed.Swap(nil) != nil {
			c.log.Info("the store's clock can be read again")
		}
		return
	}
	err = fmt.Errorf("read the store's clock: %w", err)
	if c.failed.Swap(&err) == nil {
		c.log.Warn("no number can be made", "error", err)
	}
}

func (c *heardClock) err() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}
