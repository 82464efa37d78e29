package sequence

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// A Namespace makes strictly increasing ids. Get one from [Sequences.Namespace]. Do not copy it. Its
// methods may be called concurrently.
type Namespace struct {
	all  *Sequences
	name string

	mu      sync.Mutex // guards what follows but the adder; never held while waiting
	waiting list.List  // of *request, in order of arrival: those not in an addition yet
	running bool       // a run is in progress and will take new requests
	form    store.Form // what the ids are made into; without a name until the first request
	state   State

	adder adder
}

// A State is a snapshot of a sequence.
type State struct {
	Last      firn.ID // the greatest id known to be used; 0 before the first read
	Additions int64   // that the store acknowledged
	Served    int64   // calls that got ids
	Issued    int64   // ids they got
	Conflicts int64   // attempts that failed because another process was quicker
	Lost      int64   // writes whose outcome was unknown
	SetBacks  int64   // times the record was found below what Config.Memory knows
	Failures  int64   // calls that failed because of the store
	Waiting   int     // calls that wait for the next addition
	Err       error   // of the latest addition, nil if it was made
}

// Batch is the mean number of calls that shared an addition.
func (s State) Batch() float64 {
	if s.Additions == 0 {
		return 0
	}
	return float64(s.Served) / float64(s.Additions)
}

// maxWaiting bounds how many calls wait for one addition.
const maxWaiting = 1 << 16

// String returns the name.
func (s *Namespace) String() string { return s.name }

// Declare sets the name of the form in which the program shows the ids, as Config.Form does; package numbering
// declares its template. The error is a *[store.TakenError] if this process has declared another, or has asked for
// ids before.
func (s *Namespace) Declare(form string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	with, err := store.Form{Name: form}.With(s.name, s.form)
	if err == nil {
		s.form = with
	}
	return err
}

// use returns what this process uses the counter for.
func (s *Namespace) use() *register.Use {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &register.Use{Kind: kind, Form: s.form}
}

// Timeout returns the Config.Timeout of the sequence.
func (s *Namespace) Timeout() time.Duration { return s.all.cfg.Timeout }

// Clock returns the clock of the sequence's store; nil if it has none.
func (s *Namespace) Clock() store.Clock { return s.all.cfg.Store.Traits().Clock }

// Next returns the next id: greater than every id that any caller had received
// when Next was called. It waits for the addition in progress and then for its own.
//
// Errors: ctx.Err(), with its cause; *[ExhaustedError]; *[store.SetBackError]; *[store.TakenError]; [store.ErrForeign];
// [firn.ErrClosed]; and the store's, store.ErrUnavailable or store.ErrRefused.
// A call that failed may have used ids up; they become gaps.
func (s *Namespace) Next(ctx context.Context) (firn.ID, error) {
	return s.Reserve(ctx, 1)
}

// Reserve returns the first of n ids in a row, all of them the caller's, as INCRBY
// does. Errors are those of [Namespace.Next], and a *[firn.RangeError] for n < 1.
func (s *Namespace) Reserve(ctx context.Context, n int) (first firn.ID, err error) {
	if err := config.Check("number of ids", int64(n), 1, math.MaxInt64, ""); err != nil {
		return 0, fmt.Errorf("sequence %q: %w", s.name, err)
	}
	return s.ask(ctx, &request{n: int64(n)})
}

// ReserveIn is Reserve of ids that are greater than above and lie in one block: from k×block to
// k×block + block − 1 for some k. The block is that of above, or a later one if the sequence is
// there already. If fewer than n ids are left in it, the error is an *[ExhaustedError], and the
// sequence stays where it is. This lets counters that restart share one sequence: see package
// numbering.
func (s *Namespace) ReserveIn(ctx context.Context, n int, above firn.ID, block int64) (first firn.ID, err error) {
	if err := cmp.Or(
		config.Check("block", block, 1, math.MaxInt64, "ids of a block"),
		config.Check("number of ids", int64(n), 1, block, "ids of a block"),
		config.Check("above", above, 0, s.all.cfg.Max, "up to Max"),
	); err != nil {
		return 0, fmt.Errorf("sequence %q: %w", s.name, err)
	}
	return s.ask(ctx, &request{n: int64(n), least: int64(above), block: block})
}

// Fill fills dst with ids in a row and returns how many. If fewer are left, it fills the front
// and returns an *[ExhaustedError]. Other errors are those of [Namespace.Next]; then dst is not
// filled at all.
func (s *Namespace) Fill(ctx context.Context, dst []firn.ID) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	r := request{n: int64(len(dst)), partly: true}
	first, err := s.ask(ctx, &r)
	if err != nil {
		return 0, err
	}
	for i := range dst[:r.got] {
		dst[i] = first + firn.ID(i)
	}
	if r.got < r.n {
		return int(r.got), &ExhaustedError{Name: s.name, Want: r.n, Left: r.got, Max: s.all.cfg.Max}
	}
	return len(dst), nil
}

