package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Script is the script that writes a register, for tests that send it as a proxy would.
var Script = compareAndSwap

// ReachedAt returns the address where the client reaches a server of a cluster.
var ReachedAt = reachedAt

// ReplicasScript is the beginning of the scripts that write.
const ReplicasScript = replicas

// Learn gives a handle a record, as if it came from elsewhere.
func (s *Store) Learn(n int, since int64) { s.learn(record{n, since}) }

// AskSentinels asks the Sentinels of a URL about the server of s.
func (s *Store) AskSentinels(ctx context.Context, url string) error {
	options, _, err := parseURL(url)
	if err != nil {
		return err
	}
	_, info, err := s.info(ctx)
	if err != nil {
		return err
	}
	return errors.Join(askSentinels(ctx, options, info["run_id"], MaxReplicas))
}

// AskCluster asks the cluster about a server that may have the set of s.
func (s *Store) AskCluster(ctx context.Context, addr string) error {
	node := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = node.Close() }()
	return s.askCluster(ctx, node, MaxReplicas)
}
