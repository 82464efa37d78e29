// Package server is the issuing service as a process: what it listens on, how it
// starts and how it ends.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/console"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/migrate"
	"github.com/firn-id/firn/cmd/firn/internal/respapi"
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// timeouts keep slow clients from holding the server.
type timeouts struct {
	header time.Duration // for a handshake, and for the headers of a request
	read   time.Duration // for a whole request
	write  time.Duration // from there to the last byte of its answer
	idle   time.Duration // between requests
	linger time.Duration // from the shutdown request until the listeners close
	drain  time.Duration // for requests in flight after that; docker stop kills after 10 s in all
	ping   time.Duration // a silent HTTP/2 connection gets a ping after this, and has as long to answer
}

var defaultTimeouts = timeouts{
	header: 5 * time.Second, read: 10 * time.Second, write: 60 * time.Second, idle: 2 * time.Minute, drain: 7 * time.Second, ping: 15 * time.Second,
}

const maxHeader = 8 << 10

// Server issues ids over the network. [Start] makes one.
type Server struct {
	// Nil until the server is open.
	service *issuing.Service
	api     *httpapi.API
	rpc     *rpc.API
	resp    *respapi.Server

	page         *console.Console
	registry     *prometheus.Registry
	metrics      *metrics
	log          *slog.Logger
	audit        *access.Audit
	auditFile    *access.AuditFile // nil: the audit log goes to the log
	records      *telemetry.Queue  // of the audit file; nil without one
	certificates *certificates     // nil without TLS
	http         atomic.Pointer[http.Handler]
	traces       *telemetry.Traces
	clock        *clockWatch
	timeouts     timeouts
	lingering    atomic.Bool              // since shutdown was requested
	addresses    atomic.Pointer[[]string] // of the listeners, once Serve has them

	applying sync.Mutex // held while a configuration is applied
	cfg      atomic.Pointer[settings.Config]
	shares   *share.Shares
}

// Config is the configuration of a [Server].
type Config struct {
	Settings settings.Config
	// Base is the lease of the pool that namespaces made on first use share, if the
	// settings name none.
	Base      lease.Config
	Store     store.Store // remains the caller's
	Forgetful bool        // Store ends with this process
	Log       *slog.Logger
	LogLost   func() int64      // how many records of Log were lost; nil: none are
	Traces    *telemetry.Traces // nil: no tracing
	Version   string
	// Linger is how long the server still answers after shutdown was requested. It is no
	// longer ready, so that balancers and clients turn to other servers meanwhile.
	Linger time.Duration
	// Follow, if set, is called by Start once clients are served, also while pools are still being joined.
	Follow func(*Server) (ending func())
}

// prepare returns a server that only answers that it is starting.
func prepare(c Config) (*Server, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build(c.Version))
	cfg, log := c.Settings, c.Log
	s := &Server{registry: registry, metrics: newMetrics(registry), log: log, timeouts: defaultTimeouts, traces: cmp.Or(c.Traces, telemetry.Off())}
	s.timeouts.linger = c.Linger
	s.clock = newClockWatch(firn.SystemTime(), log, registry)
	s.cfg.Store(&cfg)
	s.shares = share.New(s.sharesOf(cfg))
	var err error
	if s.page, err = console.New(); err != nil {
		return nil, err
	}
	s.answerWith(s.whileStarting())
	if cfg.TLS != nil {
		if s.certificates, err = newCertificates(cfg, log, s.metrics, time.Now); err != nil {
			return nil, err
		}
		registry.MustRegister(s.metrics.tlsReloads, s.metrics.tlsSuccessful, s.metrics.notAfter)
	}
	if c.LogLost == nil {
		c.LogLost = func() int64 { return 0 }
	}
	registry.MustRegister(lostRecords("stderr", c.LogLost))
	records := log.With("log", "audit")
	if cfg.Audit.File != "" {
		s.auditFile, err = access.OpenAuditFile(cfg.Audit.File, func(err error) { log.Error("a record of the audit log could not be written", "error", err) })
		if err != nil {
			return nil, cfg.At(err, "audit", "file")
		}
		s.records = telemetry.NewQueue(s.auditFile, telemetry.LostLine(func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) }, "lost"), s.auditFile.Close)
		records = slog.New(slog.NewJSONHandler(s.records, nil))
		registry.MustRegister(lostRecords("audit", s.records.Lost))
	}
	s.audit = access.NewAudit(records, firn.SystemTime().Monotonic)
	return s, nil
}

// open returns once one namespace can be served; from then on the server issues. After an error the
// caller must close the server.
func (s *Server) open(ctx context.Context, c Config) (err error) {
	watched := telemetry.Watch(c.Store, s.registry, s.traces.Tracer())
	s.service, err = issuing.Start(ctx, issuing.Config{
		Settings: c.Settings, Base: c.Base, Store: watched, Forgetful: c.Forgetful,
		Log: s.log, Registry: s.registry, Audit: s.audit, Traced: s.traces.On(), Shares: s.shares,
	})
	if err != nil {
		return err
	}
	s.inForce()
	s.rpc = rpc.New(s.service, s.log)
	s.resp = respapi.New(respapi.Config{Service: s.service, Log: s.log, Refused: s.refused("redis")})
	routes, err := s.routes(http.NewServeMux(), watched)
	if err != nil {
		return err
	}
	s.answerWith(s.traces.Handler(routes))
	return nil
}

