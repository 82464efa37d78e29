package issuing

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// A Protocol is a protocol of requests; it is a label of metrics.
type Protocol uint8

// The protocols.
const (
	HTTP Protocol = iota
	RPC
	RESP
	Leaf
	TinyID
	CosID
	protocols // the number of protocols
)

func (p Protocol) String() string {
	return [...]string{"http", "rpc", "resp", "leaf", "tinyid", "cosid"}[p]
}

// A Front is the service as one protocol uses it: who is calling (caller.go), and ids for them (issue.go).
// A [Reader] answers the rest. A Front counts each request and its error once; the protocol measures how long
// requests take and reports it with Observe. Errors are or wrap ones that [failure.Of] knows.
type Front struct {
	service  *Service
	protocol Protocol
	seconds  prometheus.Observer
}

// Front returns the service for a protocol.
func (s *Service) Front(p Protocol) *Front {
	return &Front{service: s, protocol: p, seconds: s.metrics.seconds.WithLabelValues(p.String())}
}

// Limits are the limits in force.
type Limits struct {
	Batch       int // ids in one answer
	Body        int // bytes of a request
	Connections int // of each listener, and HTTP requests in flight
}

func limitsOf(l settings.Limits) Limits {
	return Limits{Batch: l.MaxBatch(), Body: l.MaxBody(), Connections: l.MaxConnections()}
}

// Limits returns the limits in force.
func (f *Front) Limits() Limits { return f.service.now.Load().bounds }

// Observe records how long a request took, or several that came together.
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
	f.service.metrics.requests.WithLabelValues("", f.protocol.String(), code).Inc()
}

// failed counts requests that have failed, and returns the failure for their client.
func (f *Front) failed(namespace string, requests int, err error) *failure.Failure {
	failed := failure.Of(err)
	f.service.metrics.requests.WithLabelValues(namespace, f.protocol.String(), failed.Code).Add(float64(requests))
	return failed
}

// denied counts and audits requests that their caller may not make.
func (f *Front) denied(who, from, what string, requests int, err error) *failure.Failure {
	failed := f.failed("", requests, err)
	f.service.audit.Denied(who, from, what, failed.Message)
	return failed
}
