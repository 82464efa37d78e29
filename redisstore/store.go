// Package redisstore is a [store.Store] in Redis: one server, one watched over
// by Sentinels, or a cluster.
//
//	s, err := redisstore.Open(ctx, "redis://:secret@10.0.0.5:6379/0")
//	l, err := lease.Open(ctx, lease.Config{Slots: lease.SlotsConfig{Store: s}})
//
// Everything is in one sorted set, so that a cluster keeps it in one place, a
// listing is one command, and an eviction takes all or nothing: a pool that has
// vanished is noticed and its holders are waited for, a single slot that has
// vanished would just look free. Look with redis-cli: ZRANGE firn 0 -1.
//
// Redis acknowledges a write before its disk or a replica has it. What that
// may lose, and what Firn does then, is in docs/protocol.md; [Store.Examine] says
// how a server is set, and [Store.Settle] waits for replicas.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
)

// Config is what [New] makes a store of.
type Config struct {
	// Key names the sorted set. Applications that share a server and should not
	// see each other's pools have different ones. Default: "firn".
	Key string
	// Replicas is how many replicas [Store.Settle] waits for. Default: 1 if the
	// primary has any when the store is opened, else none. Negative: none.
	Replicas int
	// SettleTimeout bounds that wait; at least 1ms. Default: 1s.
	SettleTimeout time.Duration
}

const (
	defaultKey           = "firn"
	defaultSettleTimeout = time.Second
)

// Store is a [store.Store] in a Redis. Make one with [Open] or [New]. It is a
// [store.Clock], a [store.Settler] and [store.Examined] too.
type Store struct {
	client redis.UniversalClient
	cfg    Config
	closed atomic.Bool
}

// New returns a store over client, which Close closes. It asks the server for
// its replicas and writes nothing.
//
// The client must not repeat commands (MaxRetries -1), lest a write that was
// applied be answered as a conflict, and must read from the primary.
func New(ctx context.Context, client redis.UniversalClient, cfg Config) (*Store, error) {
	if cfg.Key == "" {
		cfg.Key = defaultKey
	}
	if cfg.SettleTimeout == 0 {
		cfg.SettleTimeout = defaultSettleTimeout
	}
	s := &Store{client: client, cfg: cfg}
	if cfg.SettleTimeout < time.Millisecond {
		return nil, fmt.Errorf("redisstore: SettleTimeout is %v: at least 1ms is needed", cfg.SettleTimeout)
	}
	there, err := s.replication(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Replicas == 0 && there.replicas > 0 {
		s.cfg.Replicas = 1
	}
	return s, nil
}

// A register is a member of the set: its key, a zero byte, its revision as 16
// hexadecimal digits, a line feed and its value. All have the score 0, so the set
// is in the order of their bytes. Keys have no zero byte, so the members of one
// key are those between key+"\x00" and key+"\x01", and there is one at most.
const (
	endOfKey      = "\x00"
	afterEndOfKey = "\x01"
	revisionSize  = 16
	// afterAll sorts after every printable character.
	afterAll = "\U0010FFFF"
)

func digits(r store.Revision) string { return fmt.Sprintf("%0*x", revisionSize, uint64(r)) }

func parse(member string) (store.Entry, error) {
	key, rest, ok := strings.Cut(member, endOfKey)
	if !ok || len(rest) <= revisionSize || rest[revisionSize] != '\n' {
		return store.Entry{}, fmt.Errorf("%w: member %.40q is not one of Firn's: use another key, or remove it", store.ErrRefused, member)
	}
	revision, err := strconv.ParseUint(rest[:revisionSize], 16, 64)
	if err != nil {
		return store.Entry{}, fmt.Errorf("%w: member %.40q is not one of Firn's: %w", store.ErrRefused, member, err)
	}
	return store.Entry{Key: key, Value: []byte(rest[revisionSize+1:]), Revision: store.Revision(revision)}, nil
}

// compareAndSwap writes a register. KEYS: the set. ARGV: key, old revision or
// nothing, new revision, value. It answers 1 if the register has the new
// revision now. A second run with the same new revision, which is drawn at
// random, is the first one repeated, and changes nothing.
//
// The new member is added before the old one goes: if the server is out of
// memory, it refuses the first write of a script.
var compareAndSwap = redis.NewScript(`
local head = ARGV[1] .. '\0'
local found = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. head, '(' .. ARGV[1] .. '\1', 'LIMIT', 0, 1)[1]
local revision = ''
if found then revision = string.sub(found, #head + 1, #head + 16) end
if revision == ARGV[3] then return 1 end
if revision ~= ARGV[2] then return 0 end
redis.call('ZADD', KEYS[1], 0, head .. ARGV[3] .. '\n' .. ARGV[4])
if found then redis.call('ZREM', KEYS[1], found) end
return 1
`)

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	list, err := s.members(ctx, "["+key+endOfKey, "("+key+afterEndOfKey)
	if err != nil {
		return store.Entry{}, s.wrap("get", key, err)
	}
	if len(list) == 0 {
		return store.Entry{}, fmt.Errorf("redisstore: get %q: %w", key, store.ErrNotFound)
	}
	return list[0], nil
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	list, err := s.members(ctx, "["+prefix, "("+prefix+afterAll)
	if err != nil {
		return nil, s.wrap("list", prefix, err)
	}
	return list, nil
}

