package server

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store"
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

// warnDoubtful logs what is doubtful about the configuration in force, or worth knowing, once the server serves.
func (s *Server) warnDoubtful() {
	listeners := s.addresses.Load()
	if listeners == nil {
		return
	}
	cfg := s.settings()
	for _, f := range Examine(cfg, *listeners...) {
		level := slog.LevelWarn
		if f.Verdict == store.Good {
			level = slog.LevelInfo
		}
		s.log.Log(context.Background(), level, f.Says, "advice", f.Advice)
	}
}