// ExamineCounters returns what is bad or doubtful about the counters of the configuration in force.
func (s *Server) ExamineCounters(ctx context.Context) []store.Finding {
	return s.service.ExamineCounters(ctx, s.settings())
}

// answerWith makes h the handler of all later requests.
func (s *Server) answerWith(h http.Handler) { s.http.Store(&h) }

// forOne is the Cache-Control of all answers. With no-store alone, Squid may collapse
// concurrent requests and give one answer to all of them: duplicate ids.
var forOne = []string{"private, no-store"}

// Handler returns the HTTP interface.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Cache-Control"] = forOne
		// An HTTP/1 client then opens another connection, which a balancer can send to
		// another server. Over HTTP/2 it would also end the requests in flight.
		if s.lingering.Load() && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		(*s.http.Load()).ServeHTTP(w, r)
	})
}

// build returns the metric that has the version.
func build(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "firn_build_info", Help: "1, with the version.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
}

// index is the answer to GET /.
const index = `Firn issues unique ids. A browser gets a console here.

POST /v1/ids/{namespace}?count=N      ids (GET too); &format=base62, &numbers=true; Accept: text/plain
GET  /v1/decode/{id}                  what is in an id; ?namespace= or ?layout=&unit=&epoch=, &format=
GET  /v1/namespaces                   settings and state; /v1/namespaces/{namespace} of one
GET  /v1/pools/{pool}/workers         the slots of a pool
POST /v1/pools/{pool}/workers/{worker}/release   takes a worker from its holder; ?datacenter=
GET  /v1/store                        what firn doctor finds about the store
GET  /v1/events                       the state, each second, as server-sent events
POST /v1/leases/{pool}                a worker for a program that makes its ids itself; /renew?end=
GET  /livez /readyz /metrics          health, readiness, Prometheus
GET  /api/segment/get/{key}           as Leaf: also /api/snowflake/get/{key}, /decodeSnowflakeId?snowflakeId=
POST /tinyid/id/nextId?bizType=&token=   as TinyId: also nextIdSimple, nextSegmentId, nextSegmentIdSimple
     /machines/ /segments/ /ids       as CosId's proxy server, where it is configured, or nothing is

The same over gRPC, gRPC-Web and Connect on this address: services firn.v1.IDService and firn.v1.LeaseService, with reflection and health.
gRPC is faster on a port of its own (by default 7072).
INCR {namespace} and FIRN.NEXT {namespace} COUNT n over the protocol of Redis, on a port of its own (by default 7071).
`

// routes returns the handler of everything that is served over HTTP, which mux distributes.
func (s *Server) routes(mux *http.ServeMux, st store.Store) (http.Handler, error) {
	api := httpapi.New(s.service, s.log)
	s.api = api
	api.Register(mux)
	s.rpc.Register(mux)
	front := s.service.Front(issuing.HTTP)
	metrics := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
	api.Serve(mux, &httpapi.Metrics, func(w http.ResponseWriter, r *http.Request) error {
		if err := front.Metrics(r); err != nil {
			return err
		}
		metrics.ServeHTTP(w, r)
		return nil
	})
	leaf, tinyid := migrate.NewLeaf(s.service, time.Local, s.log), migrate.NewTinyID(s.service, s.log)
	leaf.Register(mux)
	tinyid.Register(mux)
	mux.Handle("/{$}", api.Readable(s.page.Page(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		httpapi.Plain(w, index)
	}))))
	nothing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpapi.Fail(w, failure.New(http.StatusNotFound, "not_found", "there is nothing at %s; GET / lists what there is", r.URL.Path))
	})
	s.page.Register(mux, api.Readable, nothing)
	if err := s.registerCosID(mux, st, nothing); err != nil {
		return nil, err
	}
	// Clients of Leaf and TinyId may put any prefix before their paths.
	mux.Handle("/", leaf.Prefixed(tinyid.Prefixed(nothing)))
	return limitInFlight(front, s.shares, bounded(front, tinyid.TakesForm, api.Direct(mux))), nil
}

// Scheme returns the URL scheme of a protocol, http, redis or grpc: with TLS https, rediss or grpcs.
func (s *Server) Scheme(protocol string) string {
	if s.certificates != nil {
		return protocol + "s"
	}
	return protocol
}

// Close gives the workers back; no id is issued after it returns.
func (s *Server) Close() error {
	var errs []error
	if s.resp != nil {
		errs = append(errs, s.resp.Close())
	}
	if s.service != nil {
		errs = append(errs, s.service.Close())
	}
	s.audit.Close()
	if s.records != nil {
		if err := s.records.Close(); err != nil {
			errs = append(errs, fmt.Errorf("audit: %w", err))
		}
	}
	return errors.Join(errs...)
}
