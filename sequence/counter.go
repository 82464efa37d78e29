package sequence

import (
	"container/list"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// A counter is what is known of a record. It only decides which request gets which ids.
type counter struct {
	start, max int64

	read     bool           // revision and last are worth a try; else the record is read first
	revision store.Revision // 0: there is no record
	last     int64          // what the record says was used last; 0 without one
	high     int64          // the highest last that any record was seen to have
}

// learn takes in what the record is now, acknowledged or only seen.
func (c *counter) learn(last int64, revision store.Revision) {
	c.read, c.last, c.revision = true, last, revision
	c.high = max(c.high, last)
}

// base is the id after which the next addition begins.
func (c *counter) base() int64 {
	if c.revision == 0 {
		return max(c.high, c.start-1)
	}
	return c.high
}

// setBack reports whether the record lies below what is known.
func (c *counter) setBack() bool { return c.last < c.high }

// A request is one call that waits.
type request struct {
	n      int64 // how many ids it wants; 0 for a raise
	partly bool  // fewer will do
	least  int64 // where the counter is raised to before
	block  int64 // all ids are of one block of so many; 0: of any

	place *list.Element // among those who wait, or no more; guarded by the sequence's mu
	left  bool          // its caller has gone; guarded likewise
	done  chan struct{} // closed once the rest is set

	fits  bool // it takes part in the addition under way
	first firn.ID
	got   int64
	err   error
}

// share divides what follows the base among a batch, in its order, and returns what is used
// last then. Requests that do not fit are left out, so nothing can wrap.
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
		r.first = firn.ID(from + 1) // nobody's for a raise, which takes none
		last = from + r.got
	}
	return last
}

// room is how many ids a request may have above one.
func (c *counter) room(last int64, r *request) int64 { return max(c.end(last, r)-last, 0) }

// end is the greatest id that a request may have above one.
func (c *counter) end(last int64, r *request) int64 {
	if r.block == 0 {
		return c.max
	}
	// The end of last's own block; the next block is for whoever asks for that.
	begins := last - last%r.block
	if c.max-begins < r.block-1 { // the block's end may be above 2^63
		return c.max
	}
	return begins + r.block - 1
}

// exhausted reports whether a request could not be served even alone: the addition of those
// before it, which leaves it no room, may yet fail.
func (c *counter) exhausted(r *request) bool {
	left := c.room(max(c.base(), r.least), r)
	return left < r.n && (!r.partly || left == 0)
}
