package sequence

import (
	"math/bits"
	"slices"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// A pace keeps processes that add to one record apart, and fair. The last writer knows the
// revision and needs one trip for the next write, all others two: it would win every race. So
//
//   - while others were seen to write, everyone, winners too, lets a random time pass between
//     attempts, longer the more others there are, and reads first;
//   - a busy process that saw nobody makes a short break now and then, in which another gets in
//     and so is seen; some breaks are much longer, for one that is further from the store.
type pace struct {
	trip  time.Duration // the mean time of a call of the store
	ended time.Duration // when the latest attempt did
	seen  []string      // who had written, at the latest looks: a token, or empty for this process
	met   time.Duration // when another was seen
	crowd int           // how many others were
	wins  int           // additions since the latest break
	bout  int           // how many there may be before the next one
}

const (
	minTrip = 50 * time.Microsecond
	maxTrip = 20 * time.Millisecond
	// maxSeen bounds how many others are told apart. More than that meet more conflicts.
	maxSeen = 16
	// forgetAfter is when having seen another says nothing any more.
	forgetAfter = time.Second
	// minBout and maxBout are how many additions are made from one break to the next. A break
	// is 6 trips in the mean: after 128, five parts in a hundred.
	minBout, maxBout = 16, 128
	// maxStretch is how often a break can be doubled, as long as it stays below maxBreak.
	maxStretch = 5
	maxBreak   = 100 * time.Millisecond
)

// delay returns how long to wait before an attempt.
func (p *pace) delay(now time.Duration, random func() uint64) time.Duration {
	if now-p.met > forgetAfter {
		p.seen, p.crowd = p.seen[:0], 0
	}
	unit := min(max(p.trip, minTrip), maxTrip)
	since := now - p.ended
	if p.crowd > 0 {
		return max(time.Duration(random()%uint64(2*unit*time.Duration(p.crowd)))-since, 0)
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

// took learns how long a call of the store takes.
func (p *pace) took(d time.Duration) { p.trip += (d - p.trip) / 8 }

// see takes down who had written the record when it was read, empty for this process.
func (p *pace) see(now time.Duration, by string) {
	if by != "" {
		p.met, p.bout = now, minBout
	}
	if len(p.seen) == maxSeen {
		p.seen = append(p.seen[:0], p.seen[1:]...)
	}
	p.seen = append(p.seen, by)
	p.crowd = 0
	for i, one := range p.seen {
		if one != "" && !slices.Contains(p.seen[:i], one) {
			p.crowd++
		}
	}
}

// A backoff keeps attempts apart that are in vain though nobody is quicker: their answers are
// lost, or they meet a second conflict at a revision, as where reads come from a copy that lags
// behind. A conflict at a new revision is left to the pace: somebody did write. After the first
// of a row the next attempt is made at once, and succeeds as a rule.
type backoff struct {
	conflicts, lost int // since the latest addition

	vain  int            // attempts in a row
	at    store.Revision // which the latest one expected
	since time.Duration  // when the first one ended
	wait  time.Duration  // how long to wait before the next one
}

// failed notes an attempt over a revision: it met a conflict, or its answer was lost.
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

// within shortens the wait to what is left of a time-out for the row; false: nothing is.
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
