package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
)

// The errors of a Store; test for them with [errors.Is].
var (
	// ErrNotFound: the key does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: not applied, because the key has another revision or other clients wrote it at the
	// same time.
	ErrConflict = errors.New("conflict")
	// ErrRefused: not applied, and a retry would not help: no permission, read-only, a key or a value
	// out of bounds, foreign content.
	ErrRefused = errors.New("refused")
	// ErrUnavailable: the store is unreachable, locked, full, damaged or closed. The outcome of a write
	// is then unknown.
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
// logs: it contains keys, and whatever the store's client reported, with addresses and users. [Public]
// returns text for everyone.
type CallError struct {
	Store string // the package: redisstore
	Op    string // what was called: get, compare-and-swap, list, read the time
	Key   string // of the register, or the name of the called object
	Err   error  // why, with its kind; never nil
	Hint  string // a way out, if one is known
}

func (e *CallError) Error() string {
	text := fmt.Sprintf("%s: %s %q: %v", e.Store, e.Op, e.Key, e.Err)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

func (e *CallError) public() string {
	switch {
	case errors.Is(e, ErrUnavailable):
		return "the store is unavailable"
	case errors.Is(e, ErrRefused):
		return "the store refused"
	case errors.Is(e, ErrNotFound):
		return ErrNotFound.Error()
	case errors.Is(e, ErrConflict):
		return ErrConflict.Error()
	case errors.Is(e, context.DeadlineExceeded):
		return "no answer of the store in time"
	default:
		return "the store failed"
	}
}

// Only returns an error with the text of err that matches kind and nothing else in err's chain; a nil
// kind matches nothing. It carries the error of an earlier call, whose outcome must not be taken for
// the outcome of this one.
func Only(kind, err error) error { return &only{kind, err} }

type only struct{ kind, err error }

func (o *only) Error() string { return o.err.Error() }
func (o *only) Unwrap() error { return o.kind }

// Public returns the text of an error without keys, addresses and users from a store or its client. It
// builds the text from the parts of err: it replaces each [CallError] by its kind of failure, and
// likewise every error whose type is neither Firn's nor a text-only type of the standard library.
func Public(err error) string {
	switch e := err.(type) { //nolint:errorlint // of this error itself: its parts come after
	case *CallError:
		return e.public()
	case *only:
		return Public(e.err)
	}
	if !plain(err) {
		return "an error that only the log shows"
	}
	text := err.Error()
	for _, part := range parts(err) {
		text = strings.ReplaceAll(text, part.Error(), Public(part))
	}
	return text
}

func parts(err error) []error {
	switch e := err.(type) { //nolint:errorlint // as errors.Is walks
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if part := e.Unwrap(); part != nil {
			return []error{part}
		}
	}
	return nil
}

// plain reports whether Firn wrote the text of an error, apart from its parts.
func plain(err error) bool {
	if _, ok := err.(*http.MaxBytesError); ok { //nolint:errorlint // of this error itself
		return true
	}
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch path := t.PkgPath(); path {
	case "errors", "fmt", "context":
		return true
	default:
		return path == module || strings.HasPrefix(path, module+"/")
	}
}

const module = "github.com/firn-id/firn"

// ContextError returns nil while ctx lasts. Afterwards it returns the error a backend must give for a
// call whose context has ended: it matches ctx.Err(), which callers test for, and context.Cause(ctx),
// which gives the reason. If the cause is the error of another store call, only its text is included:
// it does not describe the outcome of this call.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case Unapplied(cause), errors.Is(cause, ErrNotFound):
		return fmt.Errorf("%w: %w", err, Only(nil, cause))
	case err == nil, errors.Is(cause, err):
		return cause
	default:
		return fmt.Errorf("%w: %w", err, cause)
	}
}
