package prefetch_test

import (
	"context"
	"io"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefetch"
)

// A Buffer has the verbs of docs/decisions/0011.
var _ interface {
	Next(ctx context.Context) (firn.ID, error)
	TryNext() (firn.ID, bool)
	Fill(ctx context.Context, dst []firn.ID) (int, error)
	TryFill(dst []firn.ID) int
	io.Closer
} = (*prefetch.Buffer[firn.ID])(nil)

var _ func(prefetch.Config[firn.ID]) (*prefetch.Buffer[firn.ID], error) = prefetch.New[firn.ID]
