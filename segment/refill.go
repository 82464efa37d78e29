package segment

import (
	"errors"
	"time"

	"github.com/firn-id/firn/internal/demand"
	"github.com/firn-id/firn/store/register"
)

// beyondPause is the wait after a range that lies above Max.
const beyondPause = time.Minute

// A refill decides when a name fetches a range, and how large it is. [Namespace].mu guards it.
type refill struct {
	all     *Segments
	supply  demand.Supply // its size is 0 until the first fetch
	depth   int           // ranges wanted ahead once the next is due
	running bool          // a fetch is in progress or queued
	starved bool          // a caller has waited for the fetch in progress; always so for the first

	fetches, failures int64
	err               error         // of the latest fetch
	inRow             int           // fetches that failed since one succeeded
	notBefore         time.Duration // after an error, no further fetch until then
}

// paused reports whether the latest fetch failed a short while ago.
func (f *refill) paused() bool {
	return f.err != nil && f.all.cfg.Time.Monotonic() < f.notBefore
}

// retry ends the pause after an error: the store has just answered.
func (f *refill) retry() { f.notBefore = f.all.cfg.Time.Monotonic() }

// due reports whether to fetch a range now, and sets where the next caller of c checks. Held is
// the number of ranges ahead; row says that a caller waits for more consecutive ids than they have.
func (f *refill) due(c *cell, held int, row bool) bool {
	word := min(c.word.Load(), c.end)
	mark, wanted := c.end, f.depth
	if word < c.due {
		mark = c.due
		wanted--
	}
	fetch := false
	if !f.running && (held < wanted || row) {
		if f.paused() {
			// In an outage, callers check more often as fewer ids are left.
			mark = min(mark, word+max(c.stride, (c.end-word)/16))
		} else {
			f.running, fetch = true, true
		}
	}
	c.mark.Store(mark)
	return fetch
}

// starve is called for each caller that has to wait. It returns the error of the latest fetch
// instead if there will be no other for a while.
func (f *refill) starve() error {
	if !f.running && f.paused() {
		return f.err
	}
	if !f.starved && f.err == nil {
		f.depth = min(f.depth*2, f.all.cfg.Chain) // all waiters for one fetch are one burst
	}
	f.starved = true
	return nil
}

// size returns how many ids to fetch, when so many have been issued.
func (f *refill) size(issued int64) int64 {
	now := f.all.cfg.Time.Monotonic()
	if f.supply.Size == 0 {
		f.supply.Start(now, f.all.limits)
	} else if calm := f.supply.Measure(now, issued, f.all.limits); calm {
		f.depth = max(1, f.depth-1) // no burst: one range less ahead
	}
	return f.supply.Size
}

// end records the result of a fetch. Granted says that the source returned a range.
func (f *refill) end(err error, granted bool) {
	f.running, f.starved = false, false
	f.fetches++
	if f.err = err; err == nil {
		f.inRow = 0
		return
	}
	f.failures++
	f.inRow++
	pause := (&register.Backoff{Random: f.all.cfg.Random, Tries: f.inRow - 1}).Next()
	if beyond := new(ExhaustedError); granted && errors.As(err, &beyond) {
		pause = beyondPause // each try wastes a range that another process could use
	}
	f.notBefore = f.all.cfg.Time.Monotonic() + pause
}
