package client_test

import (
	"context"
	"io"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// A Namespace and a Client have the verbs of docs/decisions/0011.
type namespace[T any] interface {
	Next(ctx context.Context) (T, error)
	TryNext() (T, bool)
	Fill(ctx context.Context, dst []T) (int, error)
	Fetch(ctx context.Context, n int) ([]T, error)
}

var (
	_ namespace[firn.ID]                          = (*client.Namespace[firn.ID])(nil)
	_ namespace[string]                           = (*client.Namespace[string])(nil)
	_ io.Closer                                   = (*client.Client)(nil)
	_ func(client.Config) (*client.Client, error) = client.New
)
