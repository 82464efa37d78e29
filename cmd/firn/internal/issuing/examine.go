package issuing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// joinTimeout is how long a pool is joined when it is examined. Longer means that a server waits there.
const joinTimeout = 3 * time.Second

// Examine does what a server does with a configuration until its first requests, over a store that takes no write: it joins
// each pool, and takes an id of each counter. Up to the first write the code of the server itself decides, so what Examine
// finds is what prevents a server.
func Examine(ctx context.Context, s store.Store, cfg settings.Config) []store.Finding {
	b, err := examiner(s, cfg)
	if err != nil {
		return []store.Finding{Fails("veil", err)}
	}
	if err := b.joinPools(ctx, cfg.Namespaces); err != nil { // their settings were checked before
		return []store.Finding{Fails("pool", err)}
	}
	counters, _ := b.examineCounters(ctx, cfg)
	return append(b.examinePools(ctx), counters...)
}

// ExamineCounters is the part of [Examine] about the counters of a service that runs over the store. Readiness tells from
// then on which of them cannot issue.
func (s *Service) ExamineCounters(ctx context.Context, cfg settings.Config) []store.Finding {
	b, err := examiner(s.store, cfg)
	if err != nil {
		return []store.Finding{Fails("veil", err)}
	}
	found, unable := b.examineCounters(ctx, cfg)
	for _, name := range unable {
		if ns := s.now.Load().namespaces[name]; ns != nil {
			if c, ok := ns.base.(interface{ doubt(ctx context.Context) }); ok {
				c.doubt(ctx)
			}
		}
	}
	return found
}

// examiner returns a builder over a store that takes no write. An error means that keys have changed since they were checked.
func examiner(s store.Store, cfg settings.Config) (*builder, error) {
	ciphers, err := ciphersOf(cfg)
	log := slog.New(slog.DiscardHandler)
	service := &Service{store: &untouched{Store: s, refused: map[string]store.Entry{}}, log: log, joining: make(chan struct{}, poolsAtOnce)}
	return &builder{service: service, old: &snapshot{}, made: &snapshot{pools: map[string]*pool{}}, ciphers: ciphers}, err
}

// examineCounters also returns the names that cannot issue.
func (b *builder) examineCounters(ctx context.Context, cfg settings.Config) (found []store.Finding, unable []string) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Namespaces)) {
		f, err := b.examineCounter(ctx, name, cfg.Namespaces[name])
		found = append(found, f...)
		if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			break // the others would fail too
		}
		if err != nil {
			unable = append(unable, name)
		}
	}
	return found, unable
}

func (b *builder) examinePools(ctx context.Context) (found []store.Finding) {
	limited, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(b.made.pools)) {
		p := b.made.pools[name]
		err := p.joined(limited)
		f := store.Finding{Subject: "pool", Says: fmt.Sprintf("%s: %v", name, err)}
		switch {
		case errors.Is(err, errUntouched):
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			f.Verdict, f.Says = store.Doubtful, fmt.Sprintf("%s: a server waits there: for its fixed worker, or for holders that the store may have forgotten", name)
			f.Advice = "see firn workers for who holds the worker; the log of firn serve says how long it waits"
			found = append(found, f)
		case err != nil:
			f.Verdict, f.Advice = store.Bad, "give the namespaces of the pool the settings of those who hold its workers, or another pool"
			found = append(found, f)
		}
		p.cancel()
		found = append(found, examineDatacenter(ctx, b.service.store, name, p.settings.Generator.Datacenter)...)
		if lasts := idsLast(p.settings); lasts < shortOutage && !b.service.store.Traits().Embedded {
			found = append(found, store.Finding{
				Subject: "pool", Verdict: store.Doubtful, Says: fmt.Sprintf("%s: with a window of %v, ids may end %v after the store goes away", name, p.settings.Window, lasts),
				Advice: "give it a window of a minute or more: to restart a store, or to fail over, takes longer",
			})
		}
		if end := p.layout.End(); time.Until(end) < layoutEndsSoon {
			found = append(found, store.Finding{
				Subject: "layout", Verdict: store.Doubtful, Says: fmt.Sprintf("the layout of pool %s runs out of time on %s", name, end.UTC().Format(time.RFC3339)),
				Advice: "move to another pool before, of a layout with more time bits, a longer unit or a later epoch",
			})
		}
	}
	return found
}

// shortOutage is the least outage of its store that a pool should survive.
const shortOutage = 10 * time.Second

// idsLast returns how long ids continue at least without the store: see [lease.Config].
func idsLast(cfg lease.Config) time.Duration {
	window := cmp.Or(cfg.Window, 5*time.Minute)
	return max(window/2-min(cmp.Or(cfg.Look, 3*time.Second), window/4)-500*time.Millisecond, 0)
}

