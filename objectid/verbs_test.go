package objectid_test

import (
	"context"
	"encoding"

	"github.com/firn-id/firn/objectid"
)

// A Generator and an ID have the verbs of docs/decisions/0011.
var _ interface {
	Next(ctx context.Context) (objectid.ID, error)
	Fill(ctx context.Context, dst []objectid.ID) (int, error)
} = (*objectid.Generator)(nil)

var (
	_ encoding.TextAppender                              = objectid.ID{}
	_ func(objectid.Config) (*objectid.Generator, error) = objectid.New
	_ func(text string) (objectid.ID, error)             = objectid.Parse
)
