package issuing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// A pool is a leased generator that namespaces share. It is joined in the background, which may take a while: the first
// process of a pool waits for holders that the store may have forgotten.
type pool struct {
	name     string
	settings lease.Config // that it was made from
	pinned   bool
	layout   firn.Layout
	clock    firn.ClockKind
	log      *slog.Logger

	lease  atomic.Pointer[lease.Lease] // nil until it is joined
	queue  *queue                      // of requests that wait for ids
	mend   mending                     // takes an id while a clock is back, and with it another worker
	cancel context.CancelFunc          // ends joining
	ended  chan struct{}               // closed when joining has ended
	wait   atomic.Pointer[joinWait]    // the latest that joining announced
	err    error                       // why it failed; set before ended is closed
}

// held returns the pool's lease, or an error while the pool is being joined.
func (p *pool) held() (*lease.Lease, error) {
	if l := p.lease.Load(); l != nil {
		return l, nil
	}
	reason, retry := "it waits for a worker", time.Second
	if w := p.wait.Load(); w != nil {
		if left := time.Until(w.ends); left > 0 {
			reason, retry = w.String(), min(max(left, time.Second), longestRetry)
		}
	}
	return nil, failure.New(http.StatusServiceUnavailable, failure.Joining,
		"pool %s: the server is joining it: %s. Namespaces of other kinds and pools may be served already", p.name, reason).After(retry)
}

// warn says what is doubtful about a pool that is about to be joined.
func (p *pool) warn(ctx context.Context, s store.Store) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for _, f := range examineDatacenter(ctx, s, p.name, p.settings.Generator.Datacenter) {
		p.log.Warn(f.Says, "advice", f.Advice)
	}
}

// joined waits until the pool is joined, or ctx ends.
func (p *pool) joined(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends joining, and gives the worker back.
func (p *pool) close(ctx context.Context) error {
	p.cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		return fmt.Errorf("pool %s: end joining it: %w", p.name, context.Cause(ctx))
	}
	if l := p.lease.Load(); l != nil {
		return errors.Join(p.mend.close(ctx), l.Close(ctx))
	}
	return nil
}

// leased makes ids of a pool.
type leased struct{ pool *pool }

func (l leased) fill(ctx context.Context, ids []firn.ID) error {
	held, err := l.pool.held()
	if err != nil {
		return err
	}
	return l.pool.queue.take(ctx, len(ids), func(ctx context.Context, n int) (int, error) {
		filled, err := held.Fill(ctx, ids[:n])
		ids = ids[filled:]
		return filled, err
	})
}

func (l leased) state(s *State)            { l.pool.show(s) }
func (leased) close(context.Context) error { return nil } // the service closes its pools

func (l leased) able() error {
	p := l.pool
	held, err := p.held()
	if err != nil {
		return err
	}
	s := held.State()
	switch {
	case s.Left < 0 && s.Fence >= p.layout.MaxTick():
		return fmt.Errorf("pool %s: %w", p.name, &firn.TimeExhaustedError{Layout: p.layout, End: p.layout.End()})
	case s.Left < 0:
		return fmt.Errorf("pool %s: the fence of worker %d passed at %s and could not be moved", p.name, s.Worker, s.Until.Format(time.RFC3339Nano))
	case s.Err != nil && s.Used >= s.Fence:
		// Ids that run ahead of the clock come to the fence before the clock does.
		return fmt.Errorf("pool %s: the ids up to the fence of worker %d, %s, are used up, and it could not be moved",
			p.name, s.Worker, s.Until.Format(time.RFC3339Nano))
	}
	err = held.Check()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, firn.ErrClockBack): // the policy switch may serve, but only a call tries it
		p.mend.beginWith(func() { p.log.Warn("a pool can make no ids", "pool", p.name, "error", err) })
	}
	return fmt.Errorf("pool %s: %w", p.name, err)
}

// poolsAtOnce bounds how many pools are joined at the same time: each may wait for seconds.
const poolsAtOnce = 32

// joinPools begins to join the pools that namespaces need and that are not open.
func (b *builder) joinPools(ctx context.Context, namespaces map[string]settings.Namespace) error {
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		set := namespaces[name]
		if !set.Generated() || b.made.pools[set.PoolName()] != nil {
			continue
		}
		p, err := b.pool(ctx, "namespace "+name+": ", set)
		if err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
		b.made.pools[p.name] = p
	}
	return nil
}

