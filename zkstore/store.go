// Package zkstore is a [store.Store] in ZooKeeper.
//
//	s, err := zkstore.Open(ctx, "zookeeper://10.0.0.5:2181,10.0.0.6:2181/shop")
//	l, err := lease.Open(ctx, lease.Config{Slots: lease.SlotsConfig{Store: s}})
//
// A register is a znode; its data is the register's revision, a line feed and
// the register's value. The slashes of a key separate levels. Look with zkCli:
// ls -R /firn, get /firn/default/slot/0/0017.
//
// Nothing is ephemeral: a lease rests on its fence, not on a session, and a
// session that is lost is just followed by another.
//
// ZooKeeper's own versions count from 0 for each znode that is made, so the
// revision is drawn at random. Below each register's znode is a marker, a znode
// without data that is named after the revision ("%@" and its digits). A write
// reads the znode, sees that the revision is the one to be replaced, and in one
// transaction sets the data of that version, deletes the marker of the old revision
// and creates that of the new one. The version finds whatever else was written to
// this znode, by hand too; the marker finds a znode that was made anew meanwhile, or
// restored, and has come to the same version. A register set or restored by hand has
// no marker, and gets one at the next write. Delete a register with deleteall.
//
// A read is preceded by a sync, since servers other than the leader may be
// behind. ZooKeeper answers it without asking a majority: a leader that was cut
// off, and has not noticed yet (syncLimit ticks), may answer with what was
// overwritten since. A write that relies on such a read is a conflict.
//
// What ZooKeeper acknowledged, a majority has on disk. It has no clock to compare
// with. A life of the store is an epoch of the ensemble: only a new leader can have
// forgotten what was acknowledged, and a copy of the data that is put back begins an
// epoch above all that it knows of. A server that is no ensemble has no epochs, and
// so no name for its lives. The names of the znodes on one level must
// fit in a packet of 1 MB (jute.maxbuffer), which is some 30,000 of Firn's.
package zkstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/internal/backend"
	"github.com/firn-id/firn/store"
)

// Store is a [store.Store] in a ZooKeeper. Make one with [Open]. It is
// [store.Examined] too.
type Store struct {
	calls   *backend.Calls
	session *session
	root    string // the path that all are below, without a slash at its end
	acl     []zk.ACL
}

const (
	// maxReads bounds the reads of one listing under way.
	maxReads = 64
	// maxLooks bounds how often a read is tried whose connection is lost under it.
	maxLooks = 3
	// maxSwaps bounds how often a write is tried whose marker has to be made first.
	maxSwaps = 5
)

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	return s.calls.Get(ctx, key, synced(s, func(context.Context) (store.Entry, error) {
		e, _, err := s.read(key)
		return e, err
	}))
}

// sync has the server that this handle speaks to catch up with the leader.
func (s *Store) sync() error {
	_, err := s.session.conn.Load().Sync("/") // the path does not matter
	return err
}

// read reads a znode as far as the server it asks has it. A register that is
// not there is [store.ErrNotFound]. So is a znode without data, which is only there for
// others below it, but it has a version.
func (s *Store) read(key string) (store.Entry, *zk.Stat, error) {
	data, stat, err := s.session.conn.Load().Get(s.path(key))
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
	return s.calls.Swap(ctx, key, value, func(ctx context.Context, drawn store.Revision) (life string, err error) {
		w := write{Store: s, key: key, path: s.path(key), old: old, revision: drawn, data: []byte(backend.Encode(drawn, value))}
		if old == 0 {
			return w.create(ctx)
		}
		return w.replace(ctx)
	})
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	list, err := backend.Do(ctx, s.calls, "list", prefix, synced(s, func(ctx context.Context) ([]store.Entry, error) {
		w := walk{Store: s, prefix: prefix, reads: make(chan struct{}, maxReads)}
		w.below(ctx, prefix[:strings.LastIndexByte(prefix, '/')+1])
		w.group.Wait()
		return w.found, w.err
	}))
	slices.SortFunc(list, func(a, b store.Entry) int { return strings.Compare(a.Key, b.Key) })
	return list, err
}

// A walk reads what is below a level, many znodes at a time.
type walk struct {
	*Store
	prefix string
	reads  chan struct{}
	group  sync.WaitGroup

	mu    sync.Mutex
	found []store.Entry
	err   error // the latest: they are likely all the same
}

// below reads the level named by a key that ends with a slash, or all.
func (w *walk) below(ctx context.Context, level string) {
	path := cmp.Or(w.root, "/")
	if level != "" {
		path = w.path(strings.TrimSuffix(level, "/"))
	}
	names, _, err := w.session.conn.Load().Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		w.add(store.Entry{}, err)
	}
	for _, name := range names {
		if err := store.ContextError(ctx); err != nil { // nobody waits any more
			w.add(store.Entry{}, err)
			return
		}
		segment, ok := unescape(name)
		key := level + segment
		// Markers, and what is another's below the root, are passed over.
		if !ok || !strings.HasPrefix(key, w.prefix) && !strings.HasPrefix(w.prefix, key+"/") {
			continue
		}
		w.reads <- struct{}{}
		w.group.Go(func() {
			e, stat, err := w.read(key)
			<-w.reads
			w.add(e, err)
			if stat != nil && !onlyMarker(stat) {
				w.below(ctx, key+"/")
			}
		})
	}
}

// onlyMarker reports whether there is nothing below a znode but its marker, if
// that. One child that came in the same transaction as the data is the marker.
func onlyMarker(stat *zk.Stat) bool {
	return stat.NumChildren == 0 || stat.NumChildren == 1 && stat.DataLength > 0 && stat.Pzxid == stat.Mzxid
}

// add adds what was read to what was found. It may have gone meanwhile.
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
func (s *Store) Close() error { return s.calls.Close(s.root, s.session.close) }

// synced is a read before which the server catches up with the leader. If the connection
// is lost under it, it is made again over the next one.
func synced[T any](s *Store, read func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (value T, err error) {
		for range maxLooks {
			conn := s.session.conn.Load()
			if err = s.sync(); err == nil {
				value, err = read(ctx)
			}
			if err == nil && s.session.conn.Load() != conn {
				err = zk.ErrConnectionClosed // it may have read from a server that did not catch up
			}
			lost := errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionExpired)
			if !lost || ctx.Err() != nil {
				break
			}
		}
		return value, err
	}
}
