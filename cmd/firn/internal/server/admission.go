package server

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
)

// bounded refuses requests that bring more than they may. Nothing that is asked of the
// server needs much; what is declared too long is refused before it is read. RPCs bound
// their messages themselves, and say so in the way of their protocol.
func bounded(front *issuing.Front, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && !rpc.Owns(r.URL.Path) {
			limit := front.MaxBody()
			if r.ContentLength > int64(limit) {
				w.Header().Set("Connection", "close") // the rest is not worth reading
				httpapi.Fail(w, front.Refuse(failure.New(http.StatusRequestEntityTooLarge, "body_too_large",
					"a request of %d bytes is above the limit of %d (limits.body)", r.ContentLength, limit)))
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, int64(limit))
		}
		next.ServeHTTP(w, r)
	})
}

// crowded refuses requests when as many are under way as there may be connections: over
// HTTP/2 one connection carries hundreds, whose answers it need not take. Those that ask
// for the health of the server have as many places of their own.
func crowded(front *issuing.Front, next http.Handler) http.Handler {
	var asked, probed atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under := &asked
		switch r.URL.Path {
		case "/livez", "/readyz", "/metrics":
			under = &probed
		}
		n, limit := under.Add(1), front.MaxConnections()
		defer under.Add(-1)
		if n > int64(limit) {
			f := failure.New(http.StatusServiceUnavailable, "overloaded",
				"%d requests are under way, which is the limit (limits.connections): try again, or another server", limit)
			f.Retry = time.Second
			httpapi.Fail(w, front.Refuse(f))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guarded shows metrics to administrators, and to everyone where that is configured.
func guarded(front *issuing.Front, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := front.Metrics(r); err != nil {
			httpapi.Fail(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// warnExposed says that a listener which others can reach refuses all of them.
func (s *Server) warnExposed(at net.Addr) {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsLoopback() || !s.service.LocalOnly() {
		return
	}
	s.log.Warn("requests from other machines are refused: the configuration has neither tokens nor anonymous",
		"listener", at.String(), "advice", "make a token with firn token, or write anonymous: [\"*\"] to serve everyone who can reach it")
}
