package segment_test

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// A Namespace and a Source have the verbs of docs/decisions/0011.
var _ interface {
	Next(ctx context.Context) (firn.ID, error)
	Take(ctx context.Context, n int) (segment.Range, error)
	TakeAll(ctx context.Context, n int, dst []segment.Range) ([]segment.Range, error)
	Reserve(ctx context.Context, n int) (segment.Range, error)
	Fill(ctx context.Context, dst []firn.ID) (int, error)
	Raise(ctx context.Context, last firn.ID) error
	Prepare(ctx context.Context) error
	Look(ctx context.Context) error
} = (*segment.Namespace)(nil)

var _ interface {
	Namespace(name string) (*segment.Namespace, error)
	Close(ctx context.Context) error
} = (*segment.Segments)(nil)

var (
	_ interface {
		Fetch(ctx context.Context, name string, ask segment.Ask) (segment.Range, error)
	} = segment.Source(nil)
	_ interface {
		Return(ctx context.Context, name string, unused segment.Range) (bool, error)
	} = segment.Returner(nil)
	_ interface{ AppendTo(dst []firn.ID) []firn.ID }  = segment.Range{}
	_ func(segment.Config) (*segment.Segments, error) = segment.New
	_ func(segment.Config) error                      = segment.Config.Check

	_ func(ctx context.Context, s store.Store, name string, last firn.ID, stripe segment.Stripe) (segment.Counter, error) = segment.RaiseCounter
)
