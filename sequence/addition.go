package sequence

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/outage"
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

// An adder makes the additions of a name. It belongs to the goroutine that makes them, while
// [Namespace].running.
type adder struct {
	of      *Namespace
	all     *Sequences
	record  register.Register
	use     *register.Use // of the next write, according to the latest read
	known   *register.Known
	counter counter
	pace    pace
	backoff backoff
	outage  outage.Outage
	batch   []*request // the requests of the next addition, in order of arrival
	writes  uint64
	open    bool  // the outcome of the latest write is unknown; the batch has its shares
	shared  int64 // what was known when it got them
}

// run makes additions as long as requests wait.
//
// Why ids increase in real time: compare-and-swap orders all additions of one record, and each
// begins where the one before it ended. A request gets its share from an addition that was
// sent after the request came, and so after all additions acknowledged before, by any process.
// An addition counts once the store has confirmed it. If its outcome is unknown, the record is
// read: if it still is what was written, the same is written once more; otherwise the addition
// starts over. If the earlier write arrives late, the result is at most a gap: one of the two
// finds another revision than it expects.
func (a *adder) run() {
	for a.try() {
	}
}

// try makes one attempt at an addition for all waiting requests. It returns false if no request
// waits: then the next request begins another run.
func (a *adder) try() bool {
	if len(a.batch) == 0 { // the next requests have not failed yet
		a.backoff, a.open = backoff{}, false
	}
	a.yield()
	if !a.gather() {
		return false
	}
	d := max(a.pace.delay(a.all.cfg.Time.Monotonic(), a.all.cfg.Random), a.backoff.delay())
	if d > 0 {
		if err := a.all.cfg.Time.Sleep(context.Background(), d); err != nil {
			return a.fail(err)
		}
	}
	if a.pace.others > 0 {
		a.counter.read = false // another process has usually written meanwhile
	}
	ctx, cancel := turns.WithTimeout(context.Background(), a.all.cfg.Time, a.all.cfg.Timeout)
	defer cancel()
	if err := a.known.Enter(ctx, a.all.cfg.Time); err != nil {
		return a.fail(a.explain(ctx, "wait", err))
	}
	defer a.known.Leave()
	met := a.known.High()
	a.counter.meet(met)
	if !a.counter.read {
		err := a.look(ctx)
		a.ended()
		if err != nil {
			return a.fail(a.explain(ctx, "read", err))
		}
		if !a.gather() { // with the requests that came meanwhile
			return false // from here on another run may own this state
		}
	}
	defer a.ended()
	a.refuseSetBack(ctx)
	last := a.counter.last
	// If the record is that write, the shares are its own, unless others of this process have had more ids since.
	if a.open = a.open && a.record.Ours() && met == a.shared; !a.open {
		last = a.counter.share(a.batch)
		a.shared = a.known.High()
		if a.refuse() {
			return true
		}
	}
	if err := a.write(ctx, last); err != nil {
		return a.fail(a.explain(ctx, "add", err))
	}
	return true
}

// ended records when an attempt ended.
func (a *adder) ended() { a.pace.ended = a.all.cfg.Time.Monotonic() }

// maxYields bounds how often yield lets others go first.
const maxYields = 16

// yield lets others go first, before the addition is sent, as long as more callers keep asking.
// Callers that were just answered come back at once; without it, the addition would carry only the first.
func (a *adder) yield() {
	before := -1
	for range maxYields {
		a.of.mu.Lock()
		now := a.of.waiting.Len()
		a.of.mu.Unlock()
		if now == before {
			return
		}
		before = now
		runtime.Gosched()
	}
}

// gather moves all waiting requests into the batch, and drops those whose callers left. If no
// request remains, it ends the run and returns false.
func (a *adder) gather() bool {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	for first := a.of.waiting.Front(); first != nil; first = a.of.waiting.Front() {
		r, _ := a.of.waiting.Remove(first).(*request)
		a.batch = append(a.batch, r)
	}
	a.batch = slices.DeleteFunc(a.batch, func(r *request) bool { return r.left })
	a.of.running = len(a.batch) > 0
	return a.of.running
}

func (a *adder) look(ctx context.Context) error {
	began := a.all.cfg.Time.Monotonic()
	entry, err := a.record.Read(ctx)
	if err != nil {
		return err
	}
	var last int64
	var by string
	a.use = a.of.use()
	if entry.Revision != 0 {
		if last, by, a.use, err = decode(a.of.name, entry, a.use); err != nil {
			return err
		}
	}
	now := a.all.cfg.Time.Monotonic()
	a.pace.took(now - began)
	if entry.Revision == a.counter.revision || by == a.all.token {
		by = "" // at least no other process has written since
	}
	a.pace.see(now, by)
	a.counter.learn(last, entry.Revision)
	if !a.record.Ours() { // otherwise its ids are no one's yet
		a.known.Had(last)
	}
	found := entry.Revision
	if a.all.cfg.MustExist {
		found = 0 // one loss, whatever others do to the record until it is above again
	}
	if a.counter.setBack() && a.known.SetBack(found) && !a.all.cfg.MustExist {
		a.all.cfg.Log.Warn("a sequence was set back, raising it above what is known here: ids that only others know of may be made again",
			"sequence", a.of.name, "found", a.counter.last, "known", a.counter.high,
			"advice", "find the greatest id that anybody received, and raise the sequence to it")
	}
	return nil
}

