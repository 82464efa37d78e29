package issuing

import (
	"context"
	"log/slog"

	"github.com/firn-id/firn/store"
)

// begins is the store of a counter. It logs that the counter is new there: after a move to another store, it would begin
// again at its first number without a word.
type begins struct {
	store.Store
	log *slog.Logger
}

// CompareAndSwap implements [store.Store].
func (b begins) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	written, err := b.Store.CompareAndSwap(ctx, key, old, value)
	if err == nil && old == 0 {
		b.log.Info("the counter is new in this store: unless it is raised, it begins at its first number")
	}
	return written, err
}
