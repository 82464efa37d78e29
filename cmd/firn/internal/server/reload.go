package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// retryLooks is after how many looks a configuration that could not be served is tried
// again: what was wrong may have been the store, or a file that it names.
const retryLooks = 15

const triedAgain = "tried again"

// A Watch says when the files that a server serves by are looked at again.
type Watch struct {
	Config string           // path of the configuration; empty without one
	Ticks  <-chan time.Time // when to look for changes: every few seconds
	Hangup <-chan os.Signal // when to read everything again
}

// Follow serves what the configuration and the files named in it say, as they change,
// until ctx ends. What cannot be read or served leaves what there is in force, and is
// logged with the reason.
func (s *Server) Follow(ctx context.Context, w Watch) {
	f := follower{server: s, path: w.Config}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.Ticks:
			f.look(ctx)
		case <-w.Hangup:
			f.again(ctx)
		}
	}
}

type follower struct {
	server *Server
	path   string
	files  watched
	known  bool  // files were settled once
	failed error // of the last configuration, nil if that is in force
	since  int   // looks since it failed
}

// look reads what has changed.
func (f *follower) look(ctx context.Context) {
	s := f.server
	s.audit.Flush()
	if f.path != "" {
		f.since++
		changed := f.files.changed(f.digest())
		switch {
		case changed && !f.known:
			f.known = true
			f.start(ctx)
		case changed:
			f.reload(ctx, "changed")
		case f.failed != nil && f.since >= retryLooks:
			f.reload(ctx, triedAgain)
		}
	}
	if s.certificates != nil {
		if changed, err := s.certificates.refresh(false); changed {
			s.told("certificates", "changed", err)
		}
	}
}

// start looks whether the file has changed since the server read it, at its start.
func (f *follower) start(ctx context.Context) {
	cfg, err := settings.Read(f.path)
	if err != nil || !reflect.DeepEqual(cfg, f.server.settings()) {
		f.reload(ctx, "changed")
	}
}

// again reads everything.
func (f *follower) again(ctx context.Context) {
	s := f.server
	if s.auditFile != nil {
		if err := s.auditFile.Reopen(); err != nil {
			s.log.Error("the audit log goes on in the file until now", "error", err)
		}
	}
	if f.path == "" {
		s.log.Info("SIGHUP: there is no configuration file to read again")
		return
	}
	f.known = true
	f.files.settle(f.digest())
	f.reload(ctx, "SIGHUP")
	if s.certificates != nil {
		if _, err := s.certificates.refresh(true); err != nil {
			s.told("certificates", "SIGHUP", err)
		}
	}
}

// digest returns one of all that a configuration is made of but the certificates.
func (f *follower) digest() [32]byte {
	return digest(append([]string{f.path}, f.server.settings().KeyFiles()...)...)
}

var errEmpty = errors.New("the file is empty, which would open the server to namespaces of any name: it may not have been written yet")

// reload reads the configuration and serves it.
func (f *follower) reload(ctx context.Context, cause string) {
	s := f.server
	f.since = 0
	sum, err := f.apply(ctx)
	details := []any{"file", f.path}
	if sum != "" {
		details = append(details, "sha256", sum) // says which of many versions it was
	}
	if ctx.Err() != nil {
		return // the end of the server is no fault of the file
	}
	if err != nil {
		s.metrics.reloads.WithLabelValues(resultFailed).Inc()
		s.metrics.successful.Set(0)
		if cause != triedAgain || f.failed.Error() != err.Error() { // once, and not every half minute
			s.told("configuration", cause, err, details...)
		}
		f.failed = err
		return
	}
	f.failed = nil
	s.inForce()
	s.metrics.reloads.WithLabelValues(resultOK).Inc()
	s.told("configuration", cause, nil, details...)
}

// apply reads the file and serves it. It returns the SHA-256 of what it has read.
func (f *follower) apply(ctx context.Context) (sum string, err error) {
	source, err := os.ReadFile(f.path)
	if err != nil {
		return "", fmt.Errorf("configuration: %w", err)
	}
	sum = fmt.Sprintf("%x", sha256.Sum256(source))
	if len(bytes.TrimSpace(source)) == 0 {
		return sum, fmt.Errorf("configuration %s: %w", f.path, errEmpty)
	}
	return sum, f.serve(ctx, source)
}

func (f *follower) serve(ctx context.Context, source []byte) error {
	cfg, err := settings.Parse(f.path, source)
	if err != nil {
		return err
	}
	// Before the keys are read: what changes from here on is a change at the next look.
	contents := [][]byte{source}
	for _, file := range cfg.KeyFiles() {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("configuration %s: key file: %w", f.path, err)
		}
		contents = append(contents, content)
	}
	if err := f.server.Apply(ctx, cfg); err != nil {
		return fmt.Errorf("configuration %s: %w", f.path, err)
	}
	f.files.settle(digestOf(contents...))
	return nil
}

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
// error names the key. After an error everything is as it was.
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
	var id *identity
	if cfg.TLS != nil && *cfg.TLS != s.certificates.current.Load().from {
		var err error
		if id, err = s.certificates.read(*cfg.TLS); err != nil {
			return err
		}
	}
	if err := s.service.Apply(ctx, cfg); err != nil {
		return err
	}
	if id != nil {
		s.certificates.replace(id)
	}
	s.maxConnections.Store(int64(cfg.Limits.MaxConnections()))
	s.cfg.Store(&cfg)
	return nil
}

func (s *Server) settings() settings.Config { return *s.cfg.Load() }
