package redisstore_test

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/redisstore"
)

// The package has the verbs of docs/decisions/0011.
var (
	_ func(ctx context.Context, url string) (*redisstore.Store, error)                           = redisstore.Open
	_ func(context.Context, redis.UniversalClient, redisstore.Config) (*redisstore.Store, error) = redisstore.OpenClient
)
