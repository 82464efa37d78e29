package issuing

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// segments makes ids from ranges of a counter.
type segments struct {
	all  *segment.Segments
	name *segment.Namespace
	mending
}

func (s *segments) fill(ctx context.Context, ids []firn.ID) error {
	var few [4]segment.Range // without an allocation
	all, err := s.takeAll(ctx, len(ids), few[:0])
	for _, r := range all {
		r.AppendTo(ids[:0])
		ids = ids[r.Len():]
	}
	return err
}

// takeAll takes n ids or, if it fails, none: others can have what is in memory.
func (s *segments) takeAll(ctx context.Context, n int, dst []segment.Range) (all []segment.Range, err error) {
	err = patiently(ctx, func(ctx context.Context) (err error) {
		all, err = s.name.TakeAll(ctx, n, dst)
		return err
	})
	return all, err
}

func (s *segments) consecutive(ctx context.Context, n int) (r segment.Range, err error) {
	err = patiently(ctx, func(ctx context.Context) (err error) {
		r, err = s.name.Reserve(ctx, n)
		return err
	})
	return r, err
}

func (s *segments) takeRange(ctx context.Context, n int) (r segment.Range, err error) {
	err = patiently(ctx, func(ctx context.Context) (err error) {
		r, err = s.name.Take(ctx, n)
		return err
	})
	return r, err
}

func (s *segments) stretches(ctx context.Context, n int, to []firn.Stretch) ([]firn.Stretch, error) {
	all, err := s.takeAll(ctx, n, nil)
	for _, r := range all {
		to = join(to, firn.Stretch{First: r.First, Count: r.Len(), Stride: firn.ID(r.Stride)})
	}
	return to, err
}

// patiently calls do with a context that has ended: most requests are served from memory and need no timer. If that does
// not suffice, it calls do again.
func patiently(ctx context.Context, do func(context.Context) error) error {
	if do(ended) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return do(ctx)
}

func (s *segments) state(state *State) {
	st := s.name.State()
	state.Segment = &SegmentState{Left: st.Left, Lasts: st.Lasts.Seconds(), Step: st.Step, Ranges: st.Ranges, Fetches: st.Fetches, Waits: st.Waits}
	state.err = st.Err
}

func (s *segments) close(ctx context.Context) error {
	return errors.Join(s.mending.close(ctx), s.all.Close(ctx))
}

func (s *segments) able() error {
	st := s.name.State()
	if st.Left > 0 || st.Err == nil || errors.Is(st.Err, segment.ErrExhausted) { // another server could not issue either
		return nil
	}
	s.begin()
	return st.Err
}

// segments returns the ranges of a namespace. If the source that it replaces has ids in memory, it fetches
// some for the new one, so that callers neither wait for the store nor fail while it is away.
func (b *builder) segments(ctx context.Context, was *Namespace, name string, set settings.Namespace, form store.Form) (base, error) {
	cfg := set.SegmentConfig()
	cfg.Store, cfg.Memory, cfg.Form, cfg.Log = b.service.store, b.service.memory, form, b.log(name)
	all, err := segment.New(cfg)
	if err != nil {
		return nil, err
	}
	n, err := all.Namespace(name)
	if err != nil {
		return nil, errors.Join(err, all.Close(ended))
	}
	made := &segments{all: all, name: n, mending: mending{look: n.Prepare}}
	if was == nil {
		return made, nil
	}
	if old, ok := was.base.(*segments); !ok || old.name.State().Left == 0 {
		return made, nil
	}
	if err := made.name.Prepare(ctx); err != nil && !errors.Is(err, segment.ErrExhausted) { // which a restart would not change
		return nil, errors.Join(fmt.Errorf("no range could be fetched by the new settings: %w", err), made.close(ended))
	}
	return made, nil
}

// SegmentState is the state of ranges.
type SegmentState struct {
	Left    int64   `json:"left,string"`   // ids in memory
	Lasts   float64 `json:"lasts_seconds"` // how long the ids last at the present demand while the store is away
	Step    int64   `json:"step"`
	Ranges  int     `json:"ranges"` // fetched ahead
	Fetches int64   `json:"fetches"`
	Waits   int64   `json:"waits"`
}
