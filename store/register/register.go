// Package register updates a register of a store safely: it reads, decides, writes, and settles lost
// answers. Leases, segments, sequences and foreign protocols all write through it; nothing else in Firn
// calls [store.Store.CompareAndSwap]. Use it if your program keeps registers of its own beside Firn's. Do not use it
// for what many processes write all the time, since all but one of them start over: package sequence adds up.
//
// It upholds one rule. A write counts once the store has confirmed it. A write with an unknown outcome
// counts for nothing: it moves no fence, no range and no sequence. Another confirmed write over the
// bytes found settles it. A read never does: it may return what the store is about to lose.
//
// A [Memory] holds what a process knows of its counters, so that it repeats no id when the store is set back.
package register

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
)

const (
	// maxTries bounds how often an update is overtaken by another writer.
	maxTries = 64
	// maxFaults bounds how many writes of one update may end without an answer.
	maxFaults = 4
)

// A Register is one key of a store, as one writer knows it. It is not for concurrent use; a copy counts
// as another writer. Set the exported fields.
type Register struct {
	Store  store.Store
	Key    string
	Time   firn.TimeSource // waited on between tries
	Random func() uint64   // draws the length of the wait
	// Patience bounds each call of the store. Zero: only ctx does.
	Patience time.Duration

	known bool
	found store.Entry // as last read or confirmed; revision 0: the key does not exist
	tried []byte      // the value of the latest write, while its outcome is unknown
}

// Known makes the next update start from an entry that was read or confirmed before.
func (r *Register) Known(e store.Entry) { r.found, r.known = e, true }

// Forget makes the next update begin with a read.
func (r *Register) Forget() { r.known = false }

// Read reads the register. A key that does not exist is an entry of revision 0.
func (r *Register) Read(ctx context.Context) (store.Entry, error) {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	e, err := r.Store.Get(ctx, r.Key)
	if errors.Is(err, store.ErrNotFound) {
		e, err = store.Entry{Key: r.Key}, nil
	}
	r.found, r.known = e, err == nil
	return e, err
}

// Unsettled reports whether the outcome of the latest write is unknown.
func (r *Register) Unsettled() bool { return r.tried != nil }

// Ours reports whether the value found is our write with the unknown outcome. The store may lose it.
func (r *Register) Ours() bool { return r.tried != nil && bytes.Equal(r.found.Value, r.tried) }

// Write writes over the known entry, once. It returns the entry as confirmed. After any error the
// register must be read again; [store.Unapplied] reports that the write was not applied.
func (r *Register) Write(ctx context.Context, value []byte) (store.Entry, error) {
	if !r.known {
		return store.Entry{}, fmt.Errorf("register %q: %w: it was not read", r.Key, store.ErrRefused)
	}
	ctx, cancel := r.bound(ctx)
	defer cancel()
	e, err := r.Store.CompareAndSwap(ctx, r.Key, r.found.Revision, value)
	r.known = false
	switch {
	case err == nil:
		r.found, r.known, r.tried = e, true, nil
	case !store.Unapplied(err):
		r.tried = bytes.Clone(value)
	}
	return e, err
}

// Writable returns an error unless the store accepts writes of the register, which must have been read: a store may answer
// reads and refuse writes. It tries to write what was found, over a revision that no write has, so it changes nothing:
// backends count revisions up from small ones, or draw all their bits at random.
func (r *Register) Writable(ctx context.Context) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	_, err := r.Store.CompareAndSwap(ctx, r.Key, r.found.Revision^1<<62, r.found.Value)
	switch {
	case errors.Is(err, store.ErrConflict):
		return nil
	case err == nil:
		r.known = false
		return fmt.Errorf("register %q: %w: it took a write over a revision that it does not have", r.Key, store.ErrRefused)
	}
	return err
}

// Update reads the register, calls decide for the value to write over the one found, and writes it,
// until a write is confirmed. It calls decide again after each conflict and each unknown outcome;
// decide may then find its own write ([Register.Ours]). If decide returns nil, Update writes nothing
// and returns the entry found, but it writes an own unconfirmed write again, so that the store confirms
// it. An error of decide ends the update and is returned unchanged.
//
// Any other error is that of the last try: [store.ErrConflict] if another writer was faster each time,
// the error of a read, a [store.ErrRefused], or an unknown outcome. Once the outcome of one write is
// unknown, no returned error is [store.Unapplied].
func (r *Register) Update(ctx context.Context, decide func(found store.Entry) ([]byte, error)) (store.Entry, error) {
	var open error // that of the latest write whose outcome is unknown
	faults := 0
	for b := (Backoff{Time: r.Time, Random: r.Random}); ; {
		if !r.known {
			if _, err := r.Read(ctx); err != nil {
				return store.Entry{}, since(open, err)
			}
		}
		value, err := decide(r.found)
		switch {
		case err != nil:
			return store.Entry{}, err
		case value == nil && !r.Ours():
			return r.found, nil
		case value == nil:
			value = r.found.Value
		}
		e, err := r.Write(ctx, value)
		conflict := errors.Is(err, store.ErrConflict)
		switch {
		case err == nil:
			return e, nil
		case store.Unapplied(err) && !conflict:
			return store.Entry{}, since(open, err)
		case !conflict:
			faults++
			open = err
		}
		if faults > maxFaults || b.Tries >= maxTries {
			return store.Entry{}, since(open, err)
		}
		if waitErr := b.Wait(ctx); waitErr != nil {
			return store.Entry{}, fmt.Errorf("%w (%w)", waitErr, since(open, err))
		}
	}
}

// since returns the error of an update; open is that of an earlier write whose outcome is unknown, or
// nil. That write may have been applied, even if the store refused a later call.
func since(open, err error) error {
	switch {
	case open == nil:
		return err
	case store.Unapplied(err):
		return fmt.Errorf("%w; then: %w", open, &store.TextError{Err: err})
	case errors.Is(err, open):
		return err
	default:
		return fmt.Errorf("%w; then: %w", open, err)
	}
}

// Encode returns a record as JSON.
func Encode(record any) ([]byte, error) {
	b, err := json.Marshal(record)
	if err != nil { // for example, a time after the year 9999
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return b, nil
}

// Foreign is [store.ErrForeign] for a key, with the reason. It advises another place.
func Foreign(key, place string, why error) error {
	return fmt.Errorf("%w: key %q was not written by Firn: %w; use another %s, or remove the key", store.ErrForeign, key, why, place)
}

// Token draws a name that no other writer has. The operating system draws it: a source that the caller
// may seed could be the same in two processes, or copied with a process.
func Token() string { return rand.Text() }

func (r *Register) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Patience == 0 {
		return ctx, func() {}
	}
	return turns.WithTimeout(ctx, r.Time, r.Patience)
}

// minBackoff is the mean wait after the first try; it doubles up to maxBackoff.
const (
	minBackoff = 2 * time.Millisecond
	maxBackoff = 250 * time.Millisecond
)

// A Backoff waits between tries: twice as long each time, with jitter against another collision.
type Backoff struct {
	Time   firn.TimeSource
	Random func() uint64
	Tries  int // how often it has waited
}

// Next returns the next wait: 2 ms on average at first, at most 375 ms.
func (b *Backoff) Next() time.Duration {
	d := min(minBackoff<<min(b.Tries, 16), maxBackoff)
	b.Tries++
	return d/2 + time.Duration(b.Random()%uint64(d))
}

// Wait waits that long, or returns why ctx ended.
func (b *Backoff) Wait(ctx context.Context) error {
	err := b.Time.Sleep(ctx, b.Next())
	return cmp.Or(store.ContextError(ctx), err)
}
