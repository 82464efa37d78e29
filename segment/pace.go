package segment

import (
	"math"
	"time"
)

// A pace decides how large ranges are and how many are kept ahead. It is the
// pure part: time and counts come in, decisions go out.
type pace struct {
	step  int64 // ids to ask for
	depth int   // ranges to have ahead once the current one's next is due

	at      time.Duration // when the present window of measuring began
	count   int64         // ids issued until then
	elapsed time.Duration // how long the window before it was
	used    int64         // ids issued in that
}

const (
	// maxGrowth and maxShrink bound how much a step changes at once: growth
	// follows a burst in a few fetches, and a short lull costs little.
	maxGrowth = 4
	maxShrink = 2
)

// limits are the settings a pace keeps to.
type limits struct {
	minStep, maxStep int64
	target           time.Duration
	chain            int
}

// start begins measuring.
func (p *pace) start(now time.Duration, l limits) {
	*p = pace{step: l.minStep, depth: 1, at: now}
}

// measure adapts the step to what was issued since it was adapted last: so that a
// range lasts for the target. A window too short to tell anything, as when
// several ranges are fetched in a row, stays open.
func (p *pace) measure(now time.Duration, issued int64, l limits) {
	elapsed, used := now-p.at, issued-p.count
	if used < max(p.step/8, 1) && elapsed < l.target/4 {
		return
	}
	wanted := math.Inf(1)
	if elapsed > 0 {
		wanted = float64(used) * float64(l.target) / float64(elapsed)
	}
	least, most := max(l.minStep, p.step/maxShrink), min(l.maxStep, p.step*maxGrowth)
	p.step = int64(min(max(wanted, float64(least)), float64(most)))
	if elapsed >= l.target/4 {
		p.depth = max(1, p.depth-1) // no burst: one range less ahead
	}
	p.at, p.count, p.elapsed, p.used = now, issued, elapsed, used
}

// starved says that a caller had to wait although ranges are fetched ahead.
func (p *pace) starved(l limits) { p.depth = min(p.depth*2, l.chain) }

// rate returns the ids issued per second, over the present window and the one
// before it.
func (p *pace) rate(now time.Duration, issued int64) float64 {
	elapsed := now - p.at + p.elapsed
	if elapsed <= 0 {
		return 0
	}
	return float64(issued-p.count+p.used) / elapsed.Seconds()
}
