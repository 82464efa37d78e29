package redisstore

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/dial"
)

// Script is the script that writes a register, for tests that send it as a proxy would.
var Script = compareAndSwap

// Pool returns the numbers of the client's connections.
func (s *Store) Pool() *redis.PoolStats { return s.client.PoolStats() }

// ReachedAt returns the address where the client reaches a server of a cluster.
var ReachedAt = reachedAt

// Persists judges what a server says about its disk.
var Persists = persists

// Evicts judges what a server says about its memory.
func Evicts(info map[string]string) store.Finding {
	return (&Store{}).evicts(info, redis.NewDurationResult(0, nil))
}

// ReplicasScript is the beginning of the scripts that write.
const ReplicasScript = replicas

// Learn gives a handle a record, as if it came from elsewhere.
func (s *Store) Learn(n int, since int64) { s.learn(record{n: n, since: since, at: "-"}) }

// AskSentinels asks the Sentinels of a URL about the server of s.
func (s *Store) AskSentinels(ctx context.Context, url string) error {
	options, _, err := parseURL(url, new(dial.Dialer))
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

type (
	lookups  = func(ctx context.Context, host string) ([]string, error)
	connects = func(ctx context.Context, network, addr string) (net.Conn, error)
)

// OpenPatient is [Open], and waits for replicas for as long as its calls allow: on a busy machine a second may be too short.
func OpenPatient(ctx context.Context, url string) (*Store, error) {
	options, cfg, err := parseURL(url, &dial.Dialer{})
	if err != nil {
		return nil, err
	}
	cfg.ConfirmTimeout = callTimeout - time.Second/2
	return OpenClient(ctx, clientOf(options), cfg)
}

// OpenThrough is Open with another network.
func OpenThrough(ctx context.Context, url string, lookup lookups, connect connects) (*Store, error) {
	options, cfg, err := parseURL(url, &dial.Dialer{Lookup: lookup, Connect: connect})
	if err != nil {
		return nil, err
	}
	return OpenClient(ctx, clientOf(options), cfg)
}
