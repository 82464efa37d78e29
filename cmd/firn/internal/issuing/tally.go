package issuing

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// This file counts the requests of a protocol, audits those that are denied, and logs internal errors.

// Observe records how long a request took, or several that came together. The protocol measures it.
func (f *Front) Observe(d time.Duration) { f.seconds.Observe(d.Seconds()) }

// Refuse counts a request that failed before it reached a namespace, such as an unreadable
// one, and returns the failure for the client.
func (f *Front) Refuse(err error) *failure.Failure { return f.failed("", 1, err) }

// Answered counts a request without a namespace, by the HTTP status of its answer. Denied
// requests are counted already.
func (f *Front) Answered(status int) {
	code := "ok"
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return
	case status == http.StatusMethodNotAllowed:
		code = "method_not_allowed"
	case status == http.StatusTooManyRequests:
		code = "rate_limited"
	case status == http.StatusServiceUnavailable:
		code = "store_unavailable"
	case status >= http.StatusInternalServerError:
		code = "internal"
	case status >= http.StatusBadRequest:
		code = "bad_request"
	}
	f.service.metrics.count("", f.protocol, code, 1)
}

// failed counts requests that have failed, and returns the failure for their client.
func (f *Front) failed(namespace string, requests int, err error) *failure.Failure {
	failed := failure.Of(err)
	if failed.Code == "internal" || failed.Code == failure.Mismatch {
		f.service.internal.log(namespace, f.protocol, failed)
	}
	f.service.metrics.count(namespace, f.protocol, failed.Code, requests)
	return failed
}

// denied counts and audits requests that their caller may not make.
func (f *Front) denied(who, from, what string, requests int, err error) *failure.Failure {
	failed := f.failed("", requests, err)
	f.service.audit.Denied(who, from, what, failed.Message)
	return failed
}

const (
	// internalInterval is how often an internal error is logged: clients repeat their requests.
	internalInterval = 10 * time.Second
	// maxInternal bounds the different ones that are logged in an interval.
	maxInternal = 20
)

// internalErrors logs errors that are faults of Firn, of what is in the store, or of the configuration. Their clients only learn that the log
// has the details.
type internalErrors struct {
	to    *slog.Logger
	clock func() time.Duration

	mu      sync.Mutex
	since   time.Duration // when the interval began
	logged  map[string]bool
	omitted int // since the latest record
}

func (e *internalErrors) log(namespace string, p Protocol, f *failure.Failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.clock(); e.logged == nil || now-e.since >= internalInterval {
		e.since, e.logged = now, map[string]bool{}
	}
	text := namespace + " " + f.LogValue().String()
	if e.logged[text] || len(e.logged) >= maxInternal {
		e.omitted++
		return
	}
	e.logged[text] = true
	says := "internal error"
	if f.Code == failure.Mismatch {
		says = "the store has something else under this name than the configuration says"
	}
	e.to.Error(says, "protocol", p.String(), "namespace", namespace, "error", f, "omitted", e.omitted)
	e.omitted = 0
}
