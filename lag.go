package firn

import (
	"math"
	"time"
)

// A pace lets callers count the word without reading the clock, for [Config.Lag]. The limit of
// the word is then a mark, about a sixteenth of Lag away at the present rate of ids. The caller
// that passes it reads the clock under the lock. A word that is opened is sealed when Lag has
// passed, for callers that have become slower or have stopped.
//
// The marks lie below the limits that the core sets, so a clock read too seldom makes ids late, but
// never early or twice.
type pace struct {
	lag    int64 // in ns; 0: each call reads the clock
	timers timers
	lapse  func() // the generator's method of that name
	armed  bool   // lapse will be called

	at    int64  // the latest clock reading that led to ids, in Unix ns
	taken uint64 // positions issued since
	from  uint64 // the word when it was opened
	mark  uint64 // how far above the next position the word's limit is
}

// timers is a [TimeSource] that can call a function later, in a goroutine of its own.
type timers interface {
	AfterFunc(d time.Duration, f func())
}

const (
	marksPerLag = 16
	maxMark     = 1 << 22
)

// advance sets the mark by the rate of ids since the reading before. It at most doubles, since a
// short burst says little. Below sixteen ids in Lag it is 0: each call reads the clock.
func (p *pace) advance(now int64) {
	elapsed := saturatingSub(now, p.at)
	most := min(2*p.mark+1, maxMark)
	switch {
	case elapsed < 0:
		p.mark = 0
	case elapsed == 0: // a coarse clock
		p.mark = most
	default:
		p.mark = min(most, min(p.taken, math.MaxUint32)*uint64(p.lag)/marksPerLag/uint64(elapsed))
	}
	p.at, p.taken = now, 0
}

// arm has the word sealed when Lag has passed.
func (p *pace) arm() {
	if p.armed {
		return
	}
	p.armed = true
	p.timers.AfterFunc(time.Duration(p.lag), p.lapse)
}

// lapse ends the use of a clock reading that is Lag old: it seals the word and recalls the blocks
// of Locals.
func (g *Generator) lapse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pace.armed = false
	g.revoke()
}
