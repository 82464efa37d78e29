package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The sentinels a caller branches on with [errors.Is]. After Close the error is
// [firn.ErrClosed]; when a context ends first, its cause.
var (
	// ErrUnknownNamespace: the servers have no such namespace (404). It lasts, so
	// a call returns it at once.
	ErrUnknownNamespace = errors.New("client: unknown namespace")
	// ErrDenied: the token is missing, wrong, or not for that namespace (401, 403). It lasts.
	ErrDenied = errors.New("client: denied")
	// ErrRequest: the servers reject the request, as for too many ids at once
	// (400, 405, 413). It lasts.
	ErrRequest = errors.New("client: request refused")
	// ErrKind: the call does not support the kind of the namespace; usually a *[KindError]. It lasts.
	ErrKind = errors.New("client: kind of namespace")
	// ErrLimited: the servers limit the rate (429). [Error.RetryAfter] says how long.
	ErrLimited = errors.New("client: rate limited")
	// ErrUnavailable: no server gave ids in the time that the call may wait.
	ErrUnavailable = errors.New("client: servers unavailable")
	// ErrAnswer: the answer does not hold ids, or not the ids asked for. Such errors
	// match ErrUnavailable too, since another server may answer correctly.
	ErrAnswer = errors.New("client: unusable answer")
)

// An Error is the error that one server answered, or why it gave no answer. It
// matches one of the sentinels.
type Error struct {
	Server     string        // its address
	Status     int           // of the answer, 0 without one
	Code       string        // the server's code for the error, "" if the answer is not a Firn server's
	Message    string        // the message beside the code
	RetryAfter time.Duration // how long the server asks the client to wait, 0 if it does not say
	Err        error         // what went wrong if there is no such answer
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Server)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": %d", e.Status)
		if e.Code == "" {
			b.WriteString(strings.TrimSuffix(" "+http.StatusText(e.Status), " "))
		} else {
			b.WriteString(" " + e.Code)
		}
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, " (again after %v)", e.RetryAfter)
	}
	return b.String()
}

// Unwrap returns what went wrong if there is no answer.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of the answer.
func (e *Error) Is(target error) bool { return target == e.sentinel() }

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

// away reports whether the server itself is unavailable, not just the ids of one
// namespace.
func (e *Error) away() bool {
	switch e.Status {
	case 0:
		return !errors.Is(e.Err, errBehind)
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	case http.StatusServiceUnavailable:
		switch e.Code {
		case "", "starting", "shutting_down", "too_many_connections":
			return true
		}
		return false
	case http.StatusOK: // it broke off
		return !errors.Is(e.Err, ErrAnswer) && !errors.Is(e.Err, ErrKind)
	default:
		return false
	}
}

// A KindError says that a call does not support the kind of a namespace.
type KindError struct {
	Namespace string
	Kind      string
	Why       string // and what to do instead
}

func (e *KindError) Error() string {
	return fmt.Sprintf("namespace %q is of kind %s: %s", e.Namespace, e.Kind, e.Why)
}

// Is reports whether target is [ErrKind].
func (e *KindError) Is(target error) bool { return target == ErrKind }

// An UnavailableError says that no server gave ids in the time that a call may wait.
type UnavailableError struct {
	Namespace string
	Waited    time.Duration
	Err       error // why: the errors of every server tried last, joined; nil while the first has not answered
}

func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("client: no server gave ids of %q within %v", e.Namespace, e.Waited)
	if e.Err == nil {
		return s + ": none has answered yet"
	}
	return s + ": " + e.Err.Error()
}

// Is reports whether target is [ErrUnavailable].
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns e.Err.
func (e *UnavailableError) Unwrap() error { return e.Err }

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

// lasts reports whether asking again soon is useless.
func lasts(err error) bool {
	for _, sentinel := range []error{ErrUnknownNamespace, ErrDenied, ErrRequest, ErrKind} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}
