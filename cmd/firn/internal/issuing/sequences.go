package issuing

import (
	"context"
	"errors"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// sequences makes strictly increasing ids.
type sequences struct {
	all *sequence.Sequences
	one *sequence.Namespace
	mending
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
	r, err := s.takeRange(ctx, len(ids))
	if err != nil {
		return err
	}
	for i := range ids {
		ids[i] = r.First + firn.ID(i)
	}
	return nil
}

func (s *sequences) takeRange(ctx context.Context, n int) (segment.Range, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	first, err := s.one.Reserve(ctx, n)
	if err != nil {
		return segment.Range{}, err
	}
	return segment.Range{First: first, Count: int64(n), Stride: 1}, nil
}

// consecutive is takeRange, which takes all n.
func (s *sequences) consecutive(ctx context.Context, n int) (segment.Range, error) {
	return s.takeRange(ctx, n)
}

func (s *sequences) stretches(ctx context.Context, n int, to []firn.Stretch) ([]firn.Stretch, error) {
	r, err := s.takeRange(ctx, n)
	if err != nil {
		return to, err
	}
	return join(to, firn.Stretch{First: r.First, Count: n, Stride: 1}), nil
}

func (s *sequences) state(state *State) {
	st := s.one.State()
	state.Sequence = &SequenceState{Last: st.Last, Additions: st.Additions, Issued: st.Issued, Batch: st.Batch()}
	state.err = st.Err
}

func (s *sequences) close(ctx context.Context) error {
	return errors.Join(s.mending.close(ctx), s.all.Close(ctx))
}

func (s *sequences) able() error {
	err := s.one.State().Err
	if err != nil {
		s.begin()
	}
	return err
}

// look writes the record unchanged. A read would prove too little: a store that has lost its
// primary, or whose disk is full, answers reads but accepts no writes.
func (s *sequences) look(ctx context.Context) error { return s.one.Raise(ctx, 0) }

// sequence returns the counter of a namespace.
func (b *builder) sequence(name string, set settings.Namespace, form store.Form) (base, error) {
	cfg := set.SequenceConfig()
	cfg.Store, cfg.Memory, cfg.Form, cfg.Log = b.service.store, b.service.memory, form, b.log(name)
	return newSequences(name, cfg)
}

// SequenceState is the state of a counter in the store.
type SequenceState struct {
	Last      firn.ID `json:"last"`
	Additions int64   `json:"additions"`
	Issued    int64   `json:"issued"`
	Batch     float64 `json:"calls_per_addition"`
}