// refuseSetBack fails what a sequence that must exist does not serve while its record is missing, or lies below what is known:
// all but raises to that or above. So an addition to such a record carries raises alone, and no id comes from before them.
func (a *adder) refuseSetBack(ctx context.Context) {
	missing := a.counter.revision == 0
	if !a.all.cfg.MustExist || !missing && !a.counter.setBack() {
		return
	}
	refused := func(r *request) bool { return r.n > 0 || r.least < max(a.counter.high, 1) }
	if slices.ContainsFunc(a.batch, refused) {
		a.failThose(refused, a.explain(ctx, "read", &store.SetBackError{
			Counter: a.of.name, Missing: missing, Found: firn.ID(a.counter.last), Known: firn.ID(a.counter.high),
		}))
	}
}

// refuse fails requests that can never fit. It returns true if nothing is left to add.
func (a *adder) refuse() bool {
	a.dismiss(func(r *request) bool {
		if r.fits || !a.counter.exhausted(r) {
			return false
		}
		from := max(a.counter.base(), r.least)
		end := a.counter.end(from, r)
		exhausted := &ExhaustedError{Name: a.of.name, Want: r.n, Left: a.counter.room(from, r), Max: firn.ID(end)}
		if end < a.counter.max { // that of a block
			exhausted.Block = r.block
		}
		r.err = exhausted
		return true
	})
	return len(a.batch) == 0
}

// write stores last as the last id used, and answers the requests with a share. If the write
// failed and may be tried again, the error is nil too.
func (a *adder) write(ctx context.Context, last int64) error {
	a.writes++
	value, err := register.Encode(record{
		Use: *a.use, Last: strconv.FormatInt(last, 10), By: a.all.token, Write: a.writes, At: a.all.cfg.Time.Wall().UTC(),
	})
	if err != nil {
		return err
	}
	began := a.all.cfg.Time.Monotonic()
	written, err := a.record.Write(ctx, value)
	now := a.all.cfg.Time.Monotonic()
	conflict := errors.Is(err, store.ErrConflict)
	switch {
	case err == nil:
		a.pace.took(now - began)
		if a.counter.revision == 0 && !a.counter.setBack() { // the program may have moved to another store, where it repeats ids
			a.all.cfg.Log.Info("a counter is new in this store", "name", a.of.name, "first", a.counter.base()+1)
		}
		a.pace.wins++
		a.counter.learn(last, written.Revision)
		a.known.Had(last)
		a.backoff = backoff{}
		a.answer(last)
		return nil
	case conflict:
		a.count(func(state *State) { state.Conflicts++ })
	case store.Unapplied(err), ctx.Err() != nil:
		return err
	default: // it may have been applied, or may still be
		a.open = true
		a.count(func(state *State) { state.Lost++ })
	}
	a.counter.read = false
	a.backoff.failed(conflict, a.counter.revision, now, a.all.cfg.Random)
	inTime := a.backoff.within(a.all.cfg.Timeout, now)
	switch { // too many tries, or no success for too long
	case inTime && a.backoff.conflicts < maxConflicts && a.backoff.lost < maxLost:
		return nil
	case !inTime && a.backoff.lost == 0:
		return fmt.Errorf("%d conflicts within %v with a record that reads as if no process had written: reads must not be served by a replica or a cache: %w",
			a.backoff.vain, a.all.cfg.Timeout, &store.TextError{Kind: store.ErrUnavailable, Err: err})
	}
	return fmt.Errorf("%s: %w", a.backoff.why(), &store.TextError{Kind: store.ErrUnavailable, Err: err})
}

func (a *adder) count(note func(*State)) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	note(&a.of.state)
}

// answer hands out the shares of an addition. Requests that did not fit stay for the next.
func (a *adder) answer(last int64) {
	a.count(func(state *State) {
		state.Last, state.Err = firn.ID(last), nil
		state.Additions++
		for _, r := range a.batch {
			if r.fits && r.n > 0 {
				state.Served++
				state.Issued += r.got
			}
		}
	})
	if a.outage.Ends() {
		a.all.cfg.Log.Info("a sequence makes ids again", "sequence", a.of.name, "last", last)
	}
	a.dismiss(func(r *request) bool { return r.fits })
}

// fail fails the whole batch, but not the requests that came after the attempt began.
func (a *adder) fail(err error) bool {
	a.failThose(func(*request) bool { return true }, err)
	return true
}

func (a *adder) failThose(failed func(*request) bool, err error) {
	var n int64
	for _, r := range a.batch {
		if failed(r) {
			n++
		}
	}
	a.count(func(state *State) {
		state.Err = err
		state.Failures += n
	})
	if a.outage.Fails(err, a.all.cfg.Time.Monotonic()) {
		a.all.cfg.Log.Warn("a sequence could make no ids", "sequence", a.of.name, "error", err)
	} else {
		a.all.cfg.Log.Debug("again a sequence could make no ids", "sequence", a.of.name, "error", err)
	}
	a.dismiss(func(r *request) bool {
		if !failed(r) {
			return false
		}
		r.err = err
		return true
	})
}

// dismiss removes the requests that are done from the batch and wakes their callers.
func (a *adder) dismiss(done func(*request) bool) {
	a.batch = slices.DeleteFunc(a.batch, func(r *request) bool {
		if !done(r) {
			return false
		}
		close(r.done)
		return true
	})
}

// explain says what went wrong with the store. Unless the store is known to have refused, it is
// unavailable.
func (a *adder) explain(ctx context.Context, op string, err error) error {
	a.counter.read = false
	switch {
	case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrTaken), errors.Is(err, store.ErrSetBack), errors.Is(err, store.ErrRefused):
	case ctx.Err() != nil:
		err = fmt.Errorf("no answer within %v: %w", a.all.cfg.Timeout, &store.TextError{Kind: store.ErrUnavailable, Err: err})
	case !errors.Is(err, store.ErrUnavailable):
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return fmt.Errorf("sequence %q: %s: %w", a.of.name, op, err)
}
