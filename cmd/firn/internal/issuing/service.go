// Package issuing issues a server's ids, for all protocols: it finds namespaces, checks permissions and rates, and
// counts. Only CosId's ranges bypass it: [Front.Charge] counts them. [Front.GrantLease] leases workers to programs that
// make their ids themselves. [ReadPool] reads the slots of a pool.
package issuing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// maxDynamic bounds the namespaces made on first use; each has metrics of its own.
const maxDynamic = 10_000

// closeTimeout bounds the calls of the store that release workers and ranges.
const closeTimeout = 5 * time.Second

// closingAtOnce bounds how many of these calls run at the same time.
const closingAtOnce = 16

// Config is the configuration of a [Service].
type Config struct {
	Settings settings.Config
	// Base is the lease of the pool that namespaces made on first use share, if the
	// settings name none.
	Base      lease.Config
	Store     store.Store // remains the caller's
	Forgetful bool        // Store ends with this process
	Log       *slog.Logger
	Registry  *prometheus.Registry // receives the metrics
	Traced    bool                 // requests have spans, which get the namespace and the count
	Audit     *access.Audit        // receives denials; default: one to Log
	// Shares divide what all clients use; default: the default limits.
	Shares *share.Shares
	// Monotonic is the clock of rates; default: the system's.
	Monotonic func() time.Duration
}

// Service issues ids. Its methods may be called concurrently. Make one with [Open] or [Start].
type Service struct {
	store     store.Store
	forgetful bool
	memory    *register.Memory // of all counters, for as long as the process lives
	log       *slog.Logger
	base      lease.Config
	metrics   *metrics
	traced    bool
	audit     *access.Audit
	internal  *internalErrors
	clock     func() time.Duration
	room      *room
	batches   sync.Pool // of *Batch
	shares    *share.Shares
	loans     *loans
	// undeclared has the *access.Bucket of names that are no namespaces. There are not more of them than share.Names.
	undeclared sync.Map
	joining    chan struct{} // holds a value for each pool that is being joined: at most poolsAtOnce

	applying sync.Mutex // held while settings are applied, which may take long; locked before mu
	closed   bool       // guarded by applying
	mu       sync.Mutex // held briefly while now changes
	now      atomic.Pointer[snapshot]
	setBacks map[string]int64 // of the pools that were replaced, by name; guarded by mu
	draining atomic.Bool

	judging sync.Mutex // guards judged
	judged  *readiness // the latest

	slots latestSlots

	unwatch  context.CancelFunc // ends the watch
	watching sync.WaitGroup

	examining chan struct{} // holds a value while the store is examined; guards examined
	examined  *StoreView    // the latest
}

// A snapshot is everything served under one configuration. It is replaced, never changed.
type snapshot struct {
	namespaces map[string]*Namespace
	pools      map[string]*pool
	dynamic    *pool // of namespaces made on first use; nil if all are declared
	limits     settings.Limits
	access     *access.Book
	generation uint64 // grows with every change
}

// Open is [Start], but waits until all pools are joined.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s, err := Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.Joined(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Start joins the pools that the settings name, and returns as soon as one namespace can be served. Requests to namespaces
// of pools that are still being joined fail with 503; [Service.Joined] waits for these pools. Close gives the workers back.
func Start(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Monotonic == nil {
		cfg.Monotonic = firn.SystemTime().Monotonic
	}
	if cfg.Audit == nil {
		cfg.Audit = access.NewAudit(cfg.Log, cfg.Monotonic)
	}
	if cfg.Shares == nil {
		cfg.Shares = share.New(share.Limits{HTTP: math.MaxInt32, Redis: math.MaxInt32, Requests: math.MaxInt32, Percent: 100})
	}
	s := &Service{store: cfg.Store, forgetful: cfg.Forgetful, memory: &register.Memory{}, setBacks: map[string]int64{}, log: cfg.Log, base: cfg.Base, metrics: newMetrics(cfg.Registry), traced: cfg.Traced, audit: cfg.Audit, internal: &internalErrors{to: cfg.Log, clock: cfg.Monotonic}, clock: cfg.Monotonic, room: newRoom(), shares: cfg.Shares, loans: newLoans(), joining: make(chan struct{}, poolsAtOnce), examining: make(chan struct{}, 1), unwatch: func() {}}
	s.now.Store(&snapshot{})
	if err := s.apply(ctx, cfg.Settings, (*snapshot).servable); err != nil {
		return nil, err
	}
	cfg.Registry.MustRegister(collector{s})
	if !s.store.Traits().Embedded { // such a store forgets only if somebody replaces its files
		ctx, cancel := context.WithCancel(context.Background())
		s.unwatch = cancel
		s.watching.Go(func() { s.watch(ctx) })
	}
	return s, nil
}

