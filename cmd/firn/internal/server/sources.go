package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/wideid"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/serial"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/veil"
)

// A batch is ids of one request: numbers, or texts for kinds that are none.
type batch struct {
	ids   []firn.ID
	texts []string
}

// A source makes the ids of a namespace.
type source interface {
	// take returns n ids, or none and why.
	take(ctx context.Context, n int) (batch, error)
	// state adds what is to be seen of it.
	state(*namespaceState)
	// ready returns nil when it can make ids without waiting.
	ready() error
	// close ends it; no id is made after it returns.
	close(ctx context.Context) error
}

// leased makes ids of a pool, which others may share.
type leased struct{ pool *pool }

func (l leased) take(ctx context.Context, n int) (batch, error) {
	ids := make([]firn.ID, n)
	if _, err := l.pool.lease.Fill(ctx, ids); err != nil {
		return batch{}, err
	}
	return batch{ids: ids}, nil
}

func (l leased) state(s *namespaceState) { l.pool.show(s) }
func (leased) ready() error              { return nil } // the server asks its pools
func (leased) close(context.Context) error {
	return nil // so are they closed
}

// serials writes the ids of a pool as serial numbers.
type serials struct {
	leased
	format *serial.Format
}

func (s serials) take(ctx context.Context, n int) (batch, error) {
	b, err := s.leased.take(ctx, n)
	if err != nil {
		return b, err
	}
	return written(b.ids, s.format.Text)
}

func written(ids []firn.ID, write func(firn.ID) (string, error)) (batch, error) {
	b := batch{texts: make([]string, len(ids))}
	for i, id := range ids {
		var err error
		if b.texts[i], err = write(id); err != nil {
			return batch{}, err
		}
	}
	return b, nil
}

// segments makes ids from ranges of a counter.
type segments struct {
	all  *segment.Segments
	name *segment.Name
}

func newSegments(name string, cfg segment.Config) (*segments, error) {
	all, err := segment.Open(cfg)
	if err != nil {
		return nil, err
	}
	n, err := all.Name(name)
	return &segments{all, n}, err
}

func (s *segments) take(ctx context.Context, n int) (batch, error) {
	ids := make([]firn.ID, n)
	if _, err := s.name.Fill(ctx, ids); err != nil {
		return batch{}, err
	}
	return batch{ids: ids}, nil
}

func (s *segments) state(state *namespaceState) {
	st := s.name.State()
	state.Segment = &segmentState{Left: st.Left, Lasts: st.Lasts.Seconds(), Step: st.Step, Ranges: st.Ranges, Fetches: st.Fetches, Waits: st.Waits}
	if st.Err != nil {
		state.Error = st.Err.Error()
	}
}

func (*segments) ready() error                      { return nil } // its ranges come with the first request
func (s *segments) close(ctx context.Context) error { return s.all.Close(ctx) }

// sequences makes strictly increasing ids.
type sequences struct {
	all *sequence.Sequences
	one *sequence.Sequence
}

func newSequences(name string, cfg sequence.Config) (*sequences, error) {
	all, err := sequence.Open(cfg)
	if err != nil {
		return nil, err
	}
	one, err := all.Name(name)
	return &sequences{all, one}, err
}

func (s *sequences) take(ctx context.Context, n int) (batch, error) {
	first, err := s.one.Take(ctx, int64(n))
	if err != nil {
		return batch{}, err
	}
	ids := make([]firn.ID, n)
	for i := range ids {
		ids[i] = first + firn.ID(i)
	}
	return batch{ids: ids}, nil
}

func (s *sequences) state(state *namespaceState) {
	st := s.one.State()
	state.Sequence = &sequenceState{Last: st.Last, Additions: st.Additions, Issued: st.Issued, Batch: st.Batch()}
	if st.Err != nil {
		state.Error = st.Err.Error()
	}
}

func (*sequences) ready() error                      { return nil }
func (s *sequences) close(ctx context.Context) error { return s.all.Close(ctx) }

// numbers makes business numbers over a sequence.
type numbers struct {
	sequences
	format *numbering.Format
}

func newNumbers(name string, counter sequence.Config, cfg numbering.Config) (*numbers, error) {
	s, err := newSequences(name, counter)
	if err != nil {
		return nil, err
	}
	cfg.Counter = s.one
	cfg.Clock, _ = counter.Store.(store.Clock)
	f, err := numbering.New(cfg)
	return &numbers{*s, f}, err
}

func (s *numbers) take(ctx context.Context, n int) (batch, error) {
	texts, err := s.format.Take(ctx, n)
	return batch{texts: texts}, err
}

func (s *numbers) state(state *namespaceState) {
	s.sequences.state(state)
	state.Template = s.format.String()
}

