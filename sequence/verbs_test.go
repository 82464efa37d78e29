package sequence_test

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
)

// A Namespace has the verbs of docs/decisions/0011.
var _ interface {
	Next(ctx context.Context) (firn.ID, error)
	Reserve(ctx context.Context, n int) (first firn.ID, err error)
	ReserveIn(ctx context.Context, n int, above firn.ID, block int64) (first firn.ID, err error)
	Fill(ctx context.Context, dst []firn.ID) (int, error)
	Raise(ctx context.Context, last firn.ID) error
	Look(ctx context.Context) error
	Declare(form string) error
} = (*sequence.Namespace)(nil)

var _ interface {
	Namespace(name string) (*sequence.Namespace, error)
	Close(ctx context.Context) error
} = (*sequence.Sequences)(nil)

var (
	_ func(sequence.Config) (*sequence.Sequences, error) = sequence.New
	_ func(sequence.Config) error                        = sequence.Config.Check
)
