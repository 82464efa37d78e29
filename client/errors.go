package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The errors to branch on, with [errors.Is]. After Close the error is [firn.ErrClosed]; when a context
// ends first, its cause. A call returns a lasting error at once.
var (
	// ErrUnknownNamespace: the servers have no such namespace (404). It lasts.
	ErrUnknownNamespace = errors.New("unknown namespace")
	// ErrDenied: the token is missing, wrong, or not for that namespace (401, 403). It lasts.
	ErrDenied = errors.New("denied")
	// ErrRequest: the servers reject the request, as for too many ids at once (400, 405, 413). It lasts.
	ErrRequest = errors.New("request refused")
	// ErrKind: the call does not support the kind of the namespace. It lasts.
	ErrKind = errors.New("unsupported kind")
	// ErrLimited: the servers limit the rate (429). [Error.RetryAfter] says how long.
	ErrLimited = errors.New("rate limited")
	// ErrUnavailable: no server gave ids in time. The error includes every server's [Error].
	ErrUnavailable = errors.New("servers unavailable")
)

var (
	// errAnswer: the answer does not hold the ids asked for. Callers get ErrUnavailable: another server
	// may answer correctly.
	errAnswer = errors.New("unusable answer")
	// errBehind: a server's ids are below those of another server.
	errBehind = errors.New("ids of this server go back and were dropped")
)

// An Error is what one server answered instead of ids, or why it did not answer. It
// matches one of the errors above.
type Error struct {
	Server     string        // its address
	Status     int           // of the answer, 0 without one
	Code       string        // the server's code for the error, "" if the answer is not a Firn server's
	Message    string        // the message beside the code
	RetryAfter time.Duration // how long the server asks the client to wait, 0 if it does not say
	Err        error         // what went wrong if the server answered no error
}

func (e *Error) Error() string {
	text := e.Server
	if e.Status != 0 {
		text += strings.TrimSuffix(fmt.Sprintf(": %d %s", e.Status, cmp.Or(e.Code, http.StatusText(e.Status))), " ")
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(" (again after %v)", e.RetryAfter)
	}
	return text
}

// Unwrap returns the error above that e matches, and e.Err.
func (e *Error) Unwrap() []error { return []error{e.sentinel(), e.Err} }

func (e *Error) sentinel() error {
	if errors.Is(e.Err, ErrKind) {
		return ErrKind
	}
	switch e.Status {
	case http.StatusNotFound:
		return ErrUnknownNamespace
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrDenied
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong:
		return ErrRequest
	case http.StatusTooManyRequests:
		return ErrLimited
	default:
		return ErrUnavailable
	}
}

// away reports whether the server itself is unavailable, not just the ids of one namespace.
func (e *Error) away() bool {
	switch e.Status {
	case 0:
		return !errors.Is(e.Err, errBehind)
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	case http.StatusServiceUnavailable:
		return slices.Contains([]string{"", "starting", "shutting_down", "too_many_connections"}, e.Code)
	case http.StatusOK: // it broke off
		return !errors.Is(e.Err, errAnswer) && !errors.Is(e.Err, ErrKind)
	default:
		return false
	}
}

// several are the errors of several servers, on one line.
type several []error

func (s several) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (s several) Unwrap() []error { return s }

// lasts reports whether it is useless to ask again soon.
func lasts(err error) bool {
	is := func(sentinel error) bool { return errors.Is(err, sentinel) }
	return slices.ContainsFunc([]error{ErrUnknownNamespace, ErrDenied, ErrRequest, ErrKind}, is)
}

// maxShown bounds how much of an answer an error repeats.
const maxShown = 200

// shown shortens foreign text and removes what would spoil a log.
func shown(text string) string {
	text = strings.TrimSpace(text)
	cut := ""
	if len(text) > maxShown {
		text, cut = text[:maxShown], "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return ' '
		}
		return r
	}, text) + cut
}