// Look checks that the store still has the sequence as far as this process knows it, and raises it otherwise: then the
// store was wiped or set back, which State().SetBacks counts, and processes that start from now on make no id again that
// this one knows of. A process that makes ids seldom calls it every few seconds. Errors are those of [Namespace.Next]; with
// Config.MustExist a sequence that was set back is not raised, but a *[store.SetBackError] is returned, and counted as a failed call.
func (s *Namespace) Look(ctx context.Context) error {
	if s.all.additions.Closed() {
		return fmt.Errorf("sequence %q: %w", s.name, firn.ErrClosed)
	}
	high := s.adder.known.High() // read first: whatever others write meanwhile, the record must have as much
	if high == 0 {
		return nil
	}
	limited, cancel := turns.WithTimeout(ctx, s.all.cfg.Time, s.all.cfg.Timeout)
	defer cancel()
	record := register.Register{Store: s.all.cfg.Store, Key: register.CounterKey(s.name)}
	entry, err := record.Read(limited)
	if err != nil {
		return fmt.Errorf("sequence %q: look: %w", s.name, turns.Fault(ctx, store.ErrUnavailable, err))
	}
	var last int64
	if entry.Revision != 0 {
		if last, _, _, err = decode(s.name, entry, s.use()); err != nil {
			return fmt.Errorf("sequence %q: look: %w", s.name, err)
		}
	}
	if last >= high {
		return nil
	}
	return s.Raise(ctx, 0)
}

// Raise makes all later ids greater than last: for a table that has ids already, or a store
// that has forgotten some. It never lowers. Errors are those of [Namespace.Next], and a
// *[firn.RangeError] for a last that is below 0, which is no id, or above Max. With Config.MustExist a sequence that is missing
// or was set back is raised only by a last of 1 or more that is not below what this process has had. A missing one is made
// with Config.Form, so a program that only raises needs the Form of those who take ids.
func (s *Namespace) Raise(ctx context.Context, last firn.ID) error {
	err := config.Check("last id", last, 0, s.all.cfg.Max, "up to Max")
	if err != nil {
		return fmt.Errorf("sequence %q: %w", s.name, err)
	}
	_, err = s.ask(ctx, &request{least: int64(last)})
	return err
}

// State returns a snapshot, for metrics.
func (s *Namespace) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	state.Waiting, state.SetBacks = s.waiting.Len(), s.adder.known.SetBacks()
	return state
}

// ask waits until a request was answered. It returns the first id.
func (s *Namespace) ask(ctx context.Context, r *request) (firn.ID, error) {
	if ctx.Err() != nil {
		return 0, s.ended(ctx, context.Cause(ctx))
	}
	r.done = make(chan struct{})
	if err := s.join(r); err != nil {
		return 0, err
	}
	if err := turns.Wait(ctx, s.all.cfg.Time, r.done); err != nil && !s.leave(r) {
		return 0, s.ended(ctx, err)
	}
	if r.err != nil { // first may be a share of an addition that failed
		return 0, r.err
	}
	return r.first, nil
}

// ended is the error of a call whose wait ctx has ended, with its cause err.
func (s *Namespace) ended(ctx context.Context, err error) error {
	return turns.Ended(ctx, fmt.Sprintf("sequence %q: wait for an addition", s.name), err)
}

// join queues a request behind those that wait, and starts a run if there is no run.
func (s *Namespace) join(r *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.waiting.Len() >= maxWaiting:
		return fmt.Errorf("sequence %q: %d calls wait already: ask for several ids at once: %w", s.name, maxWaiting, store.ErrUnavailable)
	case s.running && s.all.additions.Closed(), !s.running && !s.all.additions.Go(s.adder.run):
		return fmt.Errorf("sequence %q: %w", s.name, firn.ErrClosed)
	}
	s.form.Name = cmp.Or(s.form.Name, store.Plain)
	r.place = s.waiting.PushBack(r)
	s.running = true
	return nil
}

// leave removes the request of a caller whose context has ended. Ids that are being added for it
// become a gap: the other requests may have come too late for them. An earlier answer stands.
func (s *Namespace) leave(r *request) (answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-r.done:
		return true
	default:
		r.left = true
		s.waiting.Remove(r.place) // if it is still there
		return false
	}
}
