package lease

import (
	"fmt"

	"github.com/firn-id/firn"
)

// A takeover is what a process knows about a loan that it does not hold.
type takeover struct {
	worker int64
	known  firn.Tick // the fence that the program knows
	wish   firn.Tick // the wanted fence; 0: the move is not due
	open   bool      // the pool is open
}

// errClosed: a loan is taken over only while the pool is open, in the life of the store that it names. Otherwise the store
// may have forgotten a holder, which must have time to write its slot again.
var errClosed = lost("the store may have forgotten others, which look first")

// takeOver decides about the slot of a loan that this process does not hold. Another may hold it, and still write, so the
// grant is a new one: it begins at the fence found, and is written over exactly the record found. No tick of it was granted
// before, and the other finds a later claim. Whatever contradicts the program is a loss, which costs it a worker, and
// nothing is written: neither the program nor the store proves what was granted since.
func (r *rules) takeOver(t takeover, found *Slot, now firn.Tick) (move, error) {
	switch {
	case found == nil:
		return move{}, lost("its slot has vanished")
	case found.Owner != r.token || found.Free:
		return move{}, lost("it was taken by " + found.holder())
	case found.Fence < now:
		return move{}, errPast
	case found.Fence < t.known:
		return move{}, lost(fmt.Sprintf("the program knows the fence %d, and the store %d", t.known, found.Fence))
	case !t.open:
		return move{}, errClosed
	}
	m := move{holding: holding{worker: t.worker, after: found.Fence, since: found.Since, over: found.revision}}
	m.fence = t.wish
	m.write = m.fence > m.after // never beyond the wish: a caller may say that it knows less than it does
	if t.wish > 0 && m.after >= r.layout.MaxTick() {
		return move{}, &firn.TimeExhaustedError{Layout: r.layout, End: r.layout.End()}
	}
	return m, nil
}
