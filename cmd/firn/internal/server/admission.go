package server

import (
	"net"
	"net/http"

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