// Apply puts cfg in force without interrupting service: the old or the new settings answer
// requests in flight. Unchanged parts keep running. It refuses changes that are unsafe
// while serving. After an error the old settings stay in force; but if Apply has to wait for the store for long, it first
// withdraws the tokens and rights that cfg no longer has, and these stay withdrawn. The context bounds that wait.
func (s *Service) Apply(ctx context.Context, cfg settings.Config) error {
	return s.apply(ctx, cfg, (*snapshot).joined)
}

// Joined waits until all pools are joined. An error means that one of them could not be.
func (s *Service) Joined(ctx context.Context) error {
	var err error
	for joining := (*snapshot)(nil); joining != s.now.Load(); { // pools may have been removed meanwhile, and others be new
		joining = s.now.Load()
		err = joining.joined(ctx)
	}
	s.judging.Lock()
	defer s.judging.Unlock()
	s.judged = nil // that of before
	return err
}

// apply is Apply that waits for the new snapshot with ready.
func (s *Service) apply(ctx context.Context, cfg settings.Config, ready func(*snapshot, context.Context) error) error {
	ciphers, err := ciphersOf(cfg) // before the lock, for which Close waits: their files may be on a disk that no longer answers
	if err != nil {
		return err
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.closed {
		return fmt.Errorf("the service has ended: %w", firn.ErrClosed)
	}
	old := s.now.Load()
	if err := old.allows(cfg); err != nil {
		return err
	}
	b := builder{service: s, old: old, ciphers: ciphers, made: &snapshot{
		namespaces: map[string]*Namespace{}, pools: map[string]*pool{}, limits: cfg.Limits, access: old.access,
		generation: old.generation + 1,
	}}
	if who := cfg.Access(); old.access == nil || !reflect.DeepEqual(who, old.access.Config()) {
		b.made.access = access.NewBook(who, old.access, s.clock)
	}
	restricted, err := s.await(b.made, func() error {
		if err := b.build(ctx, cfg); err != nil {
			return err
		}
		return ready(b.made, ctx)
	})
	if err == nil {
		old, err = s.install(&b, cfg)
	}
	if err != nil && restricted {
		err = fmt.Errorf("%w (tokens and rights that the new configuration does not have stay withdrawn)", err)
	}
	if err != nil {
		return errors.Join(err, s.release(b.made, old))
	}
	if err := s.release(old, b.made); err != nil {
		s.log.Warn("the configuration is in force; what it no longer needs was not given back", "error", err)
	}
	return nil
}

// restrictAfter is from when on a wait for the store is long.
const restrictAfter = time.Second

// await waits until a snapshot is ready. Restricted says that it has withdrawn tokens or rights meanwhile.
func (s *Service) await(made *snapshot, ready func() error) (restricted bool, err error) {
	ended := make(chan error, 1)
	go func() { ended <- ready() }()
	select {
	case err := <-ended:
		return false, err
	case <-time.After(restrictAfter):
	}
	restricted = s.restrict(made)
	return restricted, <-ended
}

// restrict takes away what a snapshot that is not in force yet does not allow.
func (s *Service) restrict(made *snapshot) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := *s.now.Load()
	if now.access == nil || now.access == made.access {
		return false
	}
	before := now.access.Config()
	both := before.Both(made.access.Config())
	if reflect.DeepEqual(both, before) {
		return false
	}
	now.access = access.NewBook(both, now.access, s.clock)
	now.generation++
	s.now.Store(&now)
	s.log.Info("tokens and rights that the new configuration no longer has are withdrawn; the rest of it waits")
	return true
}