// examineDatacenter reports a server that would be the first of its datacenter in a pool of others.
func examineDatacenter(ctx context.Context, s store.Store, name string, here int64) []store.Finding {
	p, err := lease.Inspect(ctx, s, name)
	if err != nil || len(p.Slots) == 0 || slices.ContainsFunc(p.Slots, func(s lease.Slot) bool { return s.Datacenter == here }) {
		return nil // an error is that of joining too
	}
	return []store.Finding{{
		Subject: "pool", Verdict: store.Doubtful,
		Says:   fmt.Sprintf("%s: this configuration has datacenter %d, and all workers of the pool so far have another, such as %d", name, here, p.Slots[0].Datacenter),
		Advice: fmt.Sprintf("if the server belongs to that one, set datacenter: %d; else it is the first of its own", p.Slots[0].Datacenter),
	}}
}

// layoutEndsSoon is when a lease begins to warn.
const layoutEndsSoon = 90 * 24 * time.Hour

// examineCounter takes an id of a counter as far as its first write.
func (b *builder) examineCounter(ctx context.Context, name string, set settings.Namespace) ([]store.Finding, error) {
	if !set.Of().Counted() {
		return nil, nil
	}
	made, err := b.base(ctx, name, set, b.form(name))
	if err == nil {
		switch made := made.(type) {
		case numbers:
			err = made.fill(ctx, make([]firn.ID, 1))
		case texts:
			_, err = made.take(ctx, 1)
		}
		err = errors.Join(err, made.close(ctx))
	}
	if err == nil || errors.Is(err, errUntouched) {
		return b.counterStands(ctx, name, set, made), nil
	}
	f := store.Finding{Subject: "namespace", Verdict: store.Bad, Says: fmt.Sprintf("no ids of %s can be made: %v", name, err)}
	if failure.Of(err).Code == failure.Mismatch {
		f.Advice = "correct the configuration, or take another name: what the store has stays in force"
	}
	if errors.Is(err, store.ErrSetBack) {
		f.Advice = fmt.Sprintf("firn raise %s LAST --config FILE; LAST is 0 for a new counter", name)
	}
	return []store.Finding{f}, err
}

// counterStands says at which number a counter begins or goes on: in another store it begins again.
func (b *builder) counterStands(ctx context.Context, name string, set settings.Namespace, made base) []store.Finding {
	s, ok := b.service.store.(*untouched)
	if !ok {
		return nil
	}
	f := store.Finding{Subject: "namespace"}
	write, stands := s.counter(name), " goes on at "
	if write.Revision == 0 {
		stands = " is new in this store: it begins at "
	}
	var last firn.ID // before what is left
	switch _, ranges := made.(*segments); {
	case write.Value == nil: // it needed no write
		return nil
	case ranges:
		counter, err := segment.ReadCounter(ctx, s, name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return []store.Finding{Fails(f.Subject, err)}
		}
		next := max(counter.Next, uint64(set.SegmentConfig().Start))
		f.Says = fmt.Sprint(name, stands, next)
		last = firn.ID(next) - firn.ID(max(set.Stride, 1))
	default:
		var one struct{ Last firn.ID } // which the write would have taken
		if err := json.Unmarshal(write.Value, &one); err != nil {
			return []store.Finding{Fails(f.Subject, err)}
		}
		next := one.Last.String()
		if n, ok := made.(*businessNumbers); ok {
			if text, err := n.format.Text(one.Last); err == nil {
				next = text
			}
		}
		f.Says = name + stands + next
		last = one.Last - 1
	}
	if r, ok := leftAfter(made, set, last); ok && r.few() {
		f.Verdict = store.Doubtful
		f.Says += fmt.Sprintf(", and has %s of %s ids left", decode.Grouped(fmt.Sprint(r.left)), decode.Grouped(fmt.Sprint(r.of)))
		f.Advice = "prepare another name before they are used up"
		if r.period != "" {
			f.Says += " for this " + r.period
			f.Advice = "if they may not suffice, prepare another name with a wider {n:…}"
		}
	}
	return []store.Finding{f}
}

// errUntouched ends what is examined where it would write.
var errUntouched = fmt.Errorf("%w: it is only examined", store.ErrRefused)

// untouched is a store that refuses each write.
type untouched struct {
	store.Store
	mu      sync.Mutex
	refused map[string]store.Entry // the writes, by key: what each would have replaced, with the new value
}

// CompareAndSwap implements [store.Store].
func (u *untouched) CompareAndSwap(_ context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused[key] = store.Entry{Value: value, Revision: old}
	return store.Entry{}, errUntouched
}

// counter returns the refused write of the counter of a name. The value is nil if there was none.
func (u *untouched) counter(name string) store.Entry {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.refused[register.CounterKey(name)]
}
