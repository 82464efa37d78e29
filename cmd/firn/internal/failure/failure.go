// Package failure maps every error of a request to a status and a code, for all protocols, and words what errors say of names.
package failure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
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

// After returns f with when to retry.
func (f *Failure) After(retry time.Duration) *Failure {
	f.Retry = retry
	return f
}

// BadRequest returns a failure with status 400.
func BadRequest(code, format string, args ...any) *Failure {
	return New(http.StatusBadRequest, code, format, args...)
}

// RetryAfter returns when to retry as the header Retry-After has it: in whole seconds, rounded up.
func RetryAfter(retry time.Duration) string { return strconv.Itoa(int(math.Ceil(retry.Seconds()))) }

// MaxFields bounds the header fields of a request: each is a multiple of its bytes in memory.
const MaxFields = 100

// TooManyFields returns the failure of a request with n header fields, above [MaxFields].
func TooManyFields(n int) *Failure {
	return New(http.StatusRequestHeaderFieldsTooLarge, "bad_request", "the request has %d header fields, at most %d are allowed", n, MaxFields)
}

// Joining is the code of requests to a pool that the server has no worker of yet.
const Joining = "joining"

// Mismatch is the code of requests that fail because the store has something else under a name than the configuration says.
const Mismatch = "store_mismatch"

// retry is when to retry if a server cannot issue ids now.
const retry = time.Second

// Of returns the failure for the client. If err is or wraps a Failure, that is returned; else the
// library's errors decide.
func Of(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	status, code := classify(err)
	f := &Failure{Status: status, Code: code, Message: Public(err), cause: err}
	if status == http.StatusServiceUnavailable && !slices.Contains(lasting, code) {
		f.Retry = retry
	}
	return f
}

// Veiled is [Of] for a caller from whom a veil hides worker, time and traffic: why the server cannot issue ids is left out.
func Veiled(err error) *Failure {
	f := Of(err)
	if f.cause == nil && f.Code != Joining || f.Code == codeGone {
		return f // of the request itself
	}
	f = &Failure{f.Status, f.Code, f.Message, f.Retry, err}
	switch {
	case f.Code == "exhausted":
		f.Message = "the namespace has fewer ids left than this request needs"
	case f.Status >= http.StatusInternalServerError:
		f.Message = "ids cannot be issued now; callers that may unveil them see why"
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
			"if a second does not suffice for one id, look at the server's store").After(retry)
	f.cause = err
	return f
}

// GaveUp reports whether an error is that of a request that ended before its answer, by its client or its time-out.
func GaveUp(err error) bool {
	if err == nil {
		return false
	}
	code := Of(err).Code
	return code == codeGone || code == codeTimedOut
}

// lasting are codes of failures that end with a change of the configuration or the store only, or with a period.
var lasting = []string{Mismatch, "exhausted", "time_exhausted"}

// classes are the library's errors in the order in which they decide: one may wrap another.
var classes = []struct {
	is     error
	status int
	code   string
}{
	{firn.ErrClockBack, http.StatusServiceUnavailable, "clock_back"}, // first, as it may wrap why no other worker could be acquired
	{store.ErrNotFound, http.StatusNotFound, "not_found"},
	{firn.ErrFence, http.StatusServiceUnavailable, "fence_reached"},
	{segment.ErrExhausted, http.StatusServiceUnavailable, "exhausted"},
	{sequence.ErrExhausted, http.StatusServiceUnavailable, "exhausted"},
	{numbering.ErrExhausted, http.StatusServiceUnavailable, "exhausted"},
	{store.ErrSetBack, http.StatusServiceUnavailable, "set_back"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, codeTimedOut},
	{context.Canceled, StatusGone, codeGone},
	// The store and the configuration differ; the request is not to blame. So these come before ErrSyntax and ErrRange.
	{store.ErrForeign, http.StatusServiceUnavailable, Mismatch},
	{store.ErrTaken, http.StatusServiceUnavailable, Mismatch},
	{segment.ErrStripe, http.StatusServiceUnavailable, Mismatch},
	{firn.ErrTimeExhausted, http.StatusServiceUnavailable, "time_exhausted"},
	{firn.ErrClosed, http.StatusServiceUnavailable, "shutting_down"},
	{store.ErrUnavailable, http.StatusServiceUnavailable, "store_unavailable"},
	{segment.ErrNotConsecutive, http.StatusBadRequest, "not_consecutive"},
	{firn.ErrSyntax, http.StatusBadRequest, "bad_request"},
	{firn.ErrRange, http.StatusBadRequest, "bad_request"},
}

func classify(err error) (status int, code string) {
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return http.StatusRequestEntityTooLarge, "body_too_large"
	}
	for _, c := range classes {
		if errors.Is(err, c.is) {
			return c.status, c.code
		}
	}
	return http.StatusInternalServerError, "internal"
}

// StatusGone marks a request whose client has disconnected, in logs and metrics only. The number
// is nginx's.
const StatusGone = 499

const (
	// codeGone is the code of requests whose callers did not wait.
	codeGone = "canceled"
	// codeTimedOut is that of requests that the server ended.
	codeTimedOut = "timed_out"
)
