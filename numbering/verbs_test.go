package numbering_test

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/sequence"
)

// A Format and a Counter have the verbs of docs/decisions/0011.
var _ interface {
	Next(ctx context.Context) (string, error)
	Reserve(ctx context.Context, n int) ([]string, error)
	Parse(text string) (numbering.Number, error)
} = (*numbering.Format)(nil)

var (
	_ interface {
		ReserveIn(ctx context.Context, n int, above firn.ID, block int64) (first firn.ID, err error)
	} = numbering.Counter(nil)
	_ numbering.Counter                                 = (*sequence.Namespace)(nil)
	_ func(numbering.Config) (*numbering.Format, error) = numbering.New
)
