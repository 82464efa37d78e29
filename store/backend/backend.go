// Package backend is for authors of stores, such as redisstore; programs that use a store do not need
// it. It draws revisions at random, encodes registers as text, ends calls with their context, bounds listings
// and the age of connections, and adds the place to errors.
package backend

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
)

// callTimeout bounds a call whose context does not end earlier.
const callTimeout = 10 * time.Second

// ConnectionLife is 5 s, the age at which a connection to a server ends. The server's name may lead to another one by
// then, while this one still answers with what was true before: a holder would find its slot here, while
// newcomers wait on the other server and find nothing. They wait 9 s longer than the time between two looks, and a look
// may take 2 s.
const ConnectionLife = 5 * time.Second

// Write makes a write of an entry with a random revision, never 0, and a copy of value, never nil. It
// returns the entry as written, and refuses a key or a value out of bounds.
//
// The operating system draws the revision. Copies of this process in cloned machines would draw the
// same numbers from a seeded generator, and overwrite each other's registers as their own.
func Write(key string, value []byte, write func(store.Entry) (life string, err error)) (store.Entry, error) {
	var drawn [8]byte
	rand.Read(drawn[:]) // never fails
	e := store.Entry{Key: key, Value: append([]byte{}, value...), Revision: store.Revision(binary.NativeEndian.Uint64(drawn[:])>>1 | 1)}
	err := cmp.Or(store.CheckKey(key), store.CheckValue(key, value))
	if err == nil {
		e.Life, err = write(e)
	}
	if err != nil {
		return store.Entry{}, err
	}
	return e, nil
}

// First returns the only entry of a list, or [store.ErrNotFound] if the list is empty.
func First(list []store.Entry, err error) (store.Entry, error) {
	if err == nil && len(list) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Entry{}, err
	}
	return list[0], nil
}

// Digits writes a revision as 16 hexadecimal digits.
func Digits(r store.Revision) string { return fmt.Sprintf("%016x", uint64(r)) }

// Encode writes a register as text: its revision, a line feed, its value.
func Encode(r store.Revision, value []byte) string { return Digits(r) + "\n" + string(value) }

// Decode parses the text that Encode writes and refuses everything else. If another program wrote the
// content, the error advises the user to choose another place (a prefix, a key).
func Decode(key, text, place string) (store.Entry, error) {
	digits, value, ok := strings.Cut(text, "\n")
	revision, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil || revision == 0 || Digits(store.Revision(revision)) != digits {
		return store.Entry{}, fmt.Errorf("%w: %.99q was not written by Firn, or does not begin with 16 lower-case hexadecimal digits other than 0: use another %s, or correct it", store.ErrRefused, key, place)
	}
	return store.Entry{Key: key, Value: []byte(value), Revision: store.Revision(revision)}, nil
}

// Calls are the calls of one store. Its client may ignore contexts while it waits.
type Calls struct {
	name     string
	classify func(error) (hint string, kind error)
	lanes    *Lanes
	servers  []string
	closed   atomic.Bool
}

// NewCalls returns the calls of the store called name, over lanes. Classify returns a hint and a kind. The servers are
// HOST:PORT, without credentials: an error that the store is unavailable names them, unless it names one already.
func NewCalls(name string, lanes *Lanes, classify func(error) (hint string, kind error), servers ...string) *Calls {
	return &Calls{name: name, classify: classify, lanes: lanes, servers: servers}
}

// Close refuses all later calls. The first Close ends the client.
func (c *Calls) Close(key string, end func() error) error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.Wrap("close", key, end())
}

// Wrap is [Wrap] for a nil error or one that classify knows.
func (c *Calls) Wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	hint, kind := c.classify(err)
	named := func(server string) bool { return strings.Contains(key+err.Error(), server) }
	if errors.Is(kindOf(err, kind), store.ErrUnavailable) && len(c.servers) > 0 && !slices.ContainsFunc(c.servers, named) {
		err = fmt.Errorf("server %s: %w", strings.Join(c.servers, ", "), err)
	}
	return Wrap(c.name, op, key, err, hint, kind)
}

