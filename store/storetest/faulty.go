package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/firn-id/firn/store"
)

// ErrAnswerLost is what a [Faulty] answers for the third outcome: neither yes
// nor no. It is none of package store's errors.
var ErrAnswerLost = errors.New("the answer was lost")

// An Op is a kind of call.
type Op int

// The calls of a [store.Store] that can be made to fail.
const (
	OpGet Op = iota
	OpCompareAndSwap
	OpList
)

// String returns the call's name.
func (o Op) String() string {
	switch o {
	case OpGet:
		return "get"
	case OpCompareAndSwap:
		return "compare-and-swap"
	case OpList:
		return "list"
	default:
		return fmt.Sprintf("op %d", int(o))
	}
}

// A Call is one call as a script sees it.
type Call struct {
	Op  Op
	Key string // for OpList the prefix
	N   int    // how many calls of this Op there have been, with this one: from 1
}

// An Outcome is what becomes of a call. For reads there is nothing to apply, so
// FailApplied, FailUnapplied and FailLate all fail with [ErrAnswerLost].
type Outcome int

// The outcomes a script can choose.
const (
	// Pass hands the call on.
	Pass Outcome = iota
	// FailApplied hands the call on and answers [ErrAnswerLost]: a write whose
	// answer was lost, and likewise one that was applied and not confirmed.
	FailApplied
	// FailUnapplied answers [ErrAnswerLost] and does nothing.
	FailUnapplied
	// FailLate answers [ErrAnswerLost] and hands the write on later: right before
	// the second call from now that reaches the inner store. So one read-back
	// finds it absent, and then it arrives. It is still a compare-and-swap, and
	// does nothing if the key has another revision by then.
	FailLate
	// Refuse answers [store.ErrRefused] and does nothing.
	Refuse
)

// String returns the outcome in words.
func (o Outcome) String() string {
	switch o {
	case Pass:
		return "pass"
	case FailApplied:
		return "fail, applied"
	case FailUnapplied:
		return "fail, not applied"
	case FailLate:
		return "fail, applied late"
	case Refuse:
		return "refuse"
	default:
		return fmt.Sprintf("outcome %d", int(o))
	}
}

// Counts says how many calls were made, those that failed included.
type Counts struct {
	Get, CompareAndSwap, List int
}

// Faulty is a [store.Store] that fails as its script says, for tests and
// simulation. It never sleeps and draws nothing at random: the same calls have
// the same outcomes. Calls may be made concurrently. Make one with [NewFaulty].
type Faulty struct {
	// Script chooses the outcome of each call; nil stands for Pass. It is called
	// by one goroutine at a time, with a lock held: it may use the inner store
	// but not this one. Set it while no call is under way.
	Script func(Call) Outcome

	inner store.Store

	mu     sync.Mutex
	counts Counts
	down   bool
	late   []lateWrite
}

// lateWrite is a write on its way, which lets so many calls overtake it.
type lateWrite struct {
	key   string
	old   store.Revision
	value []byte
	wait  int
}

// NewFaulty returns a wrapper of inner that passes everything on, until its
// Script or [Faulty.SetDown] say otherwise.
func NewFaulty(inner store.Store) *Faulty { return &Faulty{inner: inner} }

// SetDown makes every call answer [store.ErrUnavailable], with nothing applied
// and no script asked, until it is set to false again.
func (f *Faulty) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

// Counts returns how many calls were made so far.
func (f *Faulty) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

// Get implements [store.Store].
func (f *Faulty) Get(ctx context.Context, key string) (store.Entry, error) {
	outcome, err := f.decide(OpGet, key)
	if err != nil {
		return store.Entry{}, err
	}
	entry, err := f.inner.Get(ctx, key)
	if outcome == FailApplied {
		return store.Entry{}, lost(OpGet, key)
	}
	return entry, err
}

// CompareAndSwap implements [store.Store].
func (f *Faulty) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	outcome, err := f.decide(OpCompareAndSwap, key)
	if outcome == FailLate {
		f.mu.Lock()
		f.late = append(f.late, lateWrite{key: key, old: old, value: slices.Clone(value), wait: 1})
		f.mu.Unlock()
	}
	if err != nil {
		return store.Entry{}, err
	}
	revision, err := f.inner.CompareAndSwap(ctx, key, old, value)
	if outcome == FailApplied {
		return store.Entry{}, lost(OpCompareAndSwap, key) // a conflict is lost on the way back as well
	}
	return revision, err
}

// List implements [store.Store].
func (f *Faulty) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	outcome, err := f.decide(OpList, prefix)
	if err != nil {
		return nil, err
	}
	list, err := f.inner.List(ctx, prefix)
	if outcome == FailApplied {
		return nil, lost(OpList, prefix)
	}
	return list, err
}

// Close closes the inner store. Late writes that have not arrived never will.
func (f *Faulty) Close() error { return f.inner.Close() }

// Embedded implements [store.Embedded] as the inner store does.
func (f *Faulty) Embedded() bool {
	e, ok := f.inner.(store.Embedded)
	return ok && e.Embedded()
}

// decide counts a call and asks the script. It returns an error for a call that
// is not to reach the inner store; for one that is, it first lets the late
// writes arrive whose time has come.
func (f *Faulty) decide(op Op, key string) (Outcome, error) {
	outcome, due, err := f.choose(op, key)
	for _, w := range due {
		// Whoever made this write has long had its answer: no one is there to hear.
		_, _ = f.inner.CompareAndSwap(context.Background(), w.key, w.old, w.value)
	}
	return outcome, err
}

func (f *Faulty) choose(op Op, key string) (Outcome, []lateWrite, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.count(op)
	if f.down {
		return Pass, nil, fmt.Errorf("storetest: %v %q: %w: the store is down", op, key, store.ErrUnavailable)
	}
	outcome := Pass
	if f.Script != nil {
		outcome = f.Script(Call{Op: op, Key: key, N: n})
	}
	switch outcome {
	case FailUnapplied, FailLate:
		return outcome, nil, lost(op, key)
	case Refuse:
		return outcome, nil, fmt.Errorf("storetest: %v %q: %w by the script", op, key, store.ErrRefused)
	}
	var due, waiting []lateWrite
	for _, w := range f.late {
		if w.wait == 0 {
			due = append(due, w)
			continue
		}
		w.wait--
		waiting = append(waiting, w)
	}
	f.late = waiting
	return outcome, due, nil
}

// count counts a call and returns the new count of its kind.
func (f *Faulty) count(op Op) int {
	c := &f.counts.Get
	switch op {
	case OpCompareAndSwap:
		c = &f.counts.CompareAndSwap
	case OpList:
		c = &f.counts.List
	}
	*c++
	return *c
}

func lost(op Op, key string) error {
	return fmt.Errorf("storetest: %v %q: %w", op, key, ErrAnswerLost)
}
