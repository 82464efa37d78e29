package segment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// counters is the [Source] over a store. A range is the interval over which
// one compare-and-swap moved the counter forward; compare-and-swap orders all
// moves of one counter, so ranges are disjoint for as long as the store does not
// forget.
type counters struct {
	store  store.Store
	stripe Stripe
	start  firn.ID
	max    firn.ID
	time   firn.TimeSource
	random func() uint64
	log    *slog.Logger

	writer string
	host   string
	pid    int
	writes atomic.Uint64
}

const (
	// maxTries bounds how often the counter is read anew after a conflict.
	maxTries = 64
	// maxLost bounds how many writes of one fetch may have lost their answers.
	maxLost = 4
	// backoff is the mean wait after the first conflict; it doubles up to maxBackoff.
	backoff    = 2 * time.Millisecond
	maxBackoff = 250 * time.Millisecond
)

func newCounters(cfg *Config) *counters {
	host, _ := os.Hostname() // for people only
	return &counters{
		store: cfg.Store, stripe: Stripe{Offset: cfg.Offset, Stride: cfg.Stride}, start: cfg.Start, max: cfg.Max,
		time: cfg.Time, random: cfg.Random, log: cfg.Log,
		writer: fmt.Sprintf("%016x%016x", cfg.Random(), cfg.Random()), host: host, pid: os.Getpid(),
	}
}

// A move is a write of a counter and the range it grants if it is applied.
type move struct {
	value []byte
	grant Range
}

// Fetch implements [Source]. Errors: *[firn.RangeError], *[ExhaustedError],
// *[StripeError], [ErrForeign] and the store's.
func (c *counters) Fetch(ctx context.Context, name string, ask Ask) (Range, error) {
	if ask.Step < 1 || ask.Step > maxStep {
		return Range{}, firn.NewRangeError("step", ask.Step, 1, maxStep, "ids asked for at once")
	}
	key := Key(name)
	var lost []move // whose answers were lost
	var last error
	for try := range maxTries {
		if try > 0 {
			if err := c.pause(ctx, try); err != nil {
				return Range{}, fmt.Errorf("segment: fetch a range of %q: %w (%w)", name, err, last)
			}
		}
		entry, err := c.store.Get(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			entry, err = store.Entry{}, nil
		}
		if err != nil {
			return Range{}, fmt.Errorf("segment: fetch a range of %q: %w", name, err)
		}
		// A write is ours if the record has its very bytes: then nobody has written
		// since, and nobody else has its range. One that has been overwritten is not
		// found any more, and its range is a gap.
		for _, m := range lost {
			if bytes.Equal(entry.Value, m.value) {
				m.grant.revision = entry.Revision
				return m.grant, nil
			}
		}
		m, err := c.advance(name, entry, ask)
		if err != nil {
			return Range{}, err
		}
		written, err := c.store.CompareAndSwap(ctx, key, entry.Revision, m.value)
		switch {
		case err == nil:
			m.grant.revision = written.Revision
			return m.grant, nil
		case errors.Is(err, store.ErrConflict):
		case store.Unapplied(err):
			return Range{}, fmt.Errorf("segment: fetch a range of %q: %w", name, err)
		default:
			// It may be applied yet. The next try begins at what the record says
			// then: at the same revision, so that at most one of the two is ever
			// applied, or at a later one.
			if lost = append(lost, m); len(lost) > maxLost {
				return Range{}, fmt.Errorf("segment: fetch a range of %q: %w", name, err)
			}
		}
		last = err
	}
	return Range{}, fmt.Errorf("segment: fetch a range of %q: %d tries, others were quicker each time: %w (%w)",
		name, maxTries, store.ErrUnavailable, last)
}

// advance decides what to write over entry, which is empty for a name that the
// store does not know.
func (c *counters) advance(name string, entry store.Entry, ask Ask) (move, error) {
	least := max(uint64(c.start), uint64(ask.Above)+1)
	next := c.stripe.from(least)
	if entry.Revision != 0 {
		now, err := readCounter(entry)
		if err != nil {
			return move{}, err
		}
		if now.stripe != c.stripe {
			return move{}, &StripeError{Name: name, Have: now.stripe, Want: c.stripe}
		}
		if ask.Above >= 0 && now.next <= uint64(ask.Above) {
			c.log.Warn("the counter of a segment stands below what is held or ruled out here, and is raised",
				"name", name, "next", now.next, "above", ask.Above)
		}
		next = max(next, now.next)
	} else if ask.Above >= c.start {
		c.log.Warn("the store has no counter of a segment, and gets one above what is held or ruled out here",
			"name", name, "above", ask.Above)
	}
	if next > uint64(c.max) {
		return move{}, &ExhaustedError{Name: name, Next: next, Max: c.max}
	}
	grant := Range{First: firn.ID(next), Count: ask.Step, Stride: c.stripe.Stride}.upTo(c.max)
	value, err := c.encode(next+uint64(grant.Count)*uint64(grant.Stride), grant.Count)
	return move{value: value, grant: grant}, err
}

// Return implements [Returner]: it moves the counter back to the first unused
// id if the record is still the one that granted the last of them. A lost
// answer changes nothing: the ids are not issued here, and if the counter moves
// back late, then only from where nobody has gone on.
func (c *counters) Return(ctx context.Context, name string, unused Range) (bool, error) {
	if unused.revision == 0 {
		return false, nil
	}
	value, err := c.encode(uint64(unused.First), -unused.Count)
	if err != nil {
		return false, err
	}
	_, err = c.store.CompareAndSwap(ctx, Key(name), unused.revision, value)
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("segment: give back %v of %q: %w", unused, name, err)
	}
	return true, nil
}

func (c *counters) encode(next uint64, step int64) ([]byte, error) {
	value, err := json.Marshal(record{
		Next: strconv.FormatUint(next, 10), Offset: c.stripe.Offset, Stride: c.stripe.Stride, Step: step,
		Writer: c.writer, Write: c.writes.Add(1), Host: c.host, PID: c.pid, At: c.time.Wall().UTC(),
	})
	if err != nil {
		return nil, fmt.Errorf("segment: encode record: %w", err)
	}
	return value, nil
}

// pause waits before a further try: about backoff after the first, doubling.
func (c *counters) pause(ctx context.Context, try int) error {
	d := min(backoff<<min(try-1, 16), maxBackoff)
	return c.time.Sleep(ctx, d/2+time.Duration(c.random()%uint64(d)))
}
