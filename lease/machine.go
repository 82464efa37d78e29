package lease

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/store/filestore"
)

// OnThisMachine is [Open] with this user's store on this machine, see [filestore.Home]. Ids are unique
// among this user's processes on this machine with the same home and XDG_STATE_HOME. Other users,
// machines and containers have other stores, and may issue equal ids: give all one store, and call Open.
// In a container it logs a warning that says so, to [slog.Default] without a Config.Log.
//
// Errors are those of Open and of package filestore; [store.ErrRefused] in Kubernetes.
func OnThisMachine(ctx context.Context, cfg Config) (*Lease, error) {
	if cfg.Store != nil {
		return nil, config.Mistake("lease", "Store", "is chosen by OnThisMachine: leave it out, or call Open")
	}
	dir, err := filestore.Home()
	if err != nil {
		return nil, err
	}
	s, err := filestore.Create(dir)
	if err != nil {
		return nil, err
	}
	if filestore.InContainer() {
		cmp.Or(cfg.Log, slog.Default()).Warn("in a container: other containers have other stores, and their ids can be equal", "store", dir)
	}
	cfg.Store = s
	return Open(ctx, cfg)
}
