package sequence

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

const (
	// maxConflicts and maxLost bound how often an addition may lose to a quicker one, and how often
	// its answer may be lost, before it fails.
	maxConflicts = 1024
	maxLost      = 16
)

// run makes additions as long as requests wait.
//
// Why ids increase in real time: compare-and-swap orders all additions of one record, and each
// begins where the one before it ended. A request gets its share from an addition that was
// sent after the request came, and so after all additions acknowledged before, by any process.
// An addition counts once the store has confirmed it. If its outcome is unknown, the record is
// read: if it still is what was written, the same is written once more; otherwise the addition
// starts over. If the earlier write arrives late, the result is at most a gap: one of the two
// finds another revision than it expects.
func (s *Namespace) run() {
	for s.try() {
	}
}

// try makes one attempt at an addition for all waiting requests. It returns false if no request
// waits: then the next request begins another run.
func (s *Namespace) try() bool {
	if len(s.batch) == 0 { // the next requests have not failed yet
		s.backoff, s.open = backoff{}, false
	}
	s.crowd()
	if !s.gather() {
		return false
	}
	d := max(s.pace.delay(s.all.cfg.Time.Monotonic(), s.all.cfg.Random), s.backoff.delay())
	if d > 0 {
		if err := s.all.cfg.Time.Sleep(context.Background(), d); err != nil {
			return s.fail(err)
		}
	}
	if s.pace.crowd > 0 {
		s.counter.read = false // another process has usually written meanwhile
	}
	ctx, cancel := turns.WithTimeout(context.Background(), s.all.cfg.Time, s.all.cfg.Timeout)
	defer cancel()
	if !s.counter.read {
		err := s.look(ctx)
		s.ended()
		if err != nil {
			return s.fail(s.explain(ctx, "read", err))
		}
		if !s.gather() { // with the requests that came meanwhile
			return false // from here on another run may own this state
		}
	}
	defer s.ended()
	last := s.counter.last
	if s.open = s.open && s.record.Ours(); !s.open { // otherwise the shares are those of the record
		last = s.counter.share(s.batch)
		if s.refuse() {
			return true
		}
	}
	if err := s.write(ctx, last); err != nil {
		return s.fail(s.explain(ctx, "add", err))
	}
	return true
}

// ended records when an attempt ended.
func (s *Namespace) ended() { s.pace.ended = s.all.cfg.Time.Monotonic() }

// maxYields bounds how often crowd lets others go first.
const maxYields = 16

// crowd yields before the addition is sent, as long as more callers keep asking. Callers that
// were just answered come back at once; without it, the addition would carry only the first.
func (s *Namespace) crowd() {
	before := -1
	for range maxYields {
		s.mu.Lock()
		now := s.waiting.Len()
		s.mu.Unlock()
		if now == before {
			return
		}
		before = now
		runtime.Gosched()
	}
}

// gather moves all waiting requests into the batch, and drops those whose callers left. If no
// request remains, it ends the run and returns false.
func (s *Namespace) gather() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for first := s.waiting.Front(); first != nil; first = s.waiting.Front() {
		r, _ := s.waiting.Remove(first).(*request)
		s.batch = append(s.batch, r)
	}
	s.batch = slices.DeleteFunc(s.batch, func(r *request) bool { return r.left })
	s.running = len(s.batch) > 0
	return s.running
}

func (s *Namespace) look(ctx context.Context) error {
	began := s.all.cfg.Time.Monotonic()
	entry, err := s.record.Read(ctx)
	if err != nil {
		return err
	}
	var last int64
	var by string
	if entry.Revision != 0 {
		if last, by, err = decode(entry); err != nil {
			return err
		}
	}
	now := s.all.cfg.Time.Monotonic()
	s.pace.took(now - began)
	known := entry.Revision == s.counter.revision
	if known || by == s.all.token {
		by = "" // at least no other process has written since
	}
	s.pace.see(now, by)
	s.counter.learn(last, entry.Revision)
	if s.counter.setBack() {
		return s.setBack(known)
	}
	return nil
}

// setBack decides whether to raise a record that lies below what is known: not in strict
// sequences, unless the batch has a Raise for that. Known says that an earlier read found it so.
func (s *Namespace) setBack(known bool) error {
	if !known {
		s.count(func(state *State) { state.SetBacks++ })
	}
	raises := func(r *request) bool { return r.n == 0 && r.least >= s.counter.high }
	if s.all.cfg.Strict && !slices.ContainsFunc(s.batch, raises) {
		return &SetBackError{Name: s.name, Found: firn.ID(s.counter.last), Known: firn.ID(s.counter.high)}
	}
	if !known {
		s.all.cfg.Log.Warn("a sequence was set back, raising it above what is known here: ids that only others know of may be made again",
			"sequence", s.name, "found", s.counter.last, "known", s.counter.high)
	}
	return nil
}

