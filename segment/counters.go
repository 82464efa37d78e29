package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// counters is the [Source] over a store. A range is the interval over which one confirmed
// compare-and-swap moved the counter; compare-and-swap orders all moves of one counter, so
// ranges are disjoint as long as the store does not forget what it confirmed.
type counters struct {
	cfg    *Config
	stripe Stripe
	mine   record // what all its records have
	writes atomic.Uint64

	mu   sync.Mutex                    // guards all below; never held while waiting
	lost map[string]*register.Register // by name, after a fetch whose write may have been applied
}

// maxLost bounds how many names keep a lost range for the next fetch. Others leave a gap.
const maxLost = 1 << 16

func newCounters(cfg *Config) *counters {
	mine := record{Use: register.Use{Kind: kind, Form: cfg.Form}, Offset: cfg.Offset, Stride: cfg.Stride, Writer: register.Token(), PID: os.Getpid()}
	mine.Host, _ = os.Hostname() // for operators only
	return &counters{cfg: cfg, stripe: Stripe{Offset: cfg.Offset, Stride: cfg.Stride}, mine: mine, lost: map[string]*register.Register{}}
}

// Fetch implements [Source]. Errors: that of [store.CheckName], *[firn.RangeError], *[ExhaustedError],
// *[StripeError], *[store.TakenError], [store.ErrForeign] and the store's.
// With Config.MustExist also *[store.SetBackError].
//
// Only a write that the store has confirmed grants a range. A write that may have been applied
// grants nothing. If its record is found, here or by the next fetch of the name, the next write
// begins where the lost range began.
func (c *counters) Fetch(ctx context.Context, name string, ask Ask) (Range, error) {
	if err := cmp.Or(store.CheckName("segment", name), config.Check("step", ask.Step, 1, maxStep, "ids asked for at once")); err != nil {
		return Range{}, err
	}
	known, err := c.enter(ctx, "fetch a range of", name)
	if err != nil {
		return Range{}, err
	}
	defer known.Leave()
	r := c.takeLost(name)
	var grant Range
	written, err := r.Update(ctx, func(found store.Entry) (value []byte, err error) {
		grant, value, err = c.advance(name, found, r.Ours(), ask)
		grant.over = found.Revision
		return value, err
	})
	if err != nil {
		c.keepLost(name, r)
		return Range{}, explain(ctx, "fetch a range of", name, err)
	}
	if grant.over == 0 && known.High() == 0 { // the program may have moved to another store, where it repeats ids
		c.cfg.Log.Info("a counter is new in this store", "name", name, "first", grant.First)
	}
	known.Had(int64(grant.Last()))
	grant.revision = written.Revision
	return grant, nil
}

// enter waits until no other of the process moves the counter. The caller must call Leave.
func (c *counters) enter(ctx context.Context, what, name string) (*register.Known, error) {
	known := c.cfg.Memory.Of(name)
	if err := known.Enter(ctx, c.cfg.Time); err != nil { // only ctx ends that wait
		return nil, explain(ctx, what, name, err)
	}
	return known, nil
}

func (c *counters) register(name string) *register.Register {
	return &register.Register{Store: c.cfg.Store, Key: register.CounterKey(name), Time: c.cfg.Time, Random: c.cfg.Random}
}

// takeLost returns the register of name that knows the lost range. Only one fetch gets it: two
// could take the same range.
func (c *counters) takeLost(name string) *register.Register {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.lost[name]
	if r == nil {
		return c.register(name)
	}
	delete(c.lost, name)
	r.Forget()
	return r
}

// keepLost keeps a register whose latest write may have been applied, for the next fetch.
func (c *counters) keepLost(name string, r *register.Register) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Unsettled() && len(c.lost) < maxLost {
		c.lost[name] = r
	}
}

// explain says what failed. A conflict is store.ErrUnavailable, unless ctx has ended: the caller may try again.
func explain(ctx context.Context, what, name string, err error) error {
	switch {
	case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrTaken), errors.Is(err, store.ErrSetBack), errors.Is(err, ErrStripe), errors.Is(err, ErrExhausted):
		return err
	case errors.Is(err, store.ErrConflict):
		err = fmt.Errorf("others were quicker each time: %w", turns.Fault(ctx, store.ErrUnavailable, err))
	}
	return fmt.Errorf("segment: %s %q: %w", what, name, err)
}

