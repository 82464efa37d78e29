package issuing

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
)

// A pool is a leased generator that namespaces share.
type pool struct {
	name     string
	settings lease.Config // that it was made from
	pinned   bool
	lease    *lease.Lease
	layout   firn.Layout
	clock    firn.ClockKind
}

// leased makes ids of a pool.
type leased struct{ pool *pool }

func (l leased) fill(ctx context.Context, ids []firn.ID) error {
	_, err := l.pool.lease.Fill(ctx, ids)
	return err
}

func (l leased) state(s *State)            { l.pool.show(s) }
func (leased) close(context.Context) error { return nil } // the service closes its pools

func (l leased) able() error {
	p := l.pool
	s := p.lease.State()
	switch {
	case s.Left < 0 && s.Fence >= p.layout.MaxTick():
		return fmt.Errorf("pool %s: %w", p.name, &firn.TimeExhaustedError{Layout: p.layout, End: p.layout.End()})
	case s.Left < 0:
		return fmt.Errorf("pool %s: the fence of worker %d passed at %s and could not be moved", p.name, s.Worker, s.Until.Format(time.RFC3339Nano))
	case s.Last != nil && p.lease.Generator().State().Last >= s.Fence:
		// Ids that run ahead of the clock come to the fence before the clock does.
		return fmt.Errorf("pool %s: the ids up to the fence of worker %d, %s, are used up, and it could not be moved",
			p.name, s.Worker, s.Until.Format(time.RFC3339Nano))
	}
	return nil
}

// poolsAtOnce bounds how many pools open at the same time: each may wait for seconds.
const poolsAtOnce = 32

// openPools opens, concurrently, the pools that namespaces need and that are not open. One
// failure cancels the others.
func (b *builder) openPools(ctx context.Context, namespaces map[string]settings.Namespace) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(poolsAtOnce)
	var mu sync.Mutex // guards b.made.pools, while there are several
	asked := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		set := namespaces[name]
		if !set.Generated() || asked[set.PoolName()] {
			continue
		}
		asked[set.PoolName()] = true
		group.Go(func() error {
			p, err := b.openPool(ctx, set)
			if err != nil {
				return fmt.Errorf("namespace %s: %w", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			b.made.pools[p.name] = p
			return nil
		})
	}
	return group.Wait()
}

// openPool returns the open pool of a namespace, or opens one.
func (b *builder) openPool(ctx context.Context, set settings.Namespace) (*pool, error) {
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
	return b.service.open(ctx, cfg)
}

// open takes a worker.
func (s *Service) open(ctx context.Context, cfg lease.Config) (*pool, error) {
	set := cfg
	cfg.Store = s.store
	name := cfg.Pool
	if name == "" {
		name = settings.DefaultPool
	}
	cfg.Log = s.log
	l, err := lease.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &pool{
		name: name, settings: set, pinned: cfg.Pinned != nil,
		lease: l, layout: l.Generator().Layout(), clock: cfg.Generator.Clock,
	}, nil
}

func (p *pool) show(state *State) {
	s := p.lease.State()
	state.Pool, state.Layout, state.Clock = p.name, decode.Label(p.layout), p.clock.String()
	state.LeaseState = &LeaseState{
		Worker: s.Worker, Fence: s.Fence, Until: s.Until, Left: s.Left.Seconds(), Renewals: s.Renewals, Losses: s.Losses,
	}
	state.err = s.Last
}

func (l leased) stretches(ctx context.Context, n int, to []firn.Stretch) ([]firn.Stretch, error) {
	for n > 0 {
		run, err := l.pool.lease.Generator().Take(ctx, n)
		if err != nil {
			return to, err
		}
		for s := range run.Stretches() {
			to = join(to, s)
		}
		n -= run.Len()
	}
	return to, nil
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
