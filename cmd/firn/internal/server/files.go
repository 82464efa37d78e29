package server

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store"
)

// Examine returns what a server that listens on these addresses logs about its configuration at its start. firn doctor prints it,
// beside what [CheckFiles] finds.
func Examine(cfg settings.Config, listeners ...string) []store.Finding {
	on := slices.DeleteFunc(slices.Clone(listeners), func(at string) bool { return at == settings.Off })
	return append(examineDescriptors(cfg, len(on)), cfg.Examine(on...)...)
}

// CheckFiles reads what a configuration names outside of itself, as a server does at its start: certificates,
// the keys of veils, and the audit file, which it does not create. It returns what is doubtful about them, which a server
// logs. Its error has all mistakes with their places.
func CheckFiles(cfg settings.Config) (found []store.Finding, err error) {
	var errs []error
	if cfg.TLS != nil {
		id, err := (&certificates{wall: time.Now}).read(*cfg.TLS, cfg.At)
		if errs = append(errs, err); err == nil {
			found = append(id.found, id.ends(time.Now())...)
		}
	}
	if file := cfg.Audit.File; file != "" {
		if err := access.CheckAuditFile(file); err != nil {
			errs = append(errs, cfg.At(err, "audit", "file"))
		}
	}
	return found, errors.Join(append(errs, issuing.CheckKeys(cfg))...)
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
