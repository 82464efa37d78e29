package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// duelLayouts have one worker, or two, and ticks so long that two processes issue ids in some of them.
var duelLayouts = [][]string{{"41/0/0/3,unit=1s", "41/0/0/3,unit=100ms"}, {"41/0/1/3,unit=1s", "41/0/1/3,unit=100ms"}}

// makeDuel makes a world of one or two holders of all workers, and late newcomers that want one of these. Clocks are
// right, and nothing is lost, until an aimed fault strikes. In a duel (plan.duel) faults also last and follow each other
// as a pair needs: whoever is cut off stays so until its fence has passed, a wipe strikes at once, a copy that is put back
// is the latest that does not show its age otherwise, and a loss always brings a newcomer.
func (p *plan) makeDuel(r *rand.Rand, holders, late int) {
	p.duel, p.machines, p.late = true, holders+late, late
	p.layout = layoutOf(pick(r, duelLayouts[holders-1]...))
	p.window, p.look, p.tolerance, p.ahead = 10*time.Second, 0, 4*time.Second, 0 // fences pass soon
	p.skew, p.drift, p.think, p.retry = 100*time.Millisecond, 20, 300*time.Millisecond, 500*time.Millisecond
	for _, k := range slices.Concat(clockFaults, losses) {
		p.mean[k] = 0
	}
}
