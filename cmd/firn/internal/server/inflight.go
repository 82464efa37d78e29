package server

import (
	"net/http"

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
				fail(w, r, front.Refuse(client.Refusal(share.HTTPConnections)))
				return
			}
		}
		if !client.Take(under, 1) {
			fail(w, r, front.Refuse(client.Refusal(under)))
			return
		}
		defer client.Give(under, 1)
		next.ServeHTTP(w, r)
	})
}
