// Package failure maps every error of a request to a status and a code, for all protocols.
package failure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// A Failure is an error in the form that clients see. Status is an HTTP status; other protocols
// derive theirs from it.
type Failure struct {
	Status  int
	Code    string        // a stable word for programs: lower case, with underscores
	Message string        // for people: the value, the limit and the way out
	Retry   time.Duration // when to retry; 0: a retry makes no sense

	cause error // the error behind the message, for the log; may be nil
}

func (f *Failure) Error() string { return f.Message }

// LogValue implements [slog.LogValuer]: the log has details that clients do not get.
func (f *Failure) LogValue() slog.Value {
	if f.cause != nil {
		return slog.StringValue(f.cause.Error())
	}
	return slog.StringValue(f.Message)
}

// New returns a failure.
func New(status int, code, format string, args ...any) *Failure {
	return &Failure{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// BadRequest returns a failure with status 400.
func BadRequest(code, format string, args ...any) *Failure {
	return New(http.StatusBadRequest, code, format, args...)
}

// MaxFields bounds the header fields of a request: each is a multiple of its bytes in memory.
const MaxFields = 100

// TooManyFields returns the failure of a request with n header fields, above [MaxFields].
func TooManyFields(n int) *Failure {
	return New(http.StatusRequestHeaderFieldsTooLarge, "bad_request", "the request has %d header fields, at most %d are allowed", n, MaxFields)
}

// Mismatch is the code of requests that fail because the store has something else under a name than the configuration says.
const Mismatch = "store_mismatch"

// retry is when to retry if a server cannot issue ids now.
const retry = time.Second

// Of returns the failure for the client. If err is or wraps a Failure, that is returned; else the
// library's errors decide.
func Of(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	status, code := classify(err)
	f = &Failure{Status: status, Code: code, Message: Public(err), cause: err}
	if status == http.StatusServiceUnavailable && code != Mismatch {
		f.Retry = retry
	}
	return f
}

// OfDeadline returns err, or, if the deadline that the caller gave its request ended it, a failure that says so. The ctx is
// the request's, without time-outs of the server. That the caller did not wait is no fault of the server, so the code is
// that of callers who leave; the status lets clients ask another server.
func OfDeadline(ctx context.Context, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	f := New(http.StatusServiceUnavailable, codeGone,
		"the request's own time-out has passed (Firn-Timeout-Ms, Connect-Timeout-Ms, grpc-timeout): allow more time or ask for fewer ids; "+
			"if a second does not suffice for one id, look at the server's store")
	f.Retry, f.cause = retry, err
	return f
}

func classify(err error) (status int, code string) {
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return http.StatusRequestEntityTooLarge, "body_too_large"
	case errors.Is(err, firn.ErrClockBack): // first, as it may wrap why no other worker could be acquired
		return http.StatusServiceUnavailable, "clock_back"
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound, "not_found"
	case errors.Is(err, firn.ErrFence):
		return http.StatusServiceUnavailable, "fence_reached"
	case errors.Is(err, segment.ErrExhausted), errors.Is(err, sequence.ErrExhausted), errors.Is(err, numbering.ErrExhausted):
		return http.StatusServiceUnavailable, "exhausted"
	case errors.Is(err, sequence.ErrSetBack):
		return http.StatusServiceUnavailable, "set_back"
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, "timed_out"
	case errors.Is(err, context.Canceled):
		return statusGone, codeGone
	case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrTaken), errors.Is(err, segment.ErrStripe):
		// The store and the configuration differ; the request is not to blame. So this comes before ErrSyntax and ErrRange.
		return http.StatusServiceUnavailable, Mismatch
	case errors.Is(err, firn.ErrTimeExhausted):
		return http.StatusServiceUnavailable, "time_exhausted"
	case errors.Is(err, firn.ErrClosed):
		return http.StatusServiceUnavailable, "shutting_down"
	case errors.Is(err, store.ErrUnavailable):
		return http.StatusServiceUnavailable, "store_unavailable"
	case errors.Is(err, segment.ErrNotConsecutive):
		return http.StatusBadRequest, "not_consecutive"
	case errors.Is(err, firn.ErrSyntax), errors.Is(err, firn.ErrRange):
		return http.StatusBadRequest, "bad_request"
	}
	return http.StatusInternalServerError, "internal"
}

// statusGone marks a request whose client has disconnected, in logs and metrics only. The number
// is nginx's.
const statusGone = 499

// codeGone is the code of requests whose callers did not wait.
const codeGone = "canceled"