// install puts the built snapshot in force, unless what was made on first use meanwhile forbids it, and returns the old one.
func (s *Service) install(b *builder, cfg settings.Config) (old *snapshot, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old = s.now.Load()
	if err := old.allows(cfg); err != nil {
		return old, err
	}
	b.made.generation = max(b.made.generation, old.generation+1)
	if b.made.dynamic != nil {
		for name := range old.namespaces { // those made while this was built, too
			b.made.namespaces[name] = s.namespace(name, settings.Namespace{}, leased{b.made.dynamic}, b.made.limits)
		}
	}
	for name, p := range old.pools { // metrics show their set backs for as long as the process lives
		if l := p.lease.Load(); l != nil && b.made.pools[name] != p {
			s.setBacks[p.name] += l.State().SetBacks
		}
	}
	s.now.Store(b.made)
	return old, nil
}

// release closes everything in from that is not in kept, concurrently and within one timeout for all.
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
	var ends []func(context.Context) error
	for _, ns := range from.namespaces {
		if !used[ns.base] {
			used[ns.base] = true
			ends = append(ends, ns.base.close)
		}
	}
	for _, p := range from.pools {
		if !pools[p] {
			ends = append(ends, p.close)
		}
	}
	errs := make([]error, len(ends))
	var group errgroup.Group
	group.SetLimit(closingAtOnce)
	for i, end := range ends {
		group.Go(func() error { errs[i] = end(ctx); return nil })
	}
	return errors.Join(append(errs, group.Wait())...)
}

// Memory is what the process knows of the store's counters.
func (s *Service) Memory() *register.Memory { return s.memory }

// Name returns a name as a string. It allocates nothing if the namespace exists.
func (s *Service) Name(name []byte) string {
	if ns := s.now.Load().namespaces[string(name)]; ns != nil {
		return ns.name
	}
	return string(name)
}

// find returns a namespace. It makes a missing one for a client, where that is allowed.
func (s *Service) find(name string, by *share.Client) (*Namespace, error) {
	now := s.now.Load()
	if ns := now.namespaces[name]; ns != nil {
		return ns, nil
	}
	if err := now.creatable(name); err != nil {
		return nil, err
	}
	return s.create(name, by)
}

// look returns a namespace that exists.
func (s *Service) look(name string) (*Namespace, error) {
	now := s.now.Load()
	if ns := now.namespaces[name]; ns != nil {
		return ns, nil
	}
	if err := now.creatable(name); err != nil {
		return nil, err
	}
	return nil, unknown("unknown namespace %q: it is made on first use, with POST /v1/ids/%s", name, name)
}

// creatable returns an error if no namespace with this name could be made on first use.
func (s *snapshot) creatable(name string) error {
	if s.dynamic == nil {
		return undeclared(name)
	}
	return settings.CheckName(name)
}

func (s *Service) create(name string, by *share.Client) (*Namespace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now.Load()
	switch {
	case now.namespaces[name] != nil:
		return now.namespaces[name], nil
	case now.dynamic == nil:
		return nil, undeclared(name)
	case len(now.namespaces) >= maxDynamic:
		return nil, unknown("unknown namespace %q: %d namespaces were made on first use, which is the limit; name yours in a configuration file",
			name, maxDynamic)
	case !by.Take(share.Names, 1):
		return nil, by.Refusal(share.Names)
	}
	next := *now
	next.namespaces = maps.Clone(now.namespaces)
	ns := s.namespace(name, settings.Namespace{}, leased{now.dynamic}, now.limits)
	next.namespaces[name] = ns
	next.generation++
	s.now.Store(&next)
	return ns, nil
}

func undeclared(name string) error {
	if name == "" {
		return unknown("the request names no namespace; GET /v1/namespaces lists those that there are")
	}
	return unknown("unknown namespace %q: it is not in the configuration; GET /v1/namespaces lists those that are", name)
}

func unknown(format string, args ...any) error {
	return failure.New(http.StatusNotFound, "unknown_namespace", format, args...)
}

// Drain makes Ready report the shutdown, so that load balancers use other servers. The
// service still issues ids until Close.
func (s *Service) Drain() { s.draining.Store(true) }

// Close gives workers and ranges back; no id is issued after it returns. It may be
// called again.
func (s *Service) Close() error {
	s.unwatch()
	s.watching.Wait()
	s.applying.Lock()
	defer s.applying.Unlock()
	s.closed = true
	return s.release(s.now.Load(), &snapshot{})
}
