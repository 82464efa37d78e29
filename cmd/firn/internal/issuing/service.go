// Package issuing is the one path on which a server issues ids, whatever protocol they
// are asked for with: namespaces are found, checked, limited and counted here.
package issuing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// maxDynamic bounds the namespaces made on first use, each of which has metrics of its
// own.
const maxDynamic = 10_000

// closeTimeout bounds the exchanges with the store in which workers and ranges are
// given back.
const closeTimeout = 5 * time.Second

// Config is what Open works with.
type Config struct {
	Settings settings.Config
	// Base is the lease of the pool that namespaces made on first use share, if the
	// settings name none.
	Base     lease.Config
	Store    store.Store // remains the caller's
	Log      *slog.Logger
	Registry *prometheus.Registry // receives the metrics
}

// Service issues ids. Its methods may be called concurrently. Make one with [Open].
type Service struct {
	store   store.Store
	log     *slog.Logger
	base    lease.Config
	metrics *metrics

	mu       sync.Mutex // held while now is changed
	now      atomic.Pointer[snapshot]
	draining atomic.Bool
}

// A snapshot is what is served at a time. It is not changed, but replaced.
type snapshot struct {
	namespaces map[string]*Namespace
	pools      map[string]*pool
	dynamic    *pool // of namespaces made on first use; nil where all are declared
	batch      int   // ids in one answer
	access     *access.Book
	generation uint64 // grows with every change
}

// Open takes a worker for every pool that the settings name. Close gives them back.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{store: cfg.Store, log: cfg.Log, base: cfg.Base, metrics: newMetrics(cfg.Registry)}
	s.now.Store(&snapshot{})
	if err := s.Apply(ctx, cfg.Settings); err != nil {
		return nil, err
	}
	cfg.Registry.MustRegister(collector{s})
	return s, nil
}

// Apply serves what cfg says from now on, without a gap: requests under way are
// answered, by what there was or what there is. What has not changed goes on as it is.
// After an error everything is as it was.
func (s *Service) Apply(ctx context.Context, cfg settings.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.now.Load()
	b := builder{service: s, old: old, made: &snapshot{
		namespaces: map[string]*Namespace{}, pools: map[string]*pool{}, batch: cfg.Limits.MaxBatch(), access: access.Open(),
		generation: old.generation + 1,
	}}
	if err := b.build(ctx, cfg); err != nil {
		return errors.Join(err, s.release(b.made, old))
	}
	s.now.Store(b.made)
	if err := s.release(old, b.made); err != nil {
		s.log.Warn("the configuration is in force; what it no longer needs was not given back", "error", err)
	}
	return nil
}

// release closes what is in from and not in kept.
func (s *Service) release(from, kept *snapshot) error {
	used := map[base]bool{}
	for _, ns := range kept.namespaces {
		used[ns.base] = true
	}
	pools := map[*pool]bool{}
	for _, p := range kept.pools {
		pools[p] = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for _, ns := range from.namespaces {
		if !used[ns.base] {
			used[ns.base] = true
			errs = append(errs, ns.base.close(ctx))
		}
	}
	for _, p := range from.pools {
		if !pools[p] {
			errs = append(errs, p.lease.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// find returns a namespace, and makes it where that is allowed and wanted.
func (s *Service) find(name string, create bool) (*Namespace, error) {
	now := s.now.Load()
	if ns := now.namespaces[name]; ns != nil {
		return ns, nil
	}
	if now.dynamic == nil {
		return nil, unknown("unknown namespace %q: it is not in the configuration; GET /v1/namespaces lists those that are", name)
	}
	if err := settings.CheckName(name); err != nil {
		return nil, err
	}
	if !create {
		return nil, unknown("unknown namespace %q: it is made on first use, with POST /v1/ids/%s", name, name)
	}
	return s.create(name)
}

func (s *Service) create(name string) (*Namespace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now.Load()
	switch {
	case now.namespaces[name] != nil:
		return now.namespaces[name], nil
	case now.dynamic == nil:
		return nil, unknown("unknown namespace %q: it is not in the configuration; GET /v1/namespaces lists those that are", name)
	case len(now.namespaces) >= maxDynamic:
		return nil, unknown("unknown namespace %q: %d namespaces were made on first use, which is the limit; name yours in a configuration file",
			name, maxDynamic)
	}
	next := *now
	next.namespaces = maps.Clone(now.namespaces)
	ns := s.namespace(name, settings.Namespace{}, leased{now.dynamic})
	next.namespaces[name] = ns
	next.generation++
	s.now.Store(&next)
	return ns, nil
}

func unknown(format string, args ...any) error {
	return failure.New(http.StatusNotFound, "unknown_namespace", format, args...)
}

// Ready returns nil when every pool can issue.
func (s *Service) Ready() error {
	if s.draining.Load() {
		return notReady("shutting down")
	}
	for _, p := range s.now.Load().pools {
		if st := p.lease.State(); st.Left < 0 {
			return notReady(fmt.Sprintf("pool %s: the fence of worker %d passed at %s and could not be moved: %v",
				p.name, st.Worker, st.Until.Format(time.RFC3339Nano), st.Last))
		}
	}
	return nil
}

func notReady(why string) error {
	f := failure.New(http.StatusServiceUnavailable, "not_ready", "%s", why)
	f.Retry = time.Second
	return f
}

// Drain makes Ready say that the service is about to end, so that load balancers look
// elsewhere. Ids are issued until Close.
func (s *Service) Drain() { s.draining.Store(true) }

// Close gives workers and ranges back; no id is issued after it returns. It may be
// called again.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.release(s.now.Load(), &snapshot{})
}
