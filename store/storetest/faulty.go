package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/firn-id/firn/store"
)

// ErrAnswerLost is the error of a [Faulty] for the third outcome. It matches no error of package store.
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
func (o Op) String() string { return [...]string{"get", "compare-and-swap", "list"}[o] }

// A Call is one call as a script sees it.
type Call struct {
	Op  Op
	Key string // for OpList the prefix
	N   int    // calls of this Op so far, including this one: from 1
}

// An Outcome is the fate of a call. A read has nothing to apply: FailApplied, FailUnapplied and
// FailLate do the same to it.
type Outcome int

// The outcomes a script can choose.
const (
	Pass          Outcome = iota // make the call
	FailApplied                  // make it and answer [ErrAnswerLost]: the answer was lost, or the write not confirmed
	FailUnapplied                // answer [ErrAnswerLost] and do nothing
	// FailLate answers [ErrAnswerLost] and makes the write later: right before the second call from now
	// that reaches the inner store. So one read-back does not find it, and then it arrives. It does
	// nothing if the key has another revision by then.
	FailLate
	Refuse // answer [store.ErrRefused] and do nothing
)

// String returns the outcome in words.
func (o Outcome) String() string {
	return [...]string{"pass", "fail, applied", "fail, not applied", "fail, applied late", "refuse"}[o]
}

// Counts is how many calls were made, failed ones included.
type Counts struct {
	Get, CompareAndSwap, List int
}

// Faulty is a [store.Store] that fails as its script demands, for tests and simulation. The same calls
// have the same outcomes: it never sleeps and draws nothing at random. Make one with [NewFaulty].
type Faulty struct {
	// Script chooses the outcome of each call; nil stands for Pass. It runs under a lock: it may use the
	// inner store but not this one. Set it while no call is in flight.
	Script func(Call) Outcome

	inner store.Store

	mu        sync.Mutex
	counts    [OpList + 1]int
	down      bool
	late, due []func() // delayed writes; the due ones are made before the next call
}

// NewFaulty returns a wrapper of inner that passes all calls on, until its Script or [Faulty.SetDown]
// changes that.
func NewFaulty(inner store.Store) *Faulty { return &Faulty{inner: inner} }

// SetDown makes all calls fail with [store.ErrUnavailable], without applying anything or calling the
// script, until it is set to false.
func (f *Faulty) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

// Counts returns how many calls were made so far.
func (f *Faulty) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Counts{Get: f.counts[OpGet], CompareAndSwap: f.counts[OpCompareAndSwap], List: f.counts[OpList]}
}

// Get implements [store.Store].
func (f *Faulty) Get(ctx context.Context, key string) (store.Entry, error) {
	return answer(f, OpGet, key, nil, func() (store.Entry, error) { return f.inner.Get(ctx, key) })
}

// CompareAndSwap implements [store.Store].
func (f *Faulty) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	kept := slices.Clone(value)
	late := func() {
		// Its caller got an answer long ago.
		_, _ = f.inner.CompareAndSwap(context.Background(), key, old, kept)
	}
	return answer(f, OpCompareAndSwap, key, late, func() (store.Entry, error) {
		return f.inner.CompareAndSwap(ctx, key, old, value)
	})
}

// List implements [store.Store].
func (f *Faulty) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return answer(f, OpList, prefix, nil, func() ([]store.Entry, error) { return f.inner.List(ctx, prefix) })
}

// Close closes the inner store. Late writes that have not arrived are dropped.
func (f *Faulty) Close() error { return f.inner.Close() }

// Traits returns those of the inner store. Its clock and its examination do not fail.
func (f *Faulty) Traits() store.Traits { return f.inner.Traits() }

// answer counts a call, asks the script, and passes due late writes and the call on.
func answer[T any](f *Faulty, op Op, key string, late func(), call func() (T, error)) (none T, err error) {
	outcome, due, err := f.choose(op, key, late)
	if err == nil {
		for _, write := range due {
			write()
		}
		value, callErr := call()
		if outcome != FailApplied {
			return value, callErr
		}
		err = ErrAnswerLost // the answer of a conflict is lost too
	}
	return none, fmt.Errorf("storetest: %v %q: %w", op, key, err)
}

// choose returns an error for a call that must not reach the inner store.
func (f *Faulty) choose(op Op, key string, late func()) (outcome Outcome, due []func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[op]++
	switch {
	case f.down:
		return Pass, nil, fmt.Errorf("%w: the store is down", store.ErrUnavailable)
	case f.Script != nil:
		outcome = f.Script(Call{Op: op, Key: key, N: f.counts[op]})
	}
	switch outcome {
	case Refuse:
		return outcome, nil, fmt.Errorf("%w by the script", store.ErrRefused)
	case FailLate:
		if late != nil {
			f.late = append(f.late, late)
		}
		return outcome, nil, ErrAnswerLost
	case FailUnapplied:
		return outcome, nil, ErrAnswerLost
	}
	due, f.due, f.late = f.due, f.late, nil
	return outcome, due, nil
}
