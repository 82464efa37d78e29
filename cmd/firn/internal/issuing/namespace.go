package issuing

import (
	"context"
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/veil"
)

// A Namespace is a named source of ids, with the settings that were in force when it was found.
type Namespace struct {
	name     string
	settings settings.Namespace
	lacks    []string // by verb
	base     base
	numbers  numbers      // nil for kinds whose ids are not numbers
	texts    texts        // nil where ids are answered as numbers
	cipher   *veil.Cipher // nil where ids are not veiled
	form     store.Form   // of the base's counter, if it has one

	ciphers []*veil.Cipher // one for each set of versions that was in force
	reader  func() (decode.Reader, error)

	issued   prometheus.Counter
	answered [protocols]prometheus.Counter
	bucket   *access.Bucket // nil without a limit
}

func (s *Service) namespace(name string, set settings.Namespace, made base, limits settings.Limits) *Namespace {
	ns := &Namespace{name: name, settings: set, base: made, issued: s.metrics.issued.WithLabelValues(name)}
	for _, v := range settings.Verbs() {
		ns.lacks = append(ns.lacks, set.Lacks(v))
	}
	ns.reader = sync.OnceValues(ns.makeReader) // later: most namespaces never need it
	ns.numbers, _ = made.(numbers)
	if ns.numbers == nil {
		ns.texts, _ = made.(texts)
	}
	for p := range protocols {
		ns.answered[p] = s.metrics.requests.WithLabelValues(name, p.String(), "ok")
	}
	if limit := limits.RateOf(name); !limit.IsZero() {
		// A change of other settings must not reset the rate.
		if was := s.now.Load().namespaces[name]; was != nil && was.bucket != nil && was.bucket.Rate() == limit {
			ns.bucket = was.bucket
		} else {
			ns.bucket = access.NewSharedBucket("namespace "+name, limit, s.clock)
		}
	}
	return ns
}

// setPrefix adds a prefix to ids.
func (n *Namespace) setPrefix(prefix prefixed.Prefix) {
	if l, ok := n.base.(*local); ok {
		n.texts = &local{l.next, func(id []byte, _ string) string { return prefix.Bytes(id) }}
		return
	}
	n.texts = &written{n.numbers, func(id firn.ID) (string, error) { return prefix.ID(id), nil }}
}

// Name returns the name.
func (n *Namespace) Name() string { return n.name }

// Kind returns the kind of ids, as in the configuration.
func (n *Namespace) Kind() string { return n.settings.KindName() }

// Lacks returns "" if the ids can be asked for by a verb, and otherwise what they are; see [settings.Namespace.Lacks].
func (n *Namespace) Lacks(v settings.Verb) string { return n.lacks[v] }

// First returns a number that no id is below: where a counter begins in an empty store, else 1.
func (n *Namespace) First() int64 { return int64(max(n.settings.From, 1)) }

// Numeric reports whether ids are numbers, which clients can request in several formats.
func (n *Namespace) Numeric() bool { return n.texts == nil }

// atOnce is how many ids to take for requests that came together: what fails, fails for all of them.
func (n *Namespace) atOnce() int {
	if l, ok := n.base.(leased); ok {
		return l.pool.queue.slice
	}
	return math.MaxInt
}

// Layout returns the layout that decodes the ids, if they have one.
func (n *Namespace) Layout() (layout firn.Layout, ok bool) {
	if l, leased := n.base.(leased); leased && n.cipher == nil {
		return l.pool.layout, true
	}
	return firn.DefaultLayout(), false
}

// A Batch receives the ids of a request: numbers, or texts for kinds that are not numeric.
// Using it again reuses its memory.
type Batch struct {
	IDs   []firn.ID
	Texts []string

	// Compact requests numbers as Stretches if the kind makes such; then IDs is empty.
	Compact   bool
	Stretches []firn.Stretch

	// Consecutive requests consecutive ids. IDs then has only the first and the last.
	Consecutive bool

	from   *room // of what it holds; see Release
	client *share.Client
	held   int64
}

// take fills b with count ids. After an error b's content is undefined.
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
