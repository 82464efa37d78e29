// Package redisstore is a [store.Store] in Redis, for leases, segments and sequences. It
// works with a single server, a server with Sentinels, or a cluster.
//
//	s, err := redisstore.Open(ctx, "redis://:secret@10.0.0.5:6379/0")
//	l, err := lease.Open(ctx, lease.Config{Store: s})
//
// Everything is in one sorted set. So a cluster keeps it on one server, a listing is one command, and an
// eviction removes all or nothing. New processes notice that a whole pool has vanished and wait for its
// holders; a single vanished slot would look free. Inspect the set with redis-cli: ZRANGE firn 0 -1.
//
// Redis acknowledges a write before its disk or a replica has it. So each write waits, in the same round
// trip, until all replicas that were ever attached have it: see [Store.CompareAndSwap]. The requirements
// for a server are in docs/stores.md and docs/redis-replicas.md.
//
// When not to use it: on a server that may evict the set or loses acknowledged writes in a crash
// (appendfsync other than always), unless the pool is strict; the Examine of [Store.Traits] reports both. etcd,
// ZooKeeper and SQL databases persist a write before they acknowledge it: use one that you already run.
package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// Config configures [OpenClient].
type Config struct {
	// Key names the sorted set. Applications that share a server and should not see each other's pools
	// need different keys. Default: "firn".
	Key string
	// Replicas is how many replicas must have a write before it counts; negative: 0. With less than all
	// that were ever attached, the default ([Store.Replicas]), a failover to another replica loses
	// writes, and ids repeat.
	Replicas int
	// ConfirmTimeout bounds how long a write waits for replicas: at least 1ms, less than the client's
	// ReadTimeout. Default: 1s.
	ConfirmTimeout time.Duration
}

// Store is a [store.Store] in a Redis. Make one with
// [Open] or [OpenClient]: the zero value and nil are not usable.
type Store struct {
	client    redis.UniversalClient // one of the next two
	single    *redis.Client
	cluster   *redis.ClusterClient
	sentinels *redis.UniversalOptions // from the URL that names them; nil: no Sentinels
	cfg       Config
	calls     *backend.Calls

	mu     sync.Mutex
	latest record // the latest that this handle has seen
	kept   string // the life whose server was seen not to evict, see keeps
}

// OpenClient returns a store over client, which Close closes. It writes nothing. The error is [store.ErrRefused]
// for a server that may evict the set.
//
// The client must not repeat commands (MaxRetries -1): a repeated write that was applied would look like
// a conflict. It must not read from replicas or from its own cache, and needs a ReadTimeout, which it has
// by default, and at most three idle connections (MaxIdleConns): each that a network has silently
// forgotten costs a call its time. After PoolSize dials that fail in a row,
// go-redis tries once a second only, so its Dialer should return no error, as that of [Open] does not: in a lease
// whose looks are short, or whose name servers are slow, ids can repeat. Connections should end after 5 s
// (ConnMaxLifetime) if the address may lead to another server while the former one still answers.
//
// Do not share the client: a connection returned to its pool with another database selected is another store, and ids
// repeat.
func OpenClient(ctx context.Context, client redis.UniversalClient, cfg Config) (*Store, error) {
	cfg.Key = cmp.Or(cfg.Key, "firn")
	cfg.ConfirmTimeout = cmp.Or(cfg.ConfirmTimeout, time.Second)
	s := &Store{client: client, cfg: cfg}
	connections, err := s.check()
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w: %w", store.ErrRefused, err)
	}
	kinds := classify
	if s.cluster != nil {
		kinds = func(err error) (hint string, kind error) {
			hint, kind = classifyInCluster(err)
			if errors.Is(kind, store.ErrUnavailable) {
				s.cluster.ReloadState(ctx) // in the background: the client itself does not after connections that fail
			}
			return hint, kind
		}
	}
	s.calls = backend.NewCalls("redisstore", backend.NewLanes(connections), kinds, s.addresses()...)
	return backend.Do(ctx, s.calls, "open set", cfg.Key, func(ctx context.Context) (*Store, error) {
		_, info, err := s.info(ctx)
		if err != nil {
			return nil, err
		}
		if info["cluster_enabled"] == "1" && s.cluster == nil { // the cluster may move the set, and this client would not notice
			return nil, fmt.Errorf("%w: it belongs to a cluster: add ?cluster=true", store.ErrRefused)
		}
		if f := s.evicts(info, redis.NewDurationResult(-1, nil)); f.Verdict == store.Bad {
			return nil, fmt.Errorf("%w: %s: %s", store.ErrRefused, f.Says, f.Advice)
		}
		// With a known record the first write is not sent twice. A loading server has no replicas yet.
		if _, err := s.count(ctx); err != nil {
			if _, kind := kinds(err); errors.Is(kind, store.ErrRefused) {
				return nil, err
			}
		}
		return s, nil
	})
}

// addresses returns what the client was made for; nothing if it asks Sentinels.
func (s *Store) addresses() []string {
	if s.cluster != nil {
		return s.cluster.Options().Addrs
	}
	if o := s.single.Options(); o.Network == "unix" || strings.Contains(o.Addr, ":") {
		return []string{o.Addr}
	}
	return nil
}

