package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/internal/turns"
)

// The errors of a Store; test for them with [errors.Is].
var (
	// ErrNotFound: the key does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: not applied, as the key has another revision or others wrote it meanwhile.
	ErrConflict = errors.New("conflict")
	// ErrRefused: not applied, and a retry would not help: no permission, read-only, out of bounds,
	// foreign content.
	ErrRefused = errors.New("refused")
	// ErrUnavailable: the store is unreachable, locked, full, damaged or closed. The outcome of a write
	// is unknown, unless the error matches ErrRefused too: then it was not applied, but a later one may be.
	ErrUnavailable = errors.New("unavailable")
	// ErrForeign: the key holds something that Firn did not write. Firn leaves it as it is.
	ErrForeign = errors.New("foreign content")
)

// Unapplied reports whether err, from CompareAndSwap, says that the write was certainly not
// applied and never will be.
func Unapplied(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrRefused)
}

// A CallError is a failed call of a store. Every backend returns its errors as one. Its text is for
// logs: it contains keys, and whatever the store's client reported, with addresses and users. A program
// that answers unauthenticated clients builds its own text from the fields.
type CallError struct {
	Store string // the package: redisstore
	Op    string // what was called: get, compare-and-swap, list, read the time
	Key   string // of the register, or the name of the called object
	Err   error  // why, with its kind; never nil
	Hint  string // a way out, if one is known
}

func (e *CallError) Error() string {
	text := fmt.Sprintf("%s: %s %q: %v", e.Store, e.Op, e.Key, e.Err)
	switch {
	case strings.Contains(e.Hint, "\n"):
		text += "; " + e.Hint
	case e.Hint != "":
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// A TextError has the text of Err and matches Kind, which may be nil, and nothing else in Err's chain.
// It carries the error of an earlier call, whose outcome must not be taken for that of this one.
type TextError struct{ Kind, Err error }

func (e *TextError) Error() string { return e.Err.Error() }

// Unwrap returns the kind.
func (e *TextError) Unwrap() error { return e.Kind }

// ContextError returns nil while ctx lasts, and then the error a backend must give for a call whose
// context has ended: it matches ctx.Err(), which callers test for, and context.Cause(ctx), the reason.
// If the cause is the error of another store call, only its text is included: it does not describe the
// outcome of this call. If the store has ended its own call, as package backend does after 10 s, ctx.Err() is not
// matched.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case Unapplied(cause), errors.Is(cause, ErrNotFound):
		return fmt.Errorf("%w: %w", err, &TextError{Err: cause})
	case err == nil, turns.IsOwn(cause), errors.Is(cause, err):
		return cause
	default:
		return fmt.Errorf("%w: %w", err, cause)
	}
}