// local makes ids that need no store.
type local struct{ next wideid.Next }

func (l local) take(ctx context.Context, n int) (batch, error) {
	return l.written(ctx, n, func(_ []byte, text string) string { return text })
}

func (l local) written(ctx context.Context, n int, write func(id []byte, text string) string) (batch, error) {
	b := batch{texts: make([]string, n)}
	for i := range b.texts {
		id, text, err := l.next(ctx)
		if err != nil {
			return batch{}, err
		}
		b.texts[i] = write(id, text)
	}
	return b, nil
}

func (local) state(*namespaceState)       {}
func (local) ready() error                { return nil }
func (local) close(context.Context) error { return nil }

// veiled hides the order of a source's ids.
type veiled struct {
	source
	cipher *veil.Cipher
}

func (v veiled) take(ctx context.Context, n int) (batch, error) {
	b, err := v.source.take(ctx, n)
	if err != nil {
		return b, err
	}
	for i, id := range b.ids {
		if b.ids[i], err = v.cipher.Veil(id); err != nil {
			return batch{}, err
		}
	}
	return b, nil
}

func (v veiled) state(s *namespaceState) {
	v.source.state(s)
	s.Veil = v.cipher.String()
}

// withPrefix writes ids with one.
type withPrefix struct {
	source
	prefix prefixed.Prefix
}

func (p withPrefix) take(ctx context.Context, n int) (batch, error) {
	if l, ok := p.source.(local); ok {
		return l.written(ctx, n, func(id []byte, _ string) string { return p.prefix.Bytes(id) })
	}
	b, err := p.source.take(ctx, n)
	if err != nil {
		return b, err
	}
	return written(b.ids, func(id firn.ID) (string, error) { return p.prefix.ID(id), nil })
}

// errKind is a mistake of this file: a namespace that passed the check has a kind.
var errKind = errors.New("no such kind")

// source makes the source of a namespace that passed the check.
func (s *Server) source(ctx context.Context, name string, ns Namespace) (made source, err error) {
	switch ns.kind() {
	case "snowflake", "serial":
		p, ok := s.pools[ns.pool()]
		if !ok {
			cfg, err := ns.Lease()
			if err == nil {
				p, err = s.open(ctx, cfg)
			}
			if err != nil {
				return nil, err
			}
		}
		made = leased{p}
		if ns.kind() == "serial" {
			f, err := ns.serial()
			if err != nil {
				return nil, err
			}
			return serials{leased{p}, f}, nil
		}
	case "segment":
		cfg, cfgErr := ns.segment()
		cfg.Store, cfg.Log = s.store, s.log.With("namespace", name)
		if err = cfgErr; err == nil {
			made, err = newSegments(name, cfg)
		}
	case "sequence":
		made, err = newSequences(name, sequence.Config{Store: s.store, Start: ns.From, Log: s.log.With("namespace", name)})
	case "number":
		cfg, cfgErr := ns.number()
		if err = cfgErr; err == nil {
			return newNumbers(name, sequence.Config{Store: s.store, Log: s.log.With("namespace", name)}, cfg)
		}
	case "uuid":
		next, nextErr := wideid.UUID(ns.version())
		made, err = local{next}, nextErr
	case "objectid":
		next, nextErr := wideid.ObjectID()
		made, err = local{next}, nextErr
	default:
		err = fmt.Errorf("%w: %s", errKind, ns.Kind)
	}
	if err != nil {
		return nil, err
	}
	if ns.Veil != nil {
		cipher, err := ns.Veil.cipher(name)
		if err != nil {
			return nil, err
		}
		made = veiled{made, cipher}
	}
	if ns.Prefix != "" {
		p, err := prefixed.New(ns.Prefix)
		if err != nil {
			return nil, err
		}
		made = withPrefix{made, p}
	}
	return made, nil
}

// show writes the state of a pool.
func (p *pool) show(state *namespaceState) {
	s := p.lease.State()
	state.Pool, state.Layout, state.Clock = p.name, decode.Label(p.layout), p.clock.String()
	state.leaseState = &leaseState{
		Worker: s.Worker, Fence: s.Fence, Until: s.Until, Left: s.Left.Seconds(), Renewals: s.Renewals, Losses: s.Losses,
	}
	if s.Last != nil {
		state.Error = s.Last.Error()
	}
}

type leaseState struct {
	Worker   int64     `json:"worker"`
	Fence    firn.Tick `json:"fence,string"`
	Until    time.Time `json:"until"`
	Left     float64   `json:"fence_seconds"`
	Renewals int64     `json:"renewals"`
	Losses   int64     `json:"losses"`
}