// check refuses settings that would break what a write promises. It returns how many connections the
// client makes.
func (s *Store) check() (connections int, err error) {
	var retries int
	var read time.Duration
	var replicas, caches bool
	switch c := s.client.(type) {
	case *redis.Client:
		s.single, retries, read, connections = c, c.Options().MaxRetries, c.Options().ReadTimeout, c.Options().PoolSize
		caches = c.Options().ClientSideCacheConfig != nil || c.Options().ClientSideCache != nil
	case *redis.ClusterClient:
		s.cluster, retries, read, connections = c, c.Options().MaxRetries, c.Options().ReadTimeout, c.Options().PoolSize
		replicas = c.Options().ReadOnly
	default:
		return 0, fmt.Errorf("the client has type %T: *redis.Client and *redis.ClusterClient are supported", s.client)
	}
	switch {
	case s.cfg.Replicas > MaxReplicas:
		return 0, fmt.Errorf("Replicas is %d: it must be at most %d", s.cfg.Replicas, MaxReplicas)
	case s.cfg.ConfirmTimeout < time.Millisecond:
		return 0, fmt.Errorf("ConfirmTimeout is %v: it must be at least 1ms", s.cfg.ConfirmTimeout)
	case replicas:
		return 0, errors.New("the client reads from replicas, which may be behind: set ReadOnly, RouteByLatency and RouteRandomly to false")
	case caches:
		return 0, errors.New("the client caches reads, which hides an outage or lost data of the server: set ClientSideCacheConfig and ClientSideCache to nil")
	case retries > 0:
		return 0, fmt.Errorf("the client repeats commands up to %d times: set MaxRetries to -1", retries)
	case read <= 0:
		return 0, errors.New("the client has no ReadTimeout: a call that stays unanswered would keep its connection")
	case read <= s.cfg.ConfirmTimeout:
		return 0, fmt.Errorf("the client's ReadTimeout of %v must be longer than ConfirmTimeout, %v", read, s.cfg.ConfirmTimeout)
	}
	return connections, nil
}

// node returns a client of the server that has the set.
func (s *Store) node(ctx context.Context) (*redis.Client, error) {
	if s.cluster != nil {
		return s.cluster.MasterForKey(ctx, s.cfg.Key)
	}
	return s.single, nil
}

// info returns a client of the server that has the set, and its answer to INFO.
func (s *Store) info(ctx context.Context) (*redis.Client, map[string]string, error) {
	node, err := s.node(ctx)
	if err != nil {
		return nil, nil, err
	}
	text, err := node.Info(ctx).Result()
	return node, parseInfo(text), err
}

// A register is a member of the set: its key, a zero byte, and the text of [backend.Encode]. All have the
// score 0, so their bytes order them: a member with another score hides others, so the scripts write
// nothing while there is one. Keys have no zero byte: of one key there is at most one member, and two are
// refused.
const (
	endOfKey      = "\x00"
	afterEndOfKey = "\x01"
	// All printable characters are between the next two. The record of the replicas begins with a tab.
	beforeAll = " "
	afterAll  = "\U0010FFFF"
)

func parse(member string) (store.Entry, error) {
	key, text, _ := strings.Cut(member, endOfKey)
	return backend.Decode(key, text, "key")
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	return s.calls.Get(ctx, key, func(ctx context.Context) (store.Entry, error) {
		return backend.First(s.entries(ctx, key+endOfKey, key+afterEndOfKey))
	})
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return s.calls.List(ctx, prefix, func(ctx context.Context) ([]store.Entry, error) {
		return s.entries(ctx, cmp.Or(prefix, beforeAll), prefix+afterAll) // resp knows listings by that end
	})
}

// entries returns the registers from one bound up to, but without, another.
func (s *Store) entries(ctx context.Context, from, to string) ([]store.Entry, error) {
	members, err := s.members(ctx, &redis.ZRangeBy{Min: "[" + from, Max: "(" + to})
	if s.moved(err) { // one try beyond the client's own
		err = errMoving
	}
	if err != nil {
		return nil, err
	}
	list := make([]store.Entry, len(members))
	for i, member := range members {
		if list[i], err = parse(member); err != nil {
			return nil, err
		}
		if i > 0 && list[i].Key == list[i-1].Key {
			return nil, fmt.Errorf("%w: %q: %s", store.ErrRefused, list[i].Key, merged)
		}
	}
	return list, nil
}

// members reads from a primary: a replica may be behind for as long as it cannot follow, and its address
// may lead to another server now. A server of a cluster redirects such reads by itself.
func (s *Store) members(ctx context.Context, by *redis.ZRangeBy) ([]string, error) {
	if s.cluster != nil {
		return s.client.ZRangeByLex(ctx, s.cfg.Key, by).Result()
	}
	conn := s.single.Conn()
	defer func() { _ = conn.Close() }() // return it to the pool, or drop it if it is broken
	pipe := conn.Pipeline()
	info, members := pipe.Info(ctx, "replication"), pipe.ZRangeByLex(ctx, s.cfg.Key, by)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	if !strings.Contains(info.Val(), "role:master") {
		discard(ctx, conn)
		return nil, fmt.Errorf("%w: %s", store.ErrRefused, isReplica)
	}
	return members.Val(), nil
}

// discard closes conn's connection, as the client does after an answer that begins with READONLY, so that
// a later call goes where the address leads then.
func discard(ctx context.Context, conn *redis.Conn) {
	conn.Eval(ctx, `return redis.error_reply('READONLY this connection')`, nil) // another error closes it too, or it is harmless
}

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits { return store.Traits{Clock: clock{s}, Examine: s.examine} }

// A clock is that of the server, or of the node with the set.
type clock struct{ s *Store }

// Now implements [store.Clock].
func (c clock) Now(ctx context.Context) (time.Time, error) {
	s := c.s
	return backend.Do(ctx, s.calls, "read the time of", s.cfg.Key, func(ctx context.Context) (time.Time, error) {
		node, err := s.node(ctx)
		if err != nil {
			return time.Time{}, err
		}
		return node.Time(ctx).Result()
	})
}

// Close closes the client. It may be called twice.
func (s *Store) Close() error { return s.calls.Close(s.cfg.Key, s.client.Close) }
