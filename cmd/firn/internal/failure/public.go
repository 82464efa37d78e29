package failure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/firn-id/firn/store"
)

// Public returns the text of an error without keys, addresses and users from a store or its client, and without fingerprints of keys. It
// builds the text from the parts of err: it replaces each [store.CallError] by its kind of failure, and
// every error whose type is neither Firn's nor a text-only type of the standard library by a fixed text.
func Public(err error) string {
	switch e := err.(type) { //nolint:errorlint // looks at this error alone; its parts follow below
	case *store.CallError:
		return kindOf(e)
	case *store.TextError:
		return Public(e.Err)
	case *store.TakenError:
		if e.What == "key" { // both values are fingerprints
			return fmt.Sprintf("the counter %q has another key %s, and ids could repeat: use another name, or the key of those who use it", e.Counter, e.Key)
		}
	case interface{ Public() error }: // says which part of it is for clients
		return Public(e.Public())
	}
	if !plain(err) {
		return "the server's log has the error"
	}
	if err == context.DeadlineExceeded { //nolint:errorlint // looks at this error alone; its parts follow below
		return "no answer within the server's own time: retry; if it remains, look at the store"
	}
	text := err.Error()
	for _, part := range parts(err) {
		if hidden := part.Error(); hidden != "" {
			text = strings.ReplaceAll(text, hidden, Public(part))
		}
	}
	return text
}

// kindOf returns a text for the kind of a failed store call.
func kindOf(err *store.CallError) string {
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return "the store is unavailable"
	case errors.Is(err, store.ErrRefused):
		return "the store refused"
	case errors.Is(err, store.ErrNotFound):
		return store.ErrNotFound.Error()
	case errors.Is(err, store.ErrConflict):
		return store.ErrConflict.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "the store did not answer in time"
	default:
		return "the store failed"
	}
}

// parts returns the errors that err wraps directly.
func parts(err error) []error {
	switch e := err.(type) { //nolint:errorlint // errors.Is walks the chain in the same way
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
	if _, ok := err.(*http.MaxBytesError); ok { //nolint:errorlint // looks at this error alone
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
