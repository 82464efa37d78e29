package sequence

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// A pace spreads out the processes that add to one record, and keeps them fair. The last writer
// knows the revision and needs one trip for the next write; all others need two. So the last
// writer would win every race. Therefore
//
//   - while it sees other writers, every process, the winner too, waits a random time between
//     attempts, longer the more others there are, and reads first;
//   - a busy process that has seen no other makes a short break now and then, in which another
//     gets in and is seen; some breaks are much longer, for a process further from the store.
type pace struct {
	trip   time.Duration // the mean time of a call of the store
	ended  time.Duration // when the latest attempt did
	seen   []string      // the writers found by the latest reads: a token, or empty for this process
	met    time.Duration // when another process was last seen
	others int           // how many others were seen
	wins   int           // additions since the latest break
	bout   int           // how many additions there may be before the next break
}

const (
	minTrip = 50 * time.Microsecond
	maxTrip = 20 * time.Millisecond
	// maxSeen bounds how many other processes are distinguished. With more processes than
	// that, conflicts increase.
	maxSeen = 16
	// forgetAfter is how long it matters that another process was seen.
	forgetAfter = time.Second
	// minBout and maxBout bound how many additions are made from one break to the next. A break
	// takes 6 trips on average: 5 % after 128 additions.
	minBout, maxBout = 16, 128
	// maxStretch is how often a break can be doubled, as long as it stays below maxBreak.
	maxStretch = 5
	maxBreak   = 100 * time.Millisecond
)

// delay returns how long to wait before an attempt.
func (p *pace) delay(now time.Duration, random func() uint64) time.Duration {
	if now-p.met > forgetAfter {
		p.seen, p.others = p.seen[:0], 0
	}
	unit := min(max(p.trip, minTrip), maxTrip)
	since := now - p.ended
	if p.others > 0 {
		return max(time.Duration(random()%uint64(2*unit*time.Duration(p.others)))-since, 0)
	}
	if p.bout == 0 {
		p.bout = minBout
	}
	switch {
	case since > 2*unit: // there was a break
		p.wins = 0
	case p.wins >= p.bout:
		p.wins, p.bout = 0, min(2*p.bout, maxBout)
		doubled := min(bits.TrailingZeros64(random()), maxStretch) // each number is half as likely as the one before
		return min(2*unit<<doubled, maxBreak)
	}
	return 0
}

// took records how long a call of the store took.
func (p *pace) took(d time.Duration) { p.trip += (d - p.trip) / 8 }

// see records who had written the record when it was read; empty for this process.
func (p *pace) see(now time.Duration, by string) {
	if by != "" {
		p.met, p.bout = now, minBout
	}
	if len(p.seen) == maxSeen {
		p.seen = append(p.seen[:0], p.seen[1:]...)
	}
	p.seen = append(p.seen, by)
	p.others = 0
	for i, one := range p.seen {
		if one != "" && !slices.Contains(p.seen[:i], one) {
			p.others++
		}
	}
}

// A backoff delays attempts that fail although no other process is quicker: their answers are
// lost, or they meet a second conflict at one revision, as when reads come from a lagging
// replica. A conflict at a new revision is left to the pace: another process did write. After
// the first failure in a row the next attempt follows at once, and usually succeeds.
type backoff struct {
	conflicts, lost int // since the latest addition

	vain  int            // failed attempts in a row
	at    store.Revision // the revision that the latest one expected
	since time.Duration  // when the first one ended
	wait  time.Duration  // how long to wait before the next one
}

// why says why an addition has not succeeded.
func (b backoff) why() string {
	why := fmt.Sprintf("%d writes were not confirmed", b.lost) // the answer was lost, or the disk is full
	switch {
	case b.lost == 0:
		why = fmt.Sprintf("others were quicker %d times", b.conflicts)
	case b.conflicts > 0:
		why = fmt.Sprintf("others were quicker %d times, and %s", b.conflicts, why)
	}
	return why
}

// failed records an attempt that met a conflict at a revision, or whose answer was lost.
func (b *backoff) failed(conflict bool, at store.Revision, now time.Duration, random func() uint64) {
	if conflict {
		b.conflicts++
	} else {
		b.lost++
	}
	if conflict && b.at != at {
		b.vain, b.wait = 0, 0
	}
	if b.vain == 0 {
		b.since = now
	}
	b.vain++
	b.at = at
	if b.vain > 1 {
		b.wait = (&register.Backoff{Random: random, Tries: b.vain - 2}).Next()
	}
}

// within shortens the wait to what is left of the time-out for the row; false: nothing is left.
func (b *backoff) within(timeout, now time.Duration) bool {
	left := timeout - (now - b.since)
	b.wait = min(b.wait, left)
	return left > 0
}

// delay returns how long to wait before an attempt, once.
func (b *backoff) delay() time.Duration {
	d := b.wait
	b.wait = 0
	return d
}
