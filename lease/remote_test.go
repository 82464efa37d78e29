package lease

import (
	"context"
	"time"

	"github.com/firn-id/firn/store"
)

// A remote store is one on another host, with a clock of its own.
type remote struct {
	store.Store
	clock func() time.Time
	life  *string // nil: it has no life
}

func (r remote) Traits() store.Traits { return store.Traits{Clock: r} }

func (r remote) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	e, err := r.Store.CompareAndSwap(ctx, key, old, value)
	if err == nil && r.life != nil {
		e.Life = *r.life
	}
	return e, err
}

func (r remote) Now(context.Context) (time.Time, error) { return r.clock(), nil }

// shared joins over the network.
func (w *world) shared(c *Config) { c.Store = remote{c.Store, w.time.Wall, nil} }

// grace is how long newcomers wait, by the defaults.
const grace = 12 * time.Second

// A skewed machine has a wall clock that is off.
type skewed struct {
	*machine
	offset time.Duration
}

func (s skewed) Wall() time.Time { return s.machine.Wall().Add(s.offset) }
