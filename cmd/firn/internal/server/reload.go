package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// told logs how reading something again ended.
func (s *Server) told(what, cause string, err error, details ...any) {
	details = append([]any{"cause", cause}, details...)
	s.audit.Done("reload "+what, err, details...)
	if err != nil {
		s.log.Error("not in force: "+what, append(details, "error", err)...)
		return
	}
	s.log.Info("in force: "+what, details...)
}

// inForce shows that the configuration in force is the one of the file.
func (s *Server) inForce() {
	s.metrics.successful.Set(1)
	s.metrics.succeeded.SetToCurrentTime()
}

// Apply serves what cfg says from now on, without a gap; see [issuing.Service.Apply].
// What belongs to the process, as the store and the addresses, cannot change: such an
// error names the key; nor can the last tokens or namespaces go unless that is said
// (tokens: [], namespaces: {}). After an error everything is as it was.
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
		{"audit.file", cfg.Audit.File != old.Audit.File},
		{"tls", (cfg.TLS == nil) != (old.TLS == nil)},
	} {
		if fixed.changed {
			return fmt.Errorf("%s cannot change while the server runs: put it back, or start the server anew", fixed.key)
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
	s.maxConnections.Store(int64(cfg.Limits.MaxConnections()))
	s.cfg.Store(&cfg)
	return nil
}

// limited reports whether a configuration says who may have ids.
func limited(cfg settings.Config) bool { return len(cfg.Tokens)+len(cfg.Anonymous) > 0 }

// errUnlimited is a configuration that would open to all local callers what others were kept from.
var errUnlimited = errors.New("tokens: the configuration in force has tokens or anonymous, and this one has neither, " +
	"so that any caller on this machine might do anything: put them back, or write tokens: [] if that is meant")

// errUndeclared is a configuration that would have namespaces of any name, where only some were.
var errUndeclared = errors.New("namespaces: the configuration in force has some, and this one none, so that any name would be made " +
	"on first use: put them back, or write namespaces: {} if that is meant")

func (s *Server) settings() settings.Config { return *s.cfg.Load() }
