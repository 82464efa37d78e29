package sequence

import (
	"time"

	"github.com/firn-id/firn/internal/register"
	"github.com/firn-id/firn/store"
)

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

// conflicted notes that the record was not at a revision that was read.
func (b *backoff) conflicted(at store.Revision, now time.Duration, random func() uint64) {
	b.conflicts++
	if b.at != at {
		b.vain, b.wait = 0, 0
	}
	b.failed(at, now, random)
}

// unanswered notes that an answer was lost.
func (b *backoff) unanswered(at store.Revision, now time.Duration, random func() uint64) {
	b.lost++
	b.failed(at, now, random)
}

func (b *backoff) failed(at store.Revision, now time.Duration, random func() uint64) {
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
