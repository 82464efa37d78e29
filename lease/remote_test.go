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
}

func (r remote) Now(context.Context) (time.Time, error) { return r.clock(), nil }

// shared has a process join over the network.
func (w *world) shared(c *Config) { c.Slots.Store = remote{c.Slots.Store, w.time.Wall} }

// grace is how long newcomers wait, by the defaults.
const grace = 12 * time.Second
