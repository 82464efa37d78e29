package issuing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/veil"
)

// A builder makes a snapshot from settings. It reuses the parts of the old snapshot that
// have not changed.
type builder struct {
	service *Service
	old     *snapshot
	made    *snapshot
}

func (b *builder) build(ctx context.Context, cfg settings.Config) error {
	if len(cfg.Namespaces) == 0 {
		return b.onFirstUse(ctx)
	}
	if err := b.openPools(ctx, cfg.Namespaces); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Namespaces)) {
		err := b.add(ctx, cfg, name)
		if place := new(settings.PlaceError); errors.As(err, &place) {
			return err
		}
		if err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// onFirstUse prepares for namespaces that are made on first use.
func (b *builder) onFirstUse(ctx context.Context) error {
	if p := b.old.dynamic; p != nil {
		b.made.dynamic = p
		b.made.pools[p.name] = p
		return nil
	}
	p, err := b.service.open(ctx, b.service.base)
	if err != nil {
		return err
	}
	b.made.dynamic = p
	b.made.pools[p.name] = p
	return nil
}

func (b *builder) add(ctx context.Context, cfg settings.Config, name string) error {
	set := cfg.Namespaces[name]
	made, err := b.base(ctx, name, set)
	if err != nil {
		return err
	}
	ns := b.service.namespace(name, set, made, b.made.limits)
	b.made.namespaces[name] = ns // from here on it is closed if building fails
	if format := set.Of().Format; format != nil {
		write, err := format(set)
		if err != nil {
			return err
		}
		ns.texts = &written{ns.numbers, write}
		return nil
	}
	if set.Veil != nil {
		cipher, err := set.Veil.Cipher(name)
		switch {
		case err != nil && set.Veil.KeyFile != "":
			return cfg.At(err, "namespaces", name, "veil", "key_file")
		case err != nil:
			return cfg.At(err, "namespaces", name, "veil", "key_env")
		}
		if was := b.old.namespaces[name]; was != nil {
			ns.ciphers = was.ciphers
		}
		if slices.ContainsFunc(ns.ciphers, cipher.Repeats) {
			return errRepeats
		}
		if !slices.ContainsFunc(ns.ciphers, func(c *veil.Cipher) bool { return c.String() == cipher.String() }) {
			ns.ciphers = append(slices.Clip(ns.ciphers), cipher)
		}
		ns.numbers = veiled{ns.numbers, cipher}
		ns.cipher = cipher
	}
	if set.Prefix != "" {
		prefix, err := prefixed.New(set.Prefix)
		if err != nil {
			return err
		}
		ns.setPrefix(prefix)
	}
	return nil
}

// base returns the source of a namespace's ids, before they are veiled or formatted.
func (b *builder) base(ctx context.Context, name string, set settings.Namespace) (base, error) {
	if set.Generated() {
		return leased{b.made.pools[set.PoolName()]}, nil
	}
	was := b.old.namespaces[name]
	if was != nil && reflect.DeepEqual(bare(was.settings), bare(set)) {
		return was.base, nil
	}
	log := b.service.log.With("namespace", name)
	switch kind := set.Of(); kind.Source {
	case settings.Ranges:
		cfg := set.SegmentConfig()
		cfg.Store, cfg.Log = b.service.store, log
		return b.segments(ctx, was, name, cfg)
	case settings.Counter:
		made, err := newSequences(name, sequence.Config{Store: b.service.store, Start: set.From, Log: log})
		if err != nil {
			return nil, err
		}
		return made, made.goOn(ctx, was)
	case settings.Template:
		cfg, _, err := set.NumberFormat()
		if err != nil {
			return nil, err
		}
		made, err := newNumbers(name, sequence.Config{Store: b.service.store, Log: log}, cfg)
		if err != nil {
			return nil, err
		}
		return made, made.counter.goOn(ctx, was)
	case settings.Local:
		next, err := kind.Wide(set)
		return &local{next}, err
	}
	return nil, fmt.Errorf("%w: %s", errKind, set.Kind)
}

// goOn raises a counter above the last id of the counter that it replaces, since the store
// may have lost that id. If this fails, it closes the counter.
func (s *sequences) goOn(ctx context.Context, was *Namespace) error {
	if was == nil {
		return nil
	}
	old, ok := was.base.(*sequences)
	if n, isNumber := was.base.(*businessNumbers); isNumber {
		old, ok = n.counter, true
	}
	if !ok {
		return nil
	}
	last := old.one.State().Last
	if last == 0 {
		return nil
	}
	if err := s.one.Raise(ctx, last); err != nil {
		return errors.Join(fmt.Errorf("raise the counter above %d: %w", last, err), s.close(ended))
	}
	return nil
}

// segments returns the ranges of a namespace, above those of the source that it replaces,
// since the store may have lost them. If the old source has ids in memory, segments fetches
// some for the new one, so that callers neither wait for the store nor fail while it is away.
func (b *builder) segments(ctx context.Context, was *Namespace, name string, cfg segment.Config) (base, error) {
	var old segment.State
	if was != nil {
		if s, ok := was.base.(*segments); ok {
			old = s.name.State()
			cfg.Start = max(cfg.Start, old.Last+1)
		}
	}
	made, err := newSegments(name, cfg)
	if err != nil || old.Left == 0 {
		return made, err
	}
	if err := made.name.Prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("no range could be fetched by the new settings: %w", err), made.close(ended))
	}
	return made, nil
}

// errKind is a bug in this file: every checked namespace has a kind.
var errKind = errors.New("no such kind")

// bare returns the settings that the source of a namespace depends on.
func bare(set settings.Namespace) settings.Namespace {
	set.Veil, set.Prefix = nil, ""
	return set
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
			"start the server anew, or leave out worker", name)
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
