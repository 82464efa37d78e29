package sequence

import (
	"container/list"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// A counter is what is known about a record. It only decides which request gets which ids.
type counter struct {
	start, max int64

	read     bool           // revision and last are worth a try; otherwise read the record first
	revision store.Revision // 0: there is no record
	last     int64          // the last id used, according to the record; 0 without a record
	high     int64          // the highest last that this process has seen in any record
}

// learn updates the counter from the record, whether acknowledged or only seen.
func (c *counter) learn(last int64, revision store.Revision) {
	c.read, c.last, c.revision = true, last, revision
	c.high = max(c.high, last)
}

// meet takes over the highest last that others of this process have seen.
func (c *counter) meet(high int64) {
	if high > c.high {
		c.high, c.read = high, false
	}
}

// base is the id after which the next addition begins.
func (c *counter) base() int64 { return max(c.high, c.start-1) }

// setBack reports whether the record lies below what is known.
func (c *counter) setBack() bool { return c.last < c.high }

// A request is one call that waits.
type request struct {
	n      int64 // how many ids it wants; 0 for a raise
	partly bool  // fewer will do
	least  int64 // the counter is first raised to this
	block  int64 // all ids lie in one block of this length; 0: no blocks

	place *list.Element // in Namespace.waiting, or no longer there; guarded by the sequence's mu
	left  bool          // its caller has gone; guarded likewise
	done  chan struct{} // closed once the rest is set

	fits  bool // it has a share of the addition in progress
	first firn.ID
	got   int64
	err   error
}

// share divides the ids after the base among a batch, in its order, and returns the last id
// used. It skips requests that do not fit, so nothing can wrap.
func (c *counter) share(batch []*request) int64 {
	last := c.base()
	for _, r := range batch {
		from := max(last, r.least)
		left := c.room(from, r)
		r.got = r.n
		if r.partly {
			r.got = min(r.n, left)
		}
		r.fits = r.got <= left && (r.got > 0 || r.n == 0)
		if !r.fits {
			continue
		}
		r.first = firn.ID(from + 1) // unused for a raise, which takes no ids
		last = from + r.got
	}
	return last
}

// room is how many ids a request may have above last.
func (c *counter) room(last int64, r *request) int64 { return max(c.end(last, r)-last, 0) }

// end is the greatest id that a request may have above last.
func (c *counter) end(last int64, r *request) int64 {
	if r.block == 0 {
		return c.max
	}
	// The end of last's own block; callers ask for the next block themselves.
	begins := last - last%r.block
	if c.max-begins < r.block-1 { // the block's end may be above 2^63
		return c.max
	}
	return begins + r.block - 1
}

// exhausted reports whether a request could not be served even alone. Requests before it may
// leave it no room, but their addition may still fail.
func (c *counter) exhausted(r *request) bool {
	left := c.room(max(c.base(), r.least), r)
	return left < r.n && (!r.partly || left == 0)
}
