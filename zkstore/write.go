package zkstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// A write is one compare-and-swap in progress.
type write struct {
	*Store
	key, path     string
	old, revision store.Revision
	data          []byte
}

// markerPrefix begins the names of markers. Escape never produces such a name.
const markerPrefix = "%@"

// marker is the path of the register's marker at a revision; at revision 0, of a mere level.
func (w *write) marker(r store.Revision) string {
	return w.path + "/" + markerPrefix + backend.Digits(r)
}

// create writes a new register, and the levels above it.
func (w *write) create(ctx context.Context) (life string, err error) {
	ops := []any{
		&zk.CreateRequest{Path: w.path, Acl: w.acl},
		&zk.SetDataRequest{Path: w.path, Data: w.data}, // its answer has the epoch
		&zk.CreateRequest{Path: w.marker(w.revision), Acl: w.acl},
	}
	life, err = w.transact(ctx, ops...)
	if errors.Is(err, zk.ErrNoNode) {
		if err := w.makeAbove(); err != nil {
			return "", err
		}
		life, err = w.transact(ctx, ops...)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return w.replace(ctx) // a register, or a level
	}
	return life, err
}

// makeAbove creates the missing levels above the register.
func (w *write) makeAbove() error {
	for i := 1; i < len(w.path); i++ {
		if w.path[i] != '/' {
			continue
		}
		if _, err := w.conn.Load().Create(w.path[:i], nil, 0, w.acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// replace writes a znode whose revision is old. Its server may be behind: the version detects that,
// unless the server does not even have revision old yet. So before a conflict, replace lets the server
// catch up.
func (w *write) replace(ctx context.Context) (life string, err error) {
	stat, err := w.look()
	if errors.Is(err, store.ErrConflict) {
		if err := w.sync(); err != nil {
			return "", err
		}
		stat, err = w.look()
	}
	for range maxSwaps {
		if err != nil {
			return "", err
		}
		life, swapErr := w.transact(ctx,
			&zk.SetDataRequest{Path: w.path, Data: w.data, Version: stat.Version},
			&zk.DeleteRequest{Path: w.marker(w.old), Version: -1},
			&zk.CreateRequest{Path: w.marker(w.revision), Acl: w.acl},
		)
		if !errors.Is(swapErr, zk.ErrBadVersion) && !errors.Is(swapErr, zk.ErrNoNode) {
			return life, swapErr
		}
		// Either the revision has changed, which the next look finds: the server has caught up with the failed
		// transaction. Or there was a manual write: the old revision again, or no marker.
		if stat, err = w.look(); err == nil && errors.Is(swapErr, zk.ErrNoNode) {
			stat, err = w.mark(ctx, stat.Version)
		}
	}
	return "", fmt.Errorf("%w: the znode is written by hand again and again", store.ErrUnavailable)
}

// look reads the znode, and returns [store.ErrConflict] if its revision is not old.
func (w *write) look() (*zk.Stat, error) {
	e, stat, err := w.read(w.key)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return nil, err
	case stat == nil, e.Revision != w.old:
		return nil, fmt.Errorf("%w: the revision is not %d", store.ErrConflict, w.old)
	}
	return stat, nil
}

// mark creates the missing marker of a znode whose revision is old, and looks again. If the znode was
// re-created right before, the revision has changed, and the marker is harmless.
func (w *write) mark(ctx context.Context, version int32) (*zk.Stat, error) {
	_, err := w.transact(ctx,
		&zk.CheckVersionRequest{Path: w.path, Version: version},
		&zk.CreateRequest{Path: w.marker(w.old), Acl: w.acl},
	)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	return w.look()
}

// transact makes all changes or no change; also no change if the caller has stopped waiting. It returns the life of the
// store in which data was set. Its error is that of the first change that fails.
func (w *write) transact(ctx context.Context, ops ...any) (life string, err error) {
	if err := store.ContextError(ctx); err != nil {
		return "", err
	}
	answers, err := w.conn.Load().Multi(ops...)
	for _, a := range answers {
		// The epoch is the upper half of a change's number; that of a standalone server is 0 at first.
		if a.Stat != nil && a.Stat.Mzxid>>32 != 0 {
			life = strconv.FormatInt(a.Stat.Mzxid>>32, 10)
		}
	}
	return life, err
}
