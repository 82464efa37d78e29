// Package zkstore is a [store.Store] in ZooKeeper, for leases, segments and sequences.
//
//	s, err := zkstore.Open(ctx, "zookeeper://10.0.0.5:2181,10.0.0.6:2181/shop")
//	l, err := lease.Open(ctx, lease.Config{Store: s})
//
// A register is a znode; its data is the register's revision, a line feed and the register's value. The
// slashes of a key separate levels. Inspect it with zkCli: ls -R /firn, get /firn/default/slot/0/0017. No
// znode is ephemeral: a lease rests on its fence, not on a session.
//
// ZooKeeper's own versions begin at 0 for each new znode, so the revision is drawn at random. Below each
// register is its marker, a znode without data, named after the revision ("%@" and its digits). A write
// reads the znode and compares the revision. Then, in one transaction, it sets the data at that version,
// deletes the marker of the old revision and creates that of the new one. The version detects other
// writes to this znode, including manual ones. The marker detects a znode that was deleted and
// re-created, or restored, meanwhile and has reached the same version. A register set or restored by hand
// gets its marker at the next write. Delete a register with deleteall.
//
// A sync precedes each read, since servers other than the leader may be behind. ZooKeeper answers a sync
// without a majority: a leader that was cut off, and has not noticed yet (syncLimit ticks), may return
// overwritten data. A write based on such a read fails with a conflict.
//
// A life of the store is an epoch of the ensemble: only a new leader can have lost acknowledged writes,
// and an older copy begins an epoch above all that it knows of, except a copy restored under a running
// server. A server that runs alone stays in the epoch of its data.
//
// The names of the znodes on one level must fit in a packet of 1 MB (jute.maxbuffer): some 30,000 of
// Firn's. Do not use it for more names, or for sequences under load: each write is two exchanges and a
// consensus round.
package zkstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
)

// Store is a [store.Store] in a ZooKeeper. Make one with [Open]: the zero value and nil are not usable.
type Store struct {
	calls   *backend.Calls
	servers []string
	root    string // the path above all registers, without a final slash
	auth    []byte // user and password for the scheme digest; nil: no user
	acl     []zk.ACL

	dialer   *dial.Dialer            // of all sessions: it knows which servers hang
	report   dial.Report             // of connections that were ended: the client says only that they are closed
	conn     atomic.Pointer[zk.Conn] // the current session
	stop     context.CancelFunc      // ends the watch
	watching sync.WaitGroup
}

const (
	maxReads = 64 // in flight for one listing
	maxLooks = 3  // tries of a read that loses its connection
	maxSwaps = 5  // tries of a write that must first create its marker
)

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits { return store.Traits{Examine: s.examine} }

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	return s.calls.Get(ctx, key, synced(s, func(context.Context) (store.Entry, error) {
		e, _, err := s.read(key)
		return e, err
	}))
}

// sync makes the server of this handle catch up with the leader.
func (s *Store) sync() error {
	_, err := s.conn.Load().Sync("/") // any path will do
	return err
}

// read reads a znode as its server has it. A missing register is [store.ErrNotFound]. So is a mere level,
// a znode without data, but it has a version.
func (s *Store) read(key string) (store.Entry, *zk.Stat, error) {
	data, stat, err := s.conn.Load().Get(s.path(key))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return store.Entry{}, nil, store.ErrNotFound
	case err != nil:
		return store.Entry{}, nil, err
	case len(data) == 0:
		return store.Entry{}, stat, store.ErrNotFound
	}
	e, err := backend.Decode(key, string(data), "path")
	return e, stat, err
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	return s.calls.Swap(ctx, key, value, func(ctx context.Context, e store.Entry) (life string, err error) {
		w := write{Store: s, key: key, path: s.path(key), old: old, revision: e.Revision, data: []byte(backend.Encode(e.Revision, e.Value))}
		if old == 0 {
			return w.create(ctx)
		}
		return w.replace(ctx)
	})
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	list, err := s.calls.List(ctx, prefix, synced(s, func(ctx context.Context) ([]store.Entry, error) {
		w := walk{Store: s, prefix: prefix, reads: make(chan struct{}, maxReads)}
		w.below(ctx, prefix[:strings.LastIndexByte(prefix, '/')+1])
		w.group.Wait()
		return w.found, w.err
	}))
	slices.SortFunc(list, func(a, b store.Entry) int { return strings.Compare(a.Key, b.Key) })
	return list, err
}

// A walk lists what is below a level, reading many znodes at a time.
type walk struct {
	*Store
	prefix string
	reads  chan struct{}
	group  sync.WaitGroup

	mu    sync.Mutex
	found []store.Entry
	size  int   // bytes of names and registers, which each come in an answer of their own
	err   error // the latest: they are probably all the same
}

// below reads a level: a key with a slash at its end, or "" for all.
func (w *walk) below(ctx context.Context, level string) {
	path := cmp.Or(w.root, "/")
	if level != "" {
		path = w.path(strings.TrimSuffix(level, "/"))
	}
	names, _, err := w.conn.Load().Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		w.add(store.Entry{}, err)
	}
	for _, name := range names {
		if !w.charge(nameBytes + len(name)) {
			return
		}
		if err := store.ContextError(ctx); err != nil { // the caller has stopped waiting
			w.add(store.Entry{}, err)
			return
		}
		segment, ok := unescape(name)
		key := level + segment
		// Skip markers, and other programs' znodes below the root.
		if !ok || !strings.HasPrefix(key, w.prefix) && !strings.HasPrefix(w.prefix, key+"/") || len(key) > store.MaxKeyBytes {
			continue
		}
		w.reads <- struct{}{}
		w.group.Go(func() {
			e, stat, err := w.read(key)
			<-w.reads
			w.add(e, err)
			if !w.charge(len(e.Value)) {
				return
			}
			if stat != nil && !onlyMarker(stat) {
				w.below(ctx, key+"/")
			}
		})
	}
}

// onlyMarker reports whether a znode has no children except its marker, made together with the data.
func onlyMarker(stat *zk.Stat) bool {
	return stat.NumChildren == 0 || stat.NumChildren == 1 && stat.DataLength > 0 && stat.Pzxid == stat.Mzxid
}

// nameBytes is what a name costs beside its bytes.
const nameBytes = 64

// charge counts bytes. It reports whether the walk goes on: a server that makes up znodes without end must not take
// all memory.
func (w *walk) charge(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.size += n; w.size <= dial.MaxAnswer {
		return true
	}
	w.err = dial.Malformed("a list of more than %d MiB", dial.MaxAnswer>>20)
	return false
}

// add adds the result of a read. A register that was not found was deleted meanwhile.
func (w *walk) add(e store.Entry, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && strings.HasPrefix(e.Key, w.prefix):
		w.found = append(w.found, e)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		w.err = err
	}
}

// Close ends the session. It may be called twice.
func (s *Store) Close() error { return s.calls.Close(s.root, s.end) }

// synced makes a read after the server has caught up with the leader. If the connection is lost
// meanwhile, it repeats both over the next one.
func synced[T any](s *Store, read func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (value T, err error) {
		for range maxLooks {
			conn := s.conn.Load()
			if err = s.sync(); err == nil {
				value, err = read(ctx)
			}
			if err == nil && s.conn.Load() != conn {
				err = zk.ErrConnectionClosed // the read may be from a server that is behind
			}
			lost := errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired)
			if !lost || ctx.Err() != nil {
				break
			}
		}
		return value, err
	}
}
