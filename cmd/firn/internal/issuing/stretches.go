package issuing

import (
	"context"

	"github.com/firn-id/firn"
)

// stretched is a base whose ids come in runs of equal stride. It returns them as stretches,
// so that ids that are sent as first and count need not be written out.
type stretched interface {
	// stretches appends n ids to to, or returns an error.
	stretches(ctx context.Context, n int, to []firn.Stretch) ([]firn.Stretch, error)
}

// join appends s, by extending the last stretch if s continues it.
func join(to []firn.Stretch, s firn.Stretch) []firn.Stretch {
	if last := len(to) - 1; last >= 0 {
		if l := &to[last]; l.Stride == s.Stride && l.First+firn.ID(l.Count)*l.Stride == s.First {
			l.Count += s.Count
			return to
		}
	}
	return append(to, s)
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

func (s *segments) stretches(ctx context.Context, n int, to []firn.Stretch) ([]firn.Stretch, error) {
	to, left, err := s.take(ended, n, to)
	if err == nil {
		return to, nil
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	to, _, err = s.take(ctx, left, to)
	return to, err
}

// take appends ids to to until n are taken, and returns how many are left after an error.
func (s *segments) take(ctx context.Context, n int, to []firn.Stretch) (_ []firn.Stretch, left int, err error) {
	for n > 0 {
		r, err := s.name.Take(ctx, n)
		if err != nil {
			return to, n, err
		}
		to = join(to, firn.Stretch{First: r.First, Count: r.Len(), Stride: firn.ID(r.Stride)})
		n -= r.Len()
	}
	return to, 0, nil
}

func (s *sequences) stretches(ctx context.Context, n int, to []firn.Stretch) ([]firn.Stretch, error) {
	first, err := s.consecutive(ctx, n)
	if err != nil {
		return to, err
	}
	return join(to, firn.Stretch{First: first, Count: n, Stride: 1}), nil
}
