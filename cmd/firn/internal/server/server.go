// Package server is the issuing service: namespaces over leased generators,
// and the HTTP interface to them.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// maxDynamic bounds the namespaces made on first use, each of which has
// metrics of its own.
const maxDynamic = 10_000

// Time-outs, so that slow clients cannot hold the server.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 15 * time.Second
	closeTimeout  = 5 * time.Second
	maxHeader     = 16 << 10
	maxBody       = 64 << 10
)

// Server issues ids. Make one with [New].
type Server struct {
	cfg     Config
	store   store.Store
	log     *slog.Logger
	batch   int
	dynamic bool // namespaces are made on first use

	mu         sync.RWMutex // guards the maps
	namespaces map[string]*namespace
	pools      map[string]*pool

	draining atomic.Bool
	metrics  *metrics
}

// A namespace is a named source of ids.
type namespace struct {
	name     string
	settings Namespace
	source   source
	issued   prometheus.Counter
}

// A pool is a leased generator that namespaces share.
type pool struct {
	name   string
	lease  *lease.Lease
	layout firn.Layout
	clock  firn.ClockKind
}

// New takes a worker for every pool that cfg names; base is the lease of the
// pool that namespaces made on first use share, if cfg names none. The store
// remains the caller's. Close gives the workers back.
func New(ctx context.Context, cfg Config, base lease.Config, s store.Store, log *slog.Logger) (*Server, error) {
	srv := &Server{
		cfg: cfg, store: s, log: log, batch: cfg.Limits.Batch, dynamic: len(cfg.Namespaces) == 0,
		namespaces: map[string]*namespace{}, pools: map[string]*pool{}, metrics: newMetrics(),
	}
	if srv.batch == 0 {
		srv.batch = defaultBatch
	}
	srv.metrics.watch(srv)
	if srv.dynamic {
		if _, err := srv.open(ctx, base); err != nil {
			return nil, err
		}
		return srv, nil
	}
	for name, ns := range cfg.Namespaces {
		made, err := srv.source(ctx, name, ns)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("namespace %s: %w", name, err), srv.Close())
		}
		srv.add(name, ns, made)
	}
	return srv, nil
}

func (s *Server) open(ctx context.Context, cfg lease.Config) (*pool, error) {
	cfg.Slots.Store = s.store
	name := cfg.Slots.Pool
	if name == "" {
		name = defaultPool
	}
	cfg.Log = s.log.With("pool", name)
	l, err := lease.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := &pool{name: name, lease: l, layout: l.Generator().Layout(), clock: cfg.Generator.Clock}
	s.pools[name] = p
	return p, nil
}

func (s *Server) add(name string, settings Namespace, made source) *namespace {
	ns := &namespace{name: name, settings: settings, source: made, issued: s.metrics.issued.WithLabelValues(name)}
	s.namespaces[name] = ns
	return ns
}

// errUnknown says that there is no such namespace.
var errUnknown = errors.New("unknown namespace")

// lookup finds a namespace; with create one is made where that is allowed.
func (s *Server) lookup(name string, create bool) (*namespace, error) {
	s.mu.RLock()
	ns := s.namespaces[name]
	s.mu.RUnlock()
	if ns != nil {
		return ns, nil
	}
	if !s.dynamic {
		return nil, fmt.Errorf("%w %q: it is not in the configuration; GET /v1/namespaces lists those that are", errUnknown, name)
	}
	if err := checkNamespace(name); err != nil {
		return nil, err
	}
	if !create {
		return nil, fmt.Errorf("%w %q: it is made on first use, with POST /v1/ids/%s", errUnknown, name, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ns := s.namespaces[name]; ns != nil {
		return ns, nil
	}
	if len(s.namespaces) >= maxDynamic {
		return nil, fmt.Errorf("%w %q: %d namespaces were made on first use, which is the limit; name yours in a configuration file",
			errUnknown, name, maxDynamic)
	}
	for _, p := range s.pools {
		return s.add(name, Namespace{}, leased{p}), nil
	}
	return nil, fmt.Errorf("%w %q: the server has no pool", errUnknown, name)
}

// generate is the one path on which ids are issued. Either all n are returned or
// none.
func (s *Server) generate(ctx context.Context, ns *namespace, n int) (batch, error) {
	if !ns.settings.generated() { // it may wait for a store; a generator fails at its fence
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, longest)
		defer cancel()
	}
	b, err := ns.source.take(ctx, n)
	if err != nil {
		return batch{}, err
	}
	ns.issued.Add(float64(n))
	return b, nil
}

// ready returns nil when every pool can issue.
func (s *Server) ready() error {
	if s.draining.Load() {
		return errors.New("shutting down")
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.pools {
		if st := p.lease.State(); st.Left < 0 {
			return fmt.Errorf("pool %s: the fence of worker %d passed at %s and could not be moved: %w",
				p.name, st.Worker, st.Until.Format(time.RFC3339Nano), st.Last)
		}
	}
	return nil
}

// Serve answers requests on listener until ctx ends; then it lets those under
// way end, up to a bound, and returns. Workers are given back by Close only
// after that: the other order would let a newcomer issue beside the last
// requests.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	h := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.log.Info("shutting down: no new connections, requests under way end first")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := h.Shutdown(drain)
	if err != nil {
		err = fmt.Errorf("requests still under way after %v were cut off: %w", drainTimeout, errors.Join(err, h.Close()))
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Close gives the workers back; no id is issued after it returns.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	s.mu.RLock()
	defer s.mu.RUnlock()
	var errs []error
	for _, ns := range s.namespaces {
		errs = append(errs, ns.source.close(ctx))
	}
	for _, p := range s.pools {
		errs = append(errs, p.lease.Close(ctx))
	}
	return errors.Join(errs...)
}
