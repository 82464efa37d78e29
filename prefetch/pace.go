package prefetch

import (
	"math"
	"time"
)

// A pace decides how many ids a buffer is to hold. It is the pure part: time and
// counts come in, a size goes out.
type pace struct {
	size int

	at      time.Duration // when the present window of measuring began
	count   int64         // ids issued until then
	elapsed time.Duration // how long the window before it was
	used    int64         // ids issued in that
}

const (
	// maxGrowth and maxShrink bound how much the size changes at once: growth
	// follows a burst in a few fills, and a short lull costs little.
	maxGrowth = 4
	maxShrink = 2
)

// limits are the settings a pace keeps to.
type limits struct {
	least, most int
	target      time.Duration
}

// start begins measuring.
func (p *pace) start(now time.Duration, l limits) { *p = pace{size: l.least, at: now} }

// measure adapts the size to what was issued since it was adapted last: so that a
// full buffer lasts for the target. A window too short to tell anything stays open.
func (p *pace) measure(now time.Duration, issued int64, l limits) {
	elapsed, used := now-p.at, issued-p.count
	if used < int64(max(p.size/8, 1)) && elapsed < l.target/4 {
		return
	}
	wanted := math.Inf(1)
	if elapsed > 0 {
		wanted = float64(used) * float64(l.target) / float64(elapsed)
	}
	least, most := max(l.least, p.size/maxShrink), min(l.most, p.size*maxGrowth)
	p.size = int(min(max(wanted, float64(least)), float64(most)))
	p.at, p.count, p.elapsed, p.used = now, issued, elapsed, used
}

// lasts returns how long count ids last at the rate of the present window and the
// one before it.
func (p *pace) lasts(now time.Duration, issued int64, count int) time.Duration {
	used, elapsed := issued-p.count+p.used, now-p.at+p.elapsed
	if used <= 0 {
		return math.MaxInt64
	}
	return time.Duration(min(float64(count)/float64(used)*float64(elapsed), math.MaxInt64/2))
}
