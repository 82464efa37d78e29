// Package server is the issuing service as a process: what it listens on, how it
// starts and how it ends.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/respapi"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// Time-outs, so that slow clients cannot hold the server.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 15 * time.Second
	maxHeader     = 16 << 10
)

// Server issues ids over the network. Make one with [New].
type Server struct {
	service  *issuing.Service
	registry *prometheus.Registry
	log      *slog.Logger
	http     http.Handler
	resp     *respapi.Server
}

// New takes a worker for every pool that cfg names; base is the lease of the
// pool that namespaces made on first use share, if cfg names none. The store
// remains the caller's. Close gives the workers back.
func New(ctx context.Context, cfg settings.Config, base lease.Config, s store.Store, log *slog.Logger) (*Server, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	service, err := issuing.Open(ctx, issuing.Config{Settings: cfg, Base: base, Store: s, Log: log, Registry: registry})
	if err != nil {
		return nil, err
	}
	srv := &Server{service: service, registry: registry, log: log}
	srv.http = srv.routes()
	srv.resp = respapi.New(respapi.Config{
		Service: service, Log: log, Registry: registry, Connections: cfg.Limits.Connections,
	})
	return srv, nil
}

// index is what the root answers.
const index = `Firn issues unique ids.

POST /v1/ids/{namespace}?count=N     ids (GET too); ?format=base62, ?numbers=true, Accept: text/plain
GET  /v1/decode/{id}                 what is in an id; ?namespace= or ?layout=&unit=&epoch=, ?format=
GET  /v1/namespaces                  settings and state; /v1/namespaces/{namespace} of one
GET  /v1/pools/{pool}/workers        the slots of a pool
GET  /livez /readyz /metrics         health, readiness, Prometheus
`

// routes joins what is served over HTTP.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	httpapi.New(s.service, s.log).Register(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(index)) // a failed write means that the client has gone
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		httpapi.Fail(w, failure.New(http.StatusNotFound, "not_found", "there is nothing at %s; GET / lists what there is", r.URL.Path))
	})
	return mux
}

// Handler returns the HTTP interface.
func (s *Server) Handler() http.Handler { return s.http }

// Apply serves what cfg says from now on; see [issuing.Service.Apply].
func (s *Server) Apply(ctx context.Context, cfg settings.Config) error {
	if err := s.service.Apply(ctx, cfg); err != nil {
		return err
	}
	s.resp.SetConnections(cfg.Limits.Connections)
	return nil
}

// Listeners are what a server answers on. It closes them.
type Listeners struct {
	HTTP net.Listener
	RESP net.Listener // nil for none
}

// Close closes them where they are not served.
func (l Listeners) Close() error {
	var errs []error
	for _, one := range []net.Listener{l.HTTP, l.RESP} {
		if one != nil {
			errs = append(errs, one.Close())
		}
	}
	return errors.Join(errs...)
}

// A front answers on a listener, as [http.Server] does.
type front struct {
	name     string
	listener net.Listener
	server   interface {
		Serve(net.Listener) error
		Shutdown(context.Context) error
		Close() error
	}
}

// Serve answers requests on the listeners until ctx ends or one of them fails; then it
// lets those under way end, up to a bound, and returns. Workers are given back by Close
// only after that: the other order would let a newcomer issue beside the last
// requests.
func (s *Server) Serve(ctx context.Context, on Listeners) error {
	fronts := []front{{"http", on.HTTP, &http.Server{
		Handler:           s.http,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}}}
	if on.RESP != nil {
		fronts = append(fronts, front{"resp", on.RESP, s.resp})
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(fronts))
	for _, f := range fronts {
		go func() {
			ended <- f.serve(ctx)
			stop() // without one of them the others are not to go on as if nothing were
		}()
	}
	<-ctx.Done()
	s.service.Drain()
	s.log.Info("shutting down: no new connections, requests under way end first")
	var errs []error
	for range fronts {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// serve returns when ctx has ended, and what was asked for before is answered.
func (f front) serve(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- f.server.Serve(f.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", f.name, errors.Join(err, f.server.Close()))
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := f.server.Shutdown(drain)
	if err != nil {
		err = fmt.Errorf("%s requests still under way after %v were cut off: %w", f.name, drainTimeout, errors.Join(err, f.server.Close()))
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Close gives the workers back; no id is issued after it returns.
func (s *Server) Close() error { return errors.Join(s.resp.Close(), s.service.Close()) }
