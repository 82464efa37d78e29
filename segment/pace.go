package segment

import (
	"time"

	"github.com/firn-id/firn/internal/demand"
)

// A pace decides how large ranges are and how many are kept ahead. It is the
// pure part: time and counts come in, decisions go out.
type pace struct {
	demand.Supply     // whose size is the ids to ask for
	depth         int // ranges to have ahead once the current one's next is due
}

// limits are the settings a pace keeps to.
type limits struct {
	demand.Limits
	chain int
}

// start begins measuring.
func (p *pace) start(now time.Duration, l limits) {
	p.Start(now, l.Limits)
	p.depth = 1
}

// measure adapts the step to what was issued since it was adapted last, so that a
// range lasts for the target.
func (p *pace) measure(now time.Duration, issued int64, l limits) {
	if calm := p.Measure(now, issued, l.Limits); calm {
		p.depth = max(1, p.depth-1) // no burst: one range less ahead
	}
}

// starved says that a caller had to wait although ranges are fetched ahead.
func (p *pace) starved(l limits) { p.depth = min(p.depth*2, l.chain) }
