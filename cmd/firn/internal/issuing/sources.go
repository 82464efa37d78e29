package issuing

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/veil"
)

// A base is where the ids of a namespace come from. Bases are compared by identity.
type base interface {
	// state adds the base's state.
	state(*State)
	// able returns nil if the base, as far as it knows, can issue, or else the reason. It
	// does not wait: if the store failed, it probes it in the background.
	able() error
	// close ends the base; it issues no id after close returns.
	close(ctx context.Context) error
}

// numbers makes ids that are numbers.
type numbers interface {
	// fill fills ids, or returns an error.
	fill(ctx context.Context, ids []firn.ID) error
}

// texts makes ids that are texts.
type texts interface {
	// take returns n ids or an error.
	take(ctx context.Context, n int) ([]string, error)
}

// longest bounds how long a request waits while a store is away. A generator needs no such
// bound: it fails at its fence.
const longest = 10 * time.Second

// ended is a canceled context: calls with it take only ids that are in memory.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

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

// written formats ids as texts.
type written struct {
	numbers numbers
	write   func(firn.ID) (string, error)
}

func (w *written) take(ctx context.Context, n int) ([]string, error) {
	ids := make([]firn.ID, n)
	if err := w.numbers.fill(ctx, ids); err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i, id := range ids {
		var err error
		if out[i], err = w.write(id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// segments makes ids from ranges of a counter.
type segments struct {
	all     *segment.Segments
	name    *segment.Namespace
	mending mending
}

func newSegments(name string, cfg segment.Config) (*segments, error) {
	all, err := segment.New(cfg)
	if err != nil {
		return nil, err
	}
	n, err := all.Namespace(name)
	if err != nil {
		return nil, errors.Join(err, all.Close(ended))
	}
	return &segments{all: all, name: n, mending: mending{look: n.Prepare}}, nil
}

func (s *segments) fill(ctx context.Context, ids []firn.ID) error {
	// Most requests are served from memory and need no timer.
	n, err := s.name.Fill(ended, ids)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	_, err = s.name.Fill(ctx, ids[n:])
	return err
}

// consecutive takes n consecutive ids and returns the first.
func (s *segments) consecutive(ctx context.Context, n int) (firn.ID, error) {
	r, err := s.name.Reserve(ended, n) // as above
	if err == nil {
		return r.First, nil
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r, err = s.name.Reserve(ctx, n)
	return r.First, err
}

func (s *segments) state(state *State) {
	st := s.name.State()
	state.Segment = &SegmentState{Left: st.Left, Lasts: st.Lasts.Seconds(), Step: st.Step, Ranges: st.Ranges, Fetches: st.Fetches, Waits: st.Waits}
	state.err = st.Err
}

func (s *segments) close(ctx context.Context) error {
	return errors.Join(s.mending.close(ctx), s.all.Close(ctx))
}

// sequences makes strictly increasing ids.
type sequences struct {
	all     *sequence.Sequences
	one     *sequence.Namespace
	mending mending
}

func newSequences(name string, cfg sequence.Config) (*sequences, error) {
	all, err := sequence.New(cfg)
	if err != nil {
		return nil, err
	}
	one, err := all.Namespace(name)
	if err != nil {
		return nil, errors.Join(err, all.Close(ended))
	}
	s := &sequences{all: all, one: one}
	s.mending.look = s.look
	return s, nil
}

func (s *sequences) fill(ctx context.Context, ids []firn.ID) error {
	first, err := s.consecutive(ctx, len(ids))
	if err != nil {
		return err
	}
	for i := range ids {
		ids[i] = first + firn.ID(i)
	}
	return nil
}

// consecutive takes n consecutive ids and returns the first.
func (s *sequences) consecutive(ctx context.Context, n int) (firn.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return s.one.Reserve(ctx, int64(n))
}

func (s *sequences) state(state *State) {
	st := s.one.State()
	state.Sequence = &SequenceState{Last: st.Last, Additions: st.Additions, Issued: st.Issued, Batch: st.Batch()}
	state.err = st.Err
}

func (s *sequences) close(ctx context.Context) error {
	return errors.Join(s.mending.close(ctx), s.all.Close(ctx))
}

// businessNumbers makes texts with a number in them, over a sequence.
type businessNumbers struct {
	counter *sequences
	format  *numbering.Format
	clock   *heardClock // nil if the store has none
	mending mending
}

func newNumbers(name string, counter sequence.Config, cfg numbering.Config) (*businessNumbers, error) {
	s, err := newSequences(name, counter)
	if err != nil {
		return nil, err
	}
	made := &businessNumbers{counter: s}
	made.mending.look = made.look
	cfg.Counter = s.one
	if clock, ok := counter.Store.(store.Clock); ok {
		made.clock = &heardClock{clock: clock, doubt: made.mending.begin, log: counter.Log}
		cfg.Clock = made.clock
	}
	if made.format, err = numbering.New(cfg); err != nil {
		return nil, errors.Join(err, s.close(ended))
	}
	return made, nil
}

func (s *businessNumbers) take(ctx context.Context, n int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return s.format.Reserve(ctx, n)
}

func (s *businessNumbers) state(state *State) {
	s.counter.state(state)
	state.Template = s.format.String()
	if s.clock != nil && state.err == nil {
		state.err = s.clock.err()
	}
}

func (s *businessNumbers) close(ctx context.Context) error {
	return errors.Join(s.mending.close(ctx), s.counter.close(ctx))
}

// local makes ids that need no store.
type local struct{ next settings.NextWide }

func (l *local) take(ctx context.Context, n int) ([]string, error) {
	return l.written(ctx, n, func(_ []byte, text string) string { return text })
}

func (l *local) written(ctx context.Context, n int, write func(id []byte, text string) string) ([]string, error) {
	out := make([]string, n)
	for i := range out {
		id, text, err := l.next(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = write(id, text)
	}
	return out, nil
}

func (*local) state(*State)                {}
func (*local) close(context.Context) error { return nil }

// localPrefixed writes the bytes of local ids behind a prefix.
type localPrefixed struct {
	local  *local
	prefix prefixed.Prefix
}

func (p *localPrefixed) take(ctx context.Context, n int) ([]string, error) {
	return p.local.written(ctx, n, func(id []byte, _ string) string { return p.prefix.Bytes(id) })
}

// veiled hides the order of ids.
type veiled struct {
	numbers
	cipher *veil.Cipher
}

func (v veiled) fill(ctx context.Context, ids []firn.ID) error {
	if err := v.numbers.fill(ctx, ids); err != nil {
		return err
	}
	for i, id := range ids {
		var err error
		if ids[i], err = v.cipher.Veil(id); err != nil {
			return err
		}
	}
	return nil
}