// Get makes a call that reads one key.
func (c *Calls) Get(ctx context.Context, key string, read func(context.Context) (store.Entry, error)) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	return Do(ctx, c, "get", key, read)
}

// Swap makes a call that is a [Write].
func (c *Calls) Swap(ctx context.Context, key string, value []byte, swap func(ctx context.Context, e store.Entry) (life string, err error)) (store.Entry, error) {
	return Write(key, value, func(e store.Entry) (string, error) {
		return Do(ctx, c, "compare-and-swap", key, func(ctx context.Context) (string, error) { return swap(ctx, e) })
	})
}

// List makes a call that lists registers, at most four at a time: see [Lanes.List].
func (c *Calls) List(ctx context.Context, prefix string, list func(context.Context) ([]store.Entry, error)) ([]store.Entry, error) {
	return call(ctx, c, "list", prefix, c.lanes.enterListing, list)
}

// Do makes a call that ends with ctx, or after 10 s, and wraps its error. Do abandons a call whose
// context has ended: the client's own time-out ends the request in flight, and Do cancels the context
// of do, so that no other request follows.
func Do[T any](ctx context.Context, c *Calls, op, key string, do func(context.Context) (T, error)) (T, error) {
	return call(ctx, c, op, key, c.lanes.Enter, do)
}

// call is [Do] with the lane that enter takes. The lane is kept until do has ended.
func call[T any](ctx context.Context, c *Calls, op, key string, enter func(context.Context) (leave func(), err error),
	do func(context.Context) (T, error)) (none T, err error) {
	caller, made := ctx, false
	defer func() {
		left := !made || caller.Err() != nil && errors.Is(err, context.Canceled)
		if err == nil || kindOf(err, nil) != nil || !left {
			err = c.Wrap(op, key, err)
		} else { // it says nothing of the store
			err = &store.CallError{Store: c.name, Op: op, Key: key, Err: err}
		}
	}()
	if err := store.ContextError(ctx); err != nil {
		return none, err
	}
	made = true
	if c.closed.Load() {
		return none, fmt.Errorf("%w: the store is closed", store.ErrUnavailable)
	}
	ctx, cancel := Bound(ctx)
	defer cancel()
	leave, err := enter(ctx)
	if err != nil {
		return none, err
	}
	// Without the deadline: a client that fails at the same moment would hide this reason.
	awaited, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		func() {
			defer Rescue(&a.err)
			a.value, a.err = do(awaited)
		}()
		leave()
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, store.ContextError(ctx)
	}
}

// Bound returns a context that ends after 10 s at the latest, with a cause that says so.
func Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, callTimeout, bound{})
}

// A bound is the cause of a context of [Bound]: the caller's has not ended, so its deadline is not named.
type bound struct{ turns.Own }

func (bound) Error() string {
	return fmt.Sprintf("%v: no answer within %v", store.ErrUnavailable, callTimeout)
}

// Unwrap returns the kind.
func (bound) Unwrap() error { return store.ErrUnavailable }

// Wrap returns err as a [store.CallError]. It adds the kind, unless err is already one of package
// store's errors, and a hint if one is known.
func Wrap(where, op, key string, err error, hint string, kind error) error {
	hint = cmp.Or(hint, certificateHint(err))
	if kind = kindOf(err, kind); kind != nil && !errors.Is(err, kind) {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	return &store.CallError{Store: where, Op: op, Key: key, Err: err, Hint: hint}
}

// kindOf returns the error of package store that err is; otherwise the kind that a store has found.
func kindOf(err, found error) error {
	for _, kind := range []error{store.ErrNotFound, store.ErrConflict, store.ErrRefused, store.ErrUnavailable} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return found
}

// certificateHint recognizes errors of package x509 by their text: some clients pass on only that.
func certificateHint(err error) string {
	says := func(text string) bool { return strings.Contains(err.Error(), text) }
	switch {
	case says("certificate signed by unknown authority"):
		return "name the authority's certificate with tls_ca=FILE, in a URL of PostgreSQL with sslrootcert=FILE"
	case says("certificate is valid for"), says("certificate is not valid for any"), says("cannot validate certificate"):
		return "its certificate is for another name: use that, or tls_server_name=NAME"
	default:
		return ""
	}
}
