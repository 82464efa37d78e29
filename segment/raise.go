package segment

import (
	"context"
	"slices"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/turns"
)

// Raise sees to it that ids from now on are not below least, as for a counter
// that takes over from another, or a store that has forgotten some: what is held
// below is dropped, and the counter in the store is raised, above all that is held
// here too. It returns when that has been done; errors are those of Next, and a
// *[firn.RangeError] for a least that is negative or above Max. Other processes go on
// with the ranges they hold, and give none of them back. A [Source] of one's own is asked only where nothing
// is held that is not below least: raise its counter by its own means.
func (n *Name) Raise(ctx context.Context, least firn.ID) error {
	if least < 0 || least > n.all.cfg.Max {
		return firn.NewRangeError("least id", int64(least), 0, int64(n.all.cfg.Max), "")
	}
	above, err := n.dropBelow(least)
	if err != nil {
		return err
	}
	if c, ok := n.all.source.(*counters); ok {
		limited, cancel := turns.WithTimeout(ctx, n.all.cfg.Time, callTimeout)
		defer cancel()
		if _, err := c.raise(limited, n.name, max(uint64(above)+1, uint64(c.cfg.Start))); err != nil {
			return err
		}
	}
	return n.Prepare(ctx)
}

// dropBelow drops what is held below least, and has nothing below it be used any
// more. It returns the greatest id held, issued or ruled out.
func (n *Name) dropBelow(least firn.ID) (above firn.ID, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return 0, firn.ErrClosed
	}
	if n.cell.Load().rest().First < least {
		n.retire()
	}
	n.floor = max(n.floor, least-1)
	n.chain = slices.DeleteFunc(n.chain, func(r Range) bool { return r.First < least })
	return n.above(), nil
}
