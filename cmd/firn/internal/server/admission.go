package server

import (
	"net"
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// guarded serves metrics to administrators, or to everyone if so configured.
func guarded(reader issuing.Reader, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := reader.Metrics(r); err != nil {
			httpapi.Fail(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// warnExposed warns that a listener which other machines can reach refuses all of them.
func (s *Server) warnExposed(at net.Addr) {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsLoopback() || !s.service.LocalOnly() {
		return
	}
	s.log.Warn("requests from other machines are refused: the configuration has neither tokens nor anonymous",
		"listener", at.String(), "advice", "make a token with firn token, or write anonymous: [\"*\"] to serve everyone who can reach it")
}