// pool returns the pool of a namespace: the one that is open, or one that it begins to join.
func (b *builder) pool(ctx context.Context, who string, set settings.Namespace) (*pool, error) {
	cfg, err := set.Lease()
	if err != nil {
		return nil, err
	}
	name := cfg.Pool
	was := b.old.pools[name]
	if was != nil && reflect.DeepEqual(was.settings, cfg) {
		return was, nil
	}
	if was != nil && (set.Worker != nil || was.pinned) {
		return nil, fmt.Errorf("pool %s: settings of a pool with a fixed worker cannot change while it is in use: "+
			"restart the server, or leave out worker", name)
	}
	return b.service.join(ctx, who, cfg), nil
}

// join begins to join a pool. Errors of joining begin with who.
func (s *Service) join(ctx context.Context, who string, cfg lease.Config) *pool {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // until the pool is closed
	p := &pool{
		name: cmp.Or(cfg.Pool, settings.DefaultPool), settings: cfg, pinned: cfg.Pinned != nil,
		layout: cmp.Or(cfg.Generator.Layout, firn.DefaultLayout()), clock: cfg.Generator.Clock, log: s.log,
		cancel: cancel, ended: make(chan struct{}),
	}
	p.queue = newQueue(cfg)
	cfg.Store, cfg.Log = s.store, slog.New(&joinLog{s.log.Handler(), p})
	go func() {
		defer close(p.ended)
		select {
		case s.joining <- struct{}{}:
			defer func() { <-s.joining }()
		case <-ctx.Done():
			p.err = context.Cause(ctx)
			return
		}
		p.warn(ctx, s.store)
		l, err := lease.Open(ctx, cfg)
		if err != nil {
			p.err = fmt.Errorf("%s%w", who, err)
			return
		}
		p.mend.look = func(ctx context.Context) error {
			_, err := l.Next(ctx)
			if err == nil {
				p.log.Info("a pool can make ids again", "pool", p.name)
			}
			return err
		}
		p.lease.Store(l)
	}()
	return p
}

// joined waits until all pools are joined, one of them fails, or ctx ends.
func (s *snapshot) joined(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range s.pools {
		group.Go(func() error { return p.joined(ctx) })
	}
	return group.Wait()
}

// servable waits until one namespace can be served, a pool fails, or ctx ends.
func (s *snapshot) servable(ctx context.Context) error {
	for _, ns := range s.namespaces {
		if _, ok := ns.base.(leased); !ok {
			return nil
		}
	}
	if len(s.pools) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan error, len(s.pools))
	for _, p := range s.pools {
		go func() { first <- p.joined(ctx) }()
	}
	return <-first
}

func (p *pool) show(state *State) {
	state.Pool, state.Layout, state.Clock = p.name, decode.Label(p.layout), p.clock.String()
	held, err := p.held()
	if err != nil {
		state.err = err
		return
	}
	s := held.State()
	state.LeaseState = &LeaseState{
		Worker: s.Worker, Fence: s.Fence, Until: s.Until, Left: s.Left.Seconds(), Renewals: s.Renewals, Losses: s.Losses,
	}
	if state.err = s.Err; state.err == nil {
		state.err = held.Check()
	}
}

func (l leased) stretches(ctx context.Context, n int, to []firn.Stretch) ([]firn.Stretch, error) {
	held, err := l.pool.held()
	if err != nil {
		return to, err
	}
	err = l.pool.queue.take(ctx, n, func(ctx context.Context, n int) (taken int, err error) {
		for taken < n {
			run, err := held.Take(ctx, n-taken)
			if err != nil {
				return taken, err
			}
			for s := range run.Stretches() {
				to = join(to, s)
			}
			taken += run.Len()
		}
		return taken, nil
	})
	return to, err
}

// LeaseState is the state of the pool's worker.
type LeaseState struct {
	Worker   int64     `json:"worker"`
	Fence    firn.Tick `json:"fence,string"`
	Until    time.Time `json:"until"`
	Left     float64   `json:"fence_seconds"`
	Renewals int64     `json:"renewals"`
	Losses   int64     `json:"losses"`
}
