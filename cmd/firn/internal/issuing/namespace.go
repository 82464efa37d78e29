package issuing

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/veil"
)

// A Namespace is a named source of ids. It may have been replaced since it was found;
// [Front.Issue] sees to that. It is found anew for each request: one that is kept would
// go on with settings that are no longer in force.
type Namespace struct {
	name     string
	settings settings.Namespace
	base     base
	numbers  numbers      // nil for kinds whose ids are no numbers
	texts    texts        // nil where ids are answered as numbers
	cipher   *veil.Cipher // nil where ids are not veiled

	ciphers []*veil.Cipher // one for each set of versions that the namespace was served with

	issued   prometheus.Counter
	answered [protocols]prometheus.Counter
	bucket   *access.Bucket // nil without a limit
}

func (s *Service) namespace(name string, set settings.Namespace, made base, limits settings.Limits) *Namespace {
	ns := &Namespace{name: name, settings: set, base: made, issued: s.metrics.issued.WithLabelValues(name)}
	ns.numbers, _ = made.(numbers)
	if ns.numbers == nil {
		ns.texts, _ = made.(texts)
	}
	for p := range protocols {
		ns.answered[p] = s.metrics.requests.WithLabelValues(name, p.String(), "ok")
	}
	if limit := limits.RateOf(name); !limit.IsZero() {
		// What was used of the rate stays used, if only other settings have changed.
		if was := s.now.Load().namespaces[name]; was != nil && was.bucket != nil && was.bucket.Rate() == limit {
			ns.bucket = was.bucket
		} else {
			ns.bucket = access.NewBucket(limit, s.clock)
		}
	}
	return ns
}

// setPrefix makes ids be written with a prefix.
func (n *Namespace) setPrefix(prefix prefixed.Prefix) {
	if l, ok := n.base.(*local); ok {
		n.texts = &localPrefixed{l, prefix}
		return
	}
	n.texts = &written{n.numbers, func(id firn.ID) (string, error) { return prefix.ID(id), nil }}
}

// admit takes n ids of the rate, or says why not.
func (n *Namespace) admit(count int) error {
	if n.bucket == nil {
		return nil
	}
	wait, ok := n.bucket.Take(count)
	if ok {
		return nil
	}
	return access.Limited("namespace "+n.name, n.bucket.Rate().String(), count, wait)
}

// giveBack returns ids to the rate that were admitted and not issued.
func (n *Namespace) giveBack(count int) {
	if n.bucket != nil {
		n.bucket.Return(count)
	}
}

// Name returns the name.
func (n *Namespace) Name() string { return n.name }

// Kind returns the kind of ids, as the configuration calls it.
func (n *Namespace) Kind() string { return n.settings.KindName() }

// Numeric reports whether ids are numbers, so that they may be written in many ways.
func (n *Namespace) Numeric() bool { return n.texts == nil }

// Layout returns the layout of the ids, if they can be taken apart by one.
func (n *Namespace) Layout() (layout firn.Layout, ok bool) {
	if l, leased := n.base.(leased); leased && n.cipher == nil {
		return l.pool.layout, true
	}
	return firn.DefaultLayout(), false
}

// A Batch receives the ids of a request: numbers, or texts for kinds that are none. It
// may be used again, which keeps its memory.
type Batch struct {
	IDs   []firn.ID
	Texts []string

	// Compact asks for numbers as Stretches where they come so; then IDs is empty.
	Compact   bool
	Stretches []firn.Stretch

	// Consecutive asks for ids in a row. IDs then has the first and the last only.
	Consecutive bool

	from *room // of what it holds; see Release
	held int64
}

// take fills b with n ids, or says why not; then b's content is undefined.
func (n *Namespace) take(ctx context.Context, count int, b *Batch) (err error) {
	b.IDs, b.Texts, b.Stretches = b.IDs[:0], b.Texts[:0], b.Stretches[:0]
	if b.Consecutive {
		return n.takeRow(ctx, count, b)
	}
	if n.texts != nil {
		b.Texts, err = n.texts.take(ctx, count)
		return err
	}
	if from, ok := n.numbers.(stretched); ok && b.Compact {
		b.Stretches, err = from.stretches(ctx, count, b.Stretches)
		return err
	}
	if cap(b.IDs) < count {
		b.IDs = make([]firn.ID, count)
	}
	b.IDs = b.IDs[:count]
	return n.numbers.fill(ctx, b.IDs)
}
