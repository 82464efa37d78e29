// Package etcdstore is a [store.Store] in etcd v3.
//
//	s, err := etcdstore.Open(ctx, "etcd://10.0.0.5:2379,10.0.0.6:2379/shop")
//	l, err := lease.Open(ctx, lease.Config{Slots: lease.SlotsConfig{Store: s}})
//
// A register is a key of etcd's; its value is the register's revision, a line
// feed and the register's value. Look with: etcdctl get --prefix firn/.
//
// The revision is drawn at random, since etcd's own begin anew when a cluster
// is, and go back when an older snapshot is restored. A write compares it on the
// server, by the range of values that begin with it.
//
// What etcd acknowledged, a majority has on disk. It has no clock to compare
// with. A life of the store is the cluster's id. It is another when a cluster is
// made of a snapshot in the usual way, with a new --initial-cluster-token; with the
// same names, addresses and token it is the same, and nothing tells.
package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/internal/backend"
	"github.com/firn-id/firn/store"
)

// Store is a [store.Store] in an etcd. Make one with [Open] or [New]. It is
// [store.Examined] too.
type Store struct {
	client *clientv3.Client
	prefix string
	closed atomic.Bool
}

// callTimeout bounds a call whose context does not end earlier: the client
// itself tries for much longer.
const callTimeout = 10 * time.Second

// New returns a store over client, which Close closes, whose keys all begin with
// prefix. It reads once, to say what is wrong at once.
func New(ctx context.Context, client *clientv3.Client, prefix string) (*Store, error) {
	s := &Store{client: client, prefix: prefix}
	if _, err := s.read(ctx, prefix+" ", clientv3.WithCountOnly(), clientv3.WithPrefix()); err != nil {
		return nil, s.wrap("open", prefix, err)
	}
	return s, nil
}

func (s *Store) parse(key, value []byte) (store.Entry, error) {
	revision, rest, ok := backend.Decode(string(value))
	if !ok {
		return store.Entry{}, fmt.Errorf("%w: the value of key %q was not written by Firn: use another prefix, or remove it", store.ErrRefused, key)
	}
	return store.Entry{Key: strings.TrimPrefix(string(key), s.prefix), Value: rest, Revision: revision}, nil
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	list, err := s.read(ctx, s.prefix+key)
	if err != nil {
		return store.Entry{}, s.wrap("get", key, err)
	}
	if len(list) == 0 {
		return store.Entry{}, fmt.Errorf("etcdstore: get %q: %w", key, store.ErrNotFound)
	}
	return list[0], nil
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	options := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend)}
	from := s.prefix + prefix
	if from == "" {
		from, options[0] = "\x00", clientv3.WithFromKey() // all keys
	}
	list, err := s.read(ctx, from, options...)
	if err != nil {
		return nil, s.wrap("list", prefix, err)
	}
	return list, nil
}

func (s *Store) read(ctx context.Context, key string, options ...clientv3.OpOption) ([]store.Entry, error) {
	answer, err := call(ctx, s, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, key, options...)
	})
	if err != nil {
		return nil, err
	}
	list := make([]store.Entry, len(answer.Kvs))
	for i, kv := range answer.Kvs {
		if list[i], err = s.parse(kv.Key, kv.Value); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	revision, err := backend.Draw(key, value)
	if err != nil {
		return store.Entry{}, err
	}
	name := s.prefix + key
	condition := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(name), "=", 0)}
	if old != 0 {
		// Not there, it would compare as empty, which lies before the range.
		condition = []clientv3.Cmp{
			clientv3.Compare(clientv3.Value(name), ">", backend.Digits(old)),
			clientv3.Compare(clientv3.Value(name), "<", backend.Digits(old)+"\v"), // after a line feed
		}
	}
	answer, err := call(ctx, s, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).If(condition...).
			Then(clientv3.OpPut(name, backend.Encode(revision, value))).Commit()
	})
	if err != nil {
		return store.Entry{}, s.wrap("compare-and-swap", key, err)
	}
	if !answer.Succeeded {
		return store.Entry{}, fmt.Errorf("etcdstore: compare-and-swap %q: %w: the revision is not %d", key, store.ErrConflict, old)
	}
	return store.Entry{Key: key, Value: value, Revision: revision, Life: strconv.FormatUint(answer.Header.ClusterId, 16)}, nil
}

// Close closes the client. It may be called twice.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return s.wrap("close", s.prefix, err)
	}
	return nil
}

// call makes a call that ends with ctx, or after callTimeout.
func call[T any](ctx context.Context, s *Store, do func(context.Context) (T, error)) (T, error) {
	var none T
	if err := store.ContextError(ctx); err != nil {
		return none, err
	}
	if s.closed.Load() {
		return none, fmt.Errorf("%w: the store is closed", store.ErrUnavailable)
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := do(bounded)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		if _, kind := classify(err); errors.Is(kind, store.ErrRefused) {
			return none, err // which is certain, whatever ctx says
		}
		return none, store.ContextError(ctx)
	case bounded.Err() != nil:
		return none, fmt.Errorf("%w: no answer within %v: %w", store.ErrUnavailable, callTimeout, err)
	default:
		return none, err
	}
}
