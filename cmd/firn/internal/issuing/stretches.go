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
