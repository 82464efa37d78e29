package server

import (
	"net/http"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// probes are the paths of requests that are answered also when the server is full: an overloaded server must not be
// restarted, and metrics say why it is full.
var probes = map[string]share.Resource{
	"/livez": share.Probes, "/readyz": share.Probes, "/metrics": share.Metrics, "/grpc.health.v1.Health/Check": share.Probes,
}

// limitInFlight refuses requests when as many are in flight as connections are allowed: one
// HTTP/2 connection carries hundreds, and its client need not read the answers. Health and
// metrics requests have limits of their own.
func limitInFlight(front *issuing.Front, shares *share.Shares, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under, probe := probes[r.URL.Path]
		if !probe {
			under = share.Requests
		}
		client := share.In(r.Context())
		if client == nil { // only without a listener of ours
			var leave func()
			client, leave = shares.OfRequest(r)
			defer leave()
			r = r.WithContext(share.With(r.Context(), client))
		}
		if r.Context().Value(spareKey{}) != nil {
			w.Header().Set("Connection", "close")
			if !probe {
				refuse(w, r, client, front.Refuse(client.Refusal(share.HTTPConnections)))
				return
			}
		}
		if n := fields(r.Header); n > failure.MaxFields {
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // do not wait for a body
			refuse(w, r, client, front.Refuse(failure.TooManyFields(n)))
			return
		}
		if !client.Take(under, 1) {
			refuse(w, r, client, front.Refuse(client.Refusal(under)))
			return
		}
		defer client.Give(under, 1)
		if r.ProtoMajor == 2 { // a connection has many; those of HTTP/1 took their turn when they were read
			client.Turn(true)
			if r.Context().Err() != nil {
				return // reset by its client
			}
		}
		next.ServeHTTP(w, r)
		flush(w, r)
	})
}

// refuse answers a request that is not in flight. Over HTTP/2 such an answer occupies memory until the client reads it, so
// each client has its share of them, and above that loses its request without an answer.
func refuse(w http.ResponseWriter, r *http.Request, client *share.Client, why *failure.Failure) {
	if !client.Take(share.Refusals, 1) {
		panic(http.ErrAbortHandler)
	}
	defer client.Give(share.Refusals, 1)
	fail(w, r, why)
	flush(w, r)
}

// flush waits over HTTP/2 until the client's windows admit the answer. Without it, small answers would wait after the
// handler has returned, where nothing counts them.
func flush(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 {
		_ = http.NewResponseController(w).Flush() // the client may have gone
	}
}

func fields(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}