// refuse fails requests that can never fit. It returns true if nothing is left to add.
func (s *Namespace) refuse() bool {
	s.dismiss(func(r *request) bool {
		if r.fits || !s.counter.exhausted(r) {
			return false
		}
		from := max(s.counter.base(), r.least)
		end := s.counter.end(from, r)
		exhausted := &ExhaustedError{Name: s.name, Want: r.n, Left: s.counter.room(from, r), Max: firn.ID(end)}
		if r.block > 0 && end%r.block == r.block-1 && end < int64(s.all.cfg.Max) {
			exhausted.Block = r.block
		}
		r.err = exhausted
		return true
	})
	return len(s.batch) == 0
}

// write stores last as the last id used, and answers the requests with a share. If the write
// failed and may be tried again, the error is nil too.
func (s *Namespace) write(ctx context.Context, last int64) error {
	s.writes++
	value, err := register.Encode(record{
		Last: strconv.FormatInt(last, 10), By: s.all.token, Write: s.writes, At: s.all.cfg.Time.Wall().UTC(),
	})
	if err != nil {
		return err
	}
	began := s.all.cfg.Time.Monotonic()
	written, err := s.record.Write(ctx, value)
	now := s.all.cfg.Time.Monotonic()
	conflict := errors.Is(err, store.ErrConflict)
	switch {
	case err == nil:
		s.pace.took(now - began)
		s.pace.wins++
		s.counter.learn(last, written.Revision)
		s.backoff = backoff{}
		s.answer(last)
		return nil
	case conflict:
		s.count(func(state *State) { state.Conflicts++ })
	case store.Unapplied(err), ctx.Err() != nil:
		return err
	default: // it may have been applied, or may still be
		s.open = true
		s.count(func(state *State) { state.Lost++ })
	}
	s.counter.read = false
	s.backoff.failed(conflict, s.counter.revision, now, s.all.cfg.Random)
	inTime := s.backoff.within(s.all.cfg.Timeout, now)
	switch { // too many tries, or no success for too long
	case inTime && s.backoff.conflicts < maxConflicts && s.backoff.lost < maxLost:
		return nil
	case !inTime && s.backoff.lost == 0:
		return fmt.Errorf("%d conflicts within %v with a record that reads as if no process had written: reads must not be served by a replica or a cache: %w",
			s.backoff.vain, s.all.cfg.Timeout, &store.TextError{Kind: store.ErrUnavailable, Err: err})
	}
	return fmt.Errorf("others were quicker %d times, and %d answers were lost: %w",
		s.backoff.conflicts, s.backoff.lost, &store.TextError{Kind: store.ErrUnavailable, Err: err})
}

func (s *Namespace) count(note func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note(&s.state)
}

// answer hands out the shares of an addition. Requests that did not fit stay for the next.
func (s *Namespace) answer(last int64) {
	var wasFailing bool
	s.count(func(state *State) {
		wasFailing = state.Err != nil
		state.Last, state.Err = firn.ID(last), nil
		state.Additions++
		for _, r := range s.batch {
			if r.fits && r.n > 0 {
				state.Served++
				state.Issued += r.got
			}
		}
	})
	if wasFailing {
		s.all.cfg.Log.Info("a sequence makes ids again", "sequence", s.name, "last", last)
	}
	s.dismiss(func(r *request) bool { return r.fits })
}

// fail fails the whole batch, but not the requests that came after the attempt began.
func (s *Namespace) fail(err error) bool {
	var wasFailing bool
	s.count(func(state *State) {
		wasFailing = state.Err != nil
		state.Err = err
		state.Failures += int64(len(s.batch))
	})
	if wasFailing {
		s.all.cfg.Log.Debug("again a sequence could make no ids", "sequence", s.name, "error", err)
	} else { // the first failure in a row: log an outage once per sequence
		s.all.cfg.Log.Warn("a sequence could make no ids", "sequence", s.name, "error", err)
	}
	s.dismiss(func(r *request) bool {
		r.err = err
		return true
	})
	return true
}

// dismiss removes the requests that are done from the batch and wakes their callers.
func (s *Namespace) dismiss(done func(*request) bool) {
	s.batch = slices.DeleteFunc(s.batch, func(r *request) bool {
		if !done(r) {
			return false
		}
		close(r.done)
		return true
	})
}

// explain says what went wrong with the store. Unless the store is known to have refused, it is
// unavailable.
func (s *Namespace) explain(ctx context.Context, op string, err error) error {
	s.counter.read = false
	switch {
	case errors.Is(err, store.ErrForeign), errors.Is(err, ErrSetBack), errors.Is(err, store.ErrRefused):
	case ctx.Err() != nil:
		err = fmt.Errorf("no answer within %v: %w", s.all.cfg.Timeout, &store.TextError{Kind: store.ErrUnavailable, Err: err})
	case !errors.Is(err, store.ErrUnavailable):
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return fmt.Errorf("sequence %q: %s: %w", s.name, op, err)
}
