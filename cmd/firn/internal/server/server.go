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
	"github.com/firn-id/firn/cmd/firn/internal/leafapi"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/tinyidapi"
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
	return srv, nil
}

// index is what the root answers.
const index = `Firn issues unique ids.

POST /v1/ids/{namespace}?count=N     ids (GET too); ?format=base62, ?numbers=true, Accept: text/plain
GET  /v1/decode/{id}                 what is in an id; ?namespace= or ?layout=&unit=&epoch=, ?format=
GET  /v1/namespaces                  settings and state; /v1/namespaces/{namespace} of one
GET  /v1/pools/{pool}/workers        the slots of a pool
GET  /livez /readyz /metrics         health, readiness, Prometheus
GET  /api/segment/get/{key}          as Leaf: also /api/snowflake/get/{key}, /decodeSnowflakeId?snowflakeId=
POST /tinyid/id/nextId?bizType=&token=  as TinyId: also nextIdSimple, nextSegmentId, nextSegmentIdSimple
`

// routes joins what is served over HTTP.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	httpapi.New(s.service, s.log).Register(mux)
	leaf, tinyid := leafapi.New(s.service, time.Local, s.log), tinyidapi.New(s.service, s.log)
	leaf.Register(mux)
	tinyid.Register(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(index)) // a failed write means that the client has gone
	})
	nothing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpapi.Fail(w, failure.New(http.StatusNotFound, "not_found", "there is nothing at %s; GET / lists what there is", r.URL.Path))
	})
	// Clients of Leaf and TinyId may put any prefix before their paths.
	mux.Handle("/", leaf.Prefixed(tinyid.Prefixed(nothing)))
	return mux
}

// Handler returns the HTTP interface.
func (s *Server) Handler() http.Handler { return s.http }

// Apply serves what cfg says from now on; see [issuing.Service.Apply].
func (s *Server) Apply(ctx context.Context, cfg settings.Config) error {
	return s.service.Apply(ctx, cfg)
}

// Serve answers requests on listener until ctx ends; then it lets those under
// way end, up to a bound, and returns. Workers are given back by Close only
// after that: the other order would let a newcomer issue beside the last
// requests.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	h := &http.Server{
		Handler:           s.http,
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
	s.service.Drain()
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
func (s *Server) Close() error { return s.service.Close() }