// advance decides what to write over entry, and which range that grants. Ours says that entry is
// a lost grant of this source: its range was never issued.
func (c *counters) advance(name string, entry store.Entry, ours bool, ask Ask) (grant Range, value []byte, err error) {
	now, err := c.read(name, entry)
	if err != nil {
		return Range{}, nil, err
	}
	high := firn.ID(c.cfg.Memory.Of(name).High())
	if _, err := c.setBack(name, entry, now); err != nil {
		return Range{}, nil, err
	}
	if ours {
		now.Next -= uint64(now.step) * uint64(c.stripe.Stride)
	}
	next := max(c.stripe.from(max(uint64(c.cfg.Start), uint64(max(ask.Above, high))+1)), now.Next)
	if next > uint64(c.cfg.Max) {
		return Range{}, nil, &ExhaustedError{Name: name, Next: next, Max: c.cfg.Max}
	}
	grant = Range{First: firn.ID(next), Count: ask.Step, Stride: c.stripe.Stride}.upTo(c.cfg.Max)
	grant.use = now.use
	grant.end = next + uint64(grant.Count)*uint64(grant.Stride)
	value, err = c.encode(now.use, grant.end, grant.Count)
	return grant, value, err
}

// below reports whether a record lies below what is known here. The error is a *[store.SetBackError] for a counter that must
// exist, if it does or if there is no record.
func (c *counters) below(name string, entry store.Entry, now counter) (back bool, err error) {
	high := c.cfg.Memory.Of(name).High()
	back = high > 0 && now.Next <= uint64(high)
	if missing := entry.Revision == 0; c.cfg.MustExist && (missing || back) {
		err = &store.SetBackError{Counter: name, Missing: missing, Found: now.last(), Known: firn.ID(high)}
	}
	return back, err
}

// setBack is below for who has entered: it counts a record that lies below, and logs it, once.
func (c *counters) setBack(name string, entry store.Entry, now counter) (back bool, err error) {
	back, err = c.below(name, entry, now)
	known := c.cfg.Memory.Of(name)
	record := entry.Revision
	if err != nil {
		record = 0 // one loss, whatever others do to the counter until it is above again
	}
	switch {
	case !back || !known.SetBack(record):
	case err != nil:
		c.cfg.Log.Warn("no range is fetched until the counter of a segment is raised, ids that are in memory are still issued", "name", name, "error", err)
	default:
		c.cfg.Log.Warn("the counter of a segment was set back, and is raised above what is known here: ids that only others know of may be made again",
			"name", name, "next", now.Next, "above", known.High(), "advice", "find the greatest id that anybody received, and raise the counter above it")
	}
	return back, err
}

// read returns the counter in entry, or a counter at 0 if the store has no record. Errors:
// [store.ErrForeign], *[store.TakenError], *[StripeError].
func (c *counters) read(name string, entry store.Entry) (counter, error) {
	if entry.Revision == 0 {
		return counter{use: &c.mine.Use}, nil
	}
	now, err := readCounter(name, entry, &c.mine.Use)
	if err == nil && now.Stripe != c.stripe {
		err = &StripeError{Name: name, Have: now.Stripe, Want: c.stripe}
	}
	return now, err
}

// Return implements [Returner]: it moves the counter back to the first unused id if the record
// is still the one that granted the last of them, and nothing above. A lost answer is harmless: the ids are not
// issued here, and the counter moves back only if no later write has moved it on.
func (c *counters) Return(ctx context.Context, name string, unused Range) (bool, error) {
	if err := store.CheckName("segment", name); err != nil || unused.Stride != c.stripe.Stride || !unused.ends() {
		return false, err
	}
	value, err := c.encode(unused.use, uint64(unused.First), -unused.Count)
	if err != nil {
		return false, err
	}
	known, err := c.enter(ctx, "give back ids of", name)
	if err != nil {
		return false, err
	}
	defer known.Leave()
	r := c.register(name)
	r.Known(store.Entry{Revision: unused.revision})
	_, err = r.Write(ctx, value)
	if !store.Unapplied(err) {
		known.Lacks(int64(unused.First), int64(unused.Last()))
	}
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("segment: give back %v of %q: %w", unused, name, err)
	}
	return true, nil
}

func (c *counters) encode(use *register.Use, next uint64, step int64) ([]byte, error) {
	r := c.mine
	r.Use, r.Next, r.Step, r.Write, r.At = *use, strconv.FormatUint(next, 10), step, c.writes.Add(1), c.cfg.Time.Wall().UTC()
	return register.Encode(r)
}
