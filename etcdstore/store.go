// Package etcdstore is a [store.Store] in etcd v3, for leases, segments and sequences.
//
//	s, err := etcdstore.Open(ctx, "etcd://10.0.0.5:2379,10.0.0.6:2379/shop")
//	l, err := lease.Open(ctx, lease.Config{Store: s})
//
// A register is a key in etcd; its value is the register's revision, a line feed and the register's
// value. Inspect it with: etcdctl get --prefix firn/.
//
// The revision is a random number: etcd's own start again in a new cluster, and go back with a restored
// snapshot. A write compares the revision on the server, by the range of values that begin with it.
//
// A life of the store is a term of a cluster: only a new leader can have lost acknowledged writes. An
// older copy begins a term above all that it knows of; restored with another token, another cluster.
//
// When not to use it: for more than some thousand writes a second, since each is a consensus round with a
// disk write. Leases write rarely; for sequences under load prefer Redis or a SQL database.
package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// Store is a [store.Store] in an etcd. Make one with [Open] or [OpenClient]: the zero value and nil are not
// usable.
type Store struct {
	client  *clientv3.Client
	prefix  string
	calls   *backend.Calls
	cluster atomic.Uint64 // the id of the cluster of the named members; 0 while unknown
	secures bool          // the client's dialer speaks TLS if the members do: to https:// it would be spoken twice
}

// maxStreams bounds calls in flight. They share a connection, on which proxies allow 100 (HAProxy) or more at a time; the
// client would let further ones wait in turn, and a lease's behind all others.
const maxStreams = 96

// OpenClient returns a store over client, which Close closes; all its keys begin with prefix, which is empty or ends with a
// slash: "shop/" is /shop in a URL of [Open]. It reads the key
// firn/ below that once, to report errors at once. What the clients of [Open] do by themselves is up to you:
//
//   - Without MaxUnaryRetries 1 it repeats calls that a proxy has given up, including writes.
//   - Without ConnectParams it stays away from a server that is back for up to two minutes.
//   - Without DialKeepAliveTime and DialKeepAliveTimeout it waits on a connection that the network has forgotten.
//   - With a Username it never gets into an etcd 3.4 again that was restarted.
//   - With package ordering it refuses a store that was set back.
//   - Where its name leads to another cluster, it stays with the former one for as long as that answers.
//
// Newcomers wait 12 s for a holder that the store has forgotten, so ids can repeat by each of these but the first.
func OpenClient(ctx context.Context, client *clientv3.Client, prefix string) (*Store, error) {
	var hosts []string
	for _, address := range client.Endpoints() { // HOST:PORT, or a URL
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			address = u.Host
		}
		if !strings.ContainsAny(address, "@/") {
			hosts = append(hosts, address)
		}
	}
	if prefix != "" && (!strings.HasSuffix(prefix, "/") || strings.Contains("/"+prefix, "//")) {
		return nil, fmt.Errorf("etcdstore: open prefix %q: %w: it must be empty, or end with a slash, as in %q, which a URL calls /shop. Keys that were written without that slash are in another place: copy them, or counters begin again", prefix, store.ErrRefused, "shop/")
	}
	if prefix != "" {
		if err := store.CheckKey(prefix); err != nil {
			return nil, fmt.Errorf("etcdstore: open prefix %q: %w", prefix, err)
		}
	}
	s := &Store{client: client, prefix: prefix, calls: backend.NewCalls("etcdstore", backend.NewLanes(maxStreams), classify, hosts...)}
	return backend.Do(ctx, s.calls, "open prefix", prefix, func(ctx context.Context) (*Store, error) {
		// A key that Firn's roles cover: all its keys begin so.
		if _, err := s.read(ctx, prefix+"firn/", clientv3.WithCountOnly(), clientv3.WithRange(after(prefix+"firn/"))); err != nil {
			return nil, err
		}
		return s, nil
	})
}

func (s *Store) parse(key, value []byte) (store.Entry, error) {
	e, err := backend.Decode(string(key), string(value), "prefix")
	e.Key = strings.TrimPrefix(e.Key, s.prefix)
	return e, err
}

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits { return store.Traits{Examine: s.examine} }

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	return s.calls.Get(ctx, key, func(ctx context.Context) (store.Entry, error) {
		return backend.First(s.read(ctx, s.prefix+key, clientv3.WithRange(after(s.prefix+key))))
	})
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	options := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend)}
	from := s.prefix + prefix
	if from == "" {
		from, options[0] = "\x00", clientv3.WithFromKey() // all keys
	}
	return s.calls.List(ctx, prefix, func(ctx context.Context) ([]store.Entry, error) {
		return s.read(ctx, from, options...)
	})
}

// after returns the end of the range of one key. Range reads and compares go to the server; a proxy with
// a leasing prefix may answer single-key ones from its memory, even after a restore.
func after(key string) string { return key + "\x00" }

func (s *Store) read(ctx context.Context, key string, options ...clientv3.OpOption) ([]store.Entry, error) {
	answer, err := s.client.Get(ctx, key, options...)
	if err == nil {
		err = s.agree(ctx, answer.Header)
	}
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
	name := s.prefix + key
	condition := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(name), "=", 0).WithRange(after(name))}
	if old != 0 {
		// A missing key compares as empty, which is below the range.
		condition = []clientv3.Cmp{
			clientv3.Compare(clientv3.Value(name), ">", backend.Digits(old)).WithRange(after(name)),
			clientv3.Compare(clientv3.Value(name), "<", backend.Digits(old)+"\v").WithRange(after(name)), // after a line feed
		}
	}
	return s.calls.Swap(ctx, key, value, func(ctx context.Context, e store.Entry) (life string, err error) {
		answer, err := s.client.Txn(ctx).If(condition...).Then(clientv3.OpPut(name, backend.Encode(e.Revision, e.Value))).Commit()
		if err == nil {
			err = s.agree(ctx, answer.Header)
		}
		switch {
		case err != nil:
			return "", err
		case !answer.Succeeded:
			return "", fmt.Errorf("%w: the revision is not %d", store.ErrConflict, old)
		default:
			return fmt.Sprintf("%x/%d", answer.Header.GetClusterId(), answer.Header.GetRaftTerm()), nil
		}
	})
}

// Close closes the client. It may be called twice.
func (s *Store) Close() error {
	return s.calls.Close(s.prefix, func() error {
		err := s.client.Close()
		if errors.Is(err, context.Canceled) { // closing cancels its own calls
			return nil
		}
		return err
	})
}
