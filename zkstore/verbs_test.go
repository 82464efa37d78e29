package zkstore_test

import (
	"context"

	"github.com/firn-id/firn/zkstore"
)

// The package has the verbs of docs/decisions/0011.
var _ func(ctx context.Context, url string) (*zkstore.Store, error) = zkstore.Open
