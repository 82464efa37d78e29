package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

const (
	// retryLooks is the number of looks after which a failed configuration is tried again:
	// the cause may have been the store, or a file that the configuration names.
	retryLooks = 15
	// attended is how long the follower waits for a configuration to come into force
	// before it looks for other changes again.
	attended = time.Second
)

const triedAgain = "tried again"

// A Watch says when the server reads its files again.
type Watch struct {
	Config string           // path of the configuration; empty without one
	Ticks  <-chan time.Time // when to look for changes: every few seconds
	Hangup <-chan os.Signal // when to read everything again
	// Looked, if not nil, receives after each of these, once the changes found are in
	// force, refused or waiting for a worker.
	Looked chan<- struct{}
}

// Follow applies changes of the configuration and of the files named in it, until ctx ends.
// If a change cannot be read or served, Follow logs the reason, and the configuration in
// force stays. A configuration may have to wait for a worker; a newer one then replaces it.
func (s *Server) Follow(ctx context.Context, w Watch) {
	f := follower{server: s, path: w.Config}
	for {
		var ended <-chan outcome // of the current attempt
		if f.attempt != nil {
			ended = f.attempt.ended
		}
		select {
		case <-ctx.Done():
			f.abandon(ctx)
			return
		case <-w.Ticks:
			f.look(ctx)
			w.looked(ctx)
		case <-w.Hangup:
			f.again(ctx)
			w.looked(ctx)
		case out := <-ended:
			f.finish(ctx, out)
		}
	}
}

func (w Watch) looked(ctx context.Context) {
	if w.Looked == nil {
		return
	}
	select {
	case w.Looked <- struct{}{}:
	case <-ctx.Done():
	}
}

type follower struct {
	server  *Server
	path    string
	files   watched
	known   bool     // the files have been read completely once
	failed  error    // why the last configuration failed; nil if it is in force
	since   int      // looks since the last reload
	attempt *attempt // the current one, or nil
}

// An attempt is a configuration on its way into force.
type attempt struct {
	cause  string
	cancel context.CancelFunc
	ended  chan outcome // receives one
}

// An outcome is how an attempt ended.
type outcome struct {
	sum      string   // the SHA-256 of the file; empty if it could not be read
	contents [][]byte // of the file and of the files that it names, if now in force
	err      error
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
		case f.attempt == nil && f.failed != nil && f.since >= retryLooks:
			f.reload(ctx, triedAgain)
		}
	}
	if s.certificates != nil {
		if cause, said, err := s.certificates.refresh(); cause != "" && !said {
			s.logReload("certificates", cause, err)
		}
	}
}

// start reloads the configuration if its file has changed since the server started.
func (f *follower) start(ctx context.Context) {
	cfg, err := settings.Read(f.path)
	if err != nil || !reflect.DeepEqual(cfg, f.server.settings()) {
		f.reload(ctx, "changed")
	}
}

// again reads all files again.
func (f *follower) again(ctx context.Context) {
	s := f.server
	if s.auditFile != nil {
		if err := s.auditFile.Reopen(); err != nil {
			s.log.Error("cannot reopen the audit log: it continues in the current file", "error", err)
		}
	}
	if f.path == "" {
		s.log.Info("SIGHUP: there is no configuration file to reload")
		return
	}
	f.known = true
	f.files.settle(f.digest())
	f.reload(ctx, "SIGHUP")
	if s.certificates != nil {
		if err := s.certificates.reread(); err != nil {
			s.logReload("certificates", "SIGHUP", err)
		}
	}
}

// digest returns the digest of all files of the configuration except the certificates.
func (f *follower) digest() [32]byte {
	return digest(append([]string{f.path}, f.server.settings().KeyFiles()...)...)
}

// reload reads the configuration and applies it. It cancels an attempt that is still
// waiting. It returns when the configuration is in force or refused, or after attended.
func (f *follower) reload(ctx context.Context, cause string) {
	f.abandon(ctx)
	f.since = 0
	applying, cancel := context.WithCancel(ctx)
	a := &attempt{cause: cause, cancel: cancel, ended: make(chan outcome, 1)}
	f.attempt = a
	go func() { a.ended <- f.apply(applying) }()
	select {
	case out := <-a.ended:
		f.finish(ctx, out)
	case <-time.After(attended):
		f.server.metrics.successful.Set(0)
		f.server.log.Info("preparing a configuration; the current one stays in force meanwhile", "cause", cause, "file", f.path)
	}
}

// abandon cancels the current attempt and waits for its end.
func (f *follower) abandon(ctx context.Context) {
	if f.attempt == nil {
		return
	}
	f.attempt.cancel()
	out := <-f.attempt.ended
	if out.err == nil { // it succeeded before the cancellation
		f.finish(ctx, out)
		return
	}
	f.attempt = nil
	f.server.log.Info("configuration canceled: a newer one replaces it, or the server is shutting down", "file", f.path, "sha256", out.sum)
}

// finish records the outcome of an attempt.
func (f *follower) finish(ctx context.Context, out outcome) {
	s, a := f.server, f.attempt
	a.cancel()
	f.attempt = nil
	details := []any{"file", f.path}
	if out.sum != "" {
		details = append(details, "sha256", out.sum) // identifies the version of the file
	}
	if ctx.Err() != nil {
		return // a shutdown is not the file's fault
	}
	if out.err != nil {
		s.metrics.reloads.WithLabelValues(resultFailed).Inc()
		s.metrics.successful.Set(0)
		if a.cause != triedAgain || f.failed.Error() != out.err.Error() { // log the same failure once, not every half minute
			s.logReload("configuration", a.cause, out.err, details...)
		}
		f.failed = out.err
		return
	}
	f.failed = nil
	f.files.settle(digestOf(out.contents...))
	s.inForce()
	s.metrics.reloads.WithLabelValues(resultOK).Inc()
	s.logReload("configuration", a.cause, nil, details...)
	s.warnDoubtful()
}

// apply reads the file and serves it. It runs in a goroutine of its own, so it may read
// only those fields of the follower that never change.
func (f *follower) apply(ctx context.Context) (out outcome) {
	source, err := settings.ReadFile(f.path)
	if err != nil {
		out.err = fmt.Errorf("configuration: %w", err)
		return out
	}
	out.sum = fmt.Sprintf("%x", sha256.Sum256(source))
	out.contents, out.err = f.serve(ctx, source)
	return out
}

// serve applies a configuration, and returns the contents of its files.
func (f *follower) serve(ctx context.Context, source []byte) (contents [][]byte, err error) {
	cfg, err := settings.Parse(f.path, source)
	if err != nil {
		return nil, err
	}
	// Before Apply reads the keys: a later change is then found at the next look.
	contents = append(contents, source)
	for _, file := range cfg.KeyFiles() {
		content, err := settings.ReadFile(file)
		if err != nil {
			return nil, cfg.AtKeyFile(fmt.Errorf("key file: %w", err), file)
		}
		contents = append(contents, content)
	}
	err = f.server.Apply(ctx, cfg)
	if _, placed := errors.AsType[*settings.PlaceError](err); placed {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", f.path, err)
	}
	return contents, nil
}