func (s *Store) members(ctx context.Context, from, to string) ([]store.Entry, error) {
	members, err := await(ctx, s, func() ([]string, error) {
		return s.client.ZRangeByLex(ctx, s.cfg.Key, &redis.ZRangeBy{Min: from, Max: to}).Result()
	})
	if err != nil {
		return nil, err
	}
	list := make([]store.Entry, len(members))
	for i, member := range members {
		if list[i], err = parse(member); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	if err := store.CheckValue(key, value); err != nil {
		return store.Entry{}, err
	}
	was := ""
	if old != 0 {
		was = digits(old)
	}
	revision := store.Revision(rand.Int64() | 1) // never 0
	written, err := await(ctx, s, func() (int, error) {
		return compareAndSwap.Run(ctx, s.client, []string{s.cfg.Key}, key, was, digits(revision), value).Int()
	})
	if err != nil {
		return store.Entry{}, s.wrap("compare-and-swap", key, err)
	}
	if written == 0 {
		return store.Entry{}, fmt.Errorf("redisstore: compare-and-swap %q: %w: the revision is not %d", key, store.ErrConflict, old)
	}
	if err := s.Settle(ctx); err != nil {
		return store.Entry{}, err
	}
	return store.Entry{Key: key, Value: value, Revision: revision}, nil
}

// now asks for the time on the server that has the set, of a cluster too.
var now = redis.NewScript(`return redis.call('TIME')`)

// Now implements [store.Clock].
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	t, err := await(ctx, s, func() (time.Time, error) {
		parts, err := now.Run(ctx, s.client, []string{s.cfg.Key}).Int64Slice()
		if err != nil {
			return time.Time{}, err
		}
		if len(parts) != 2 {
			return time.Time{}, fmt.Errorf("TIME answers %d numbers", len(parts))
		}
		return time.Unix(parts[0], parts[1]*int64(time.Microsecond)), nil
	})
	if err != nil {
		return t, s.wrap("read the time of", s.cfg.Key, err)
	}
	return t, nil
}

// Close closes the client. It may be called twice.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.client.Close(); err != nil {
		return s.wrap("close", s.cfg.Key, err)
	}
	return nil
}

// atOnce is how far two timers for the same deadline may fire apart.
const atOnce = 50 * time.Millisecond

// await makes a call that ends with ctx. The client looks at a deadline but not
// at a cancellation while it waits for an answer; what is left behind then ends
// with its own time-out.
func await[T any](ctx context.Context, s *Store, call func() (T, error)) (T, error) {
	var none T
	if err := store.ContextError(ctx); err != nil {
		return none, err
	}
	if s.closed.Load() {
		return none, fmt.Errorf("%w: the store is closed", store.ErrUnavailable)
	}
	if ctx.Done() == nil {
		return call()
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := call()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		var timeout net.Error
		if deadline, ok := ctx.Deadline(); ok && errors.As(a.err, &timeout) && timeout.Timeout() && time.Until(deadline) < atOnce {
			<-ctx.Done() // the client gave the connection the same deadline, and that was quicker
			return none, store.ContextError(ctx)
		}
		return a.value, a.err
	case <-ctx.Done():
		return none, store.ContextError(ctx)
	}
}
