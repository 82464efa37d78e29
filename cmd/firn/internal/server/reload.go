package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// logReload logs and audits the outcome of a reload.
func (s *Server) logReload(what, cause string, err error, details ...any) {
	details = append([]any{"cause", cause}, details...)
	s.audit.Done("reload "+what, err, details...)
	if err != nil {
		s.log.Error("not in force: "+what, append(details, "error", err)...)
		return
	}
	s.log.Info("in force: "+what, details...)
}

// inForce records in the metrics that the configuration file is in force.
func (s *Server) inForce() {
	s.metrics.successful.Set(1)
	s.metrics.succeeded.SetToCurrentTime()
}

// Apply puts cfg in force without interrupting service; see [issuing.Service.Apply].
// Settings of the process, such as the store and the addresses, cannot change: the error
// names the key. The last tokens or namespaces can go only explicitly (tokens: [],
// namespaces: {}). After an error the old configuration stays in force.
func (s *Server) Apply(ctx context.Context, cfg settings.Config) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	old := s.settings()
	for _, fixed := range []struct {
		key     string
		changed bool
	}{
		{"store", cfg.Store != old.Store},
		{"listen.http", cfg.Listen.HTTP != old.Listen.HTTP},
		{"listen.resp", cfg.Listen.RESP != old.Listen.RESP},
		{"listen.grpc", cfg.Listen.GRPC != old.Listen.GRPC},
		{"audit.file", cfg.Audit.File != old.Audit.File},
		{"tls", (cfg.TLS == nil) != (old.TLS == nil)},
	} {
		if fixed.changed {
			return fmt.Errorf("%s cannot change while the server runs: restore it, or restart the server", fixed.key)
		}
	}
	if limited(old) && !limited(cfg) && cfg.Tokens == nil {
		return errUnlimited
	}
	if len(old.Namespaces) > 0 && cfg.Namespaces == nil {
		return errUndeclared
	}
	var id *identity
	if cfg.TLS != nil && *cfg.TLS != s.certificates.current.Load().from {
		var err error
		if id, err = s.certificates.read(*cfg.TLS, cfg.At); err != nil {
			return err
		}
	}
	if err := s.service.Apply(ctx, cfg); err != nil {
		return err
	}
	if id != nil {
		s.certificates.replace(id)
	}
	if s.certificates != nil {
		s.certificates.place(cfg.At)
	}
	s.shares.Limit(s.sharesOf(cfg))
	s.cfg.Store(&cfg)
	return nil
}

// limited reports whether a configuration restricts who may have ids.
func limited(cfg settings.Config) bool { return len(cfg.Tokens)+len(cfg.Anonymous) > 0 }

// errUnlimited refuses a configuration that would lift all restrictions for local callers.
var errUnlimited = errors.New("tokens: the configuration in force has tokens or anonymous, and this one has neither, " +
	"so that any caller on this machine might do anything: put them back, or write tokens: [] if that is meant")

// errUndeclared refuses a configuration that would allow namespaces of any name, where the
// one in force allows only those declared.
var errUndeclared = errors.New("namespaces: the configuration in force has some, and this one none, so that any name would be made " +
	"on first use: put them back, or write namespaces: {} if that is meant")

func (s *Server) settings() settings.Config { return *s.cfg.Load() }
