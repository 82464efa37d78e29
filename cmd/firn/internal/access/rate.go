package access

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// maxPerSecond bounds rates; above it there is less than a nanosecond for an id.
const maxPerSecond = 1_000_000_000

// A Rate is a number of ids per unit of time. The zero Rate is no limit.
type Rate struct {
	Count int64
	Per   time.Duration // a second, a minute or an hour
}

var units = []struct {
	name string
	per  time.Duration
}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}}

const wanted = "write ids in a time, as in 50000/s, 600/m or 10/h, at most 1000000000/s"

// ParseRate reads a rate as 50000/s, 600/m or 10/h.
func ParseRate(text string) (Rate, error) {
	count, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(count, 10, 64)
	for _, u := range units {
		if u.name == unit && err == nil && n > 0 && n <= maxPerSecond*int64(u.per/time.Second) {
			return Rate{n, u.per}, nil
		}
	}
	return Rate{}, firn.NewSyntaxError("rate", text, wanted)
}

// IsZero reports whether there is no limit.
func (r Rate) IsZero() bool { return r.Count == 0 }

// String returns the rate as ParseRate reads it.
func (r Rate) String() string {
	for _, u := range units {
		if u.per == r.Per {
			return strconv.FormatInt(r.Count, 10) + "/" + u.name
		}
	}
	return "none"
}

// longestDebt keeps the arithmetic from overflowing. Only a request for millions of ids at a
// few an hour comes near it.
const longestDebt = 10 * 365 * 24 * time.Hour

// cost returns the time that n ids take at the rate.
func (r Rate) cost(n int64) int64 {
	return int64(math.Min(math.Round(float64(n)*float64(r.Per)/float64(r.Count)), float64(longestDebt)))
}

// A Bucket enforces a rate. It is full at first: the ids of one unit of the rate may be taken
// at once. Its methods may be called concurrently.
//
// golang.org/x/time/rate does not fit: there a request above the burst can never be served. Here every request is
// served as long as there is no debt, and later requests wait until it is paid off. The rate holds in the long
// run, and a batch larger than a second's worth is served too.
//
// Of a bucket that callers share, one request makes only a short debt: all others must wait until it is paid.
type Bucket struct {
	who  string
	rate Rate
	debt time.Duration        // the longest
	now  func() time.Duration // monotonic
	// paid is the time until which the taken ids use up the rate.
	paid atomic.Int64
}

// sharedDebt is the longest debt of a bucket that callers share.
const sharedDebt = 10 * time.Second

// NewBucket returns a bucket of a rate that is not zero, for one caller; now is a monotonic clock. Errors name
// whose it is, as in "token shop".
func NewBucket(who string, r Rate, now func() time.Duration) *Bucket {
	b := &Bucket{who: who, rate: r, debt: longestDebt, now: now}
	b.paid.Store(int64(now()))
	return b
}

// NewSharedBucket is NewBucket for all callers together.
func NewSharedBucket(who string, r Rate, now func() time.Duration) *Bucket {
	b := NewBucket(who, r, now)
	b.debt = sharedDebt
	return b
}

// Rate returns the rate.
func (b *Bucket) Rate() Rate { return b.rate }

// Most returns how many of n ids one request may take, at the best moment. A nil bucket has no limit.
func (b *Bucket) Most(n int) int {
	if b == nil || b.debt == longestDebt {
		return n
	}
	return b.within(b.rate.Per+b.debt, n)
}

// Left returns how many of n requests for one id each are served now. A nil bucket has no limit.
func (b *Bucket) Left(n int) int {
	if b == nil {
		return n
	}
	return b.within(b.rate.Per-max(time.Duration(b.paid.Load())-b.now(), 0), n)
}

// within returns how many of n ids take no longer than d at the rate.
func (b *Bucket) within(d time.Duration, n int) int {
	return int(max(min(float64(n), float64(d)*float64(b.rate.Count)/float64(b.rate.Per)), 0))
}

// early returns how long after now a request for n ids is served, if it is positive: at least one id must be left, and
// the debt must not become too long.
func (b *Bucket) early(n int, paid, now int64) time.Duration {
	left, debt := paid+b.rate.cost(1), max(paid, now)+b.rate.cost(int64(n))-int64(b.debt)
	return time.Duration(max(left, debt) - int64(b.rate.Per) - now)
}

// Take takes n ids, or returns how long to wait until the request is served. A request
// is served if at least one id is left, however many it asks for up to [Bucket.Most].
func (b *Bucket) Take(n int) (wait time.Duration, ok bool) {
	now, cost := int64(b.now()), b.rate.cost(int64(n))
	for {
		paid := b.paid.Load()
		if early := b.early(n, paid, now); early > 0 {
			return early, false
		}
		if b.paid.CompareAndSwap(paid, max(paid, now)+cost) {
			return 0, true
		}
	}
}

// Charge takes n ids, or returns the failure for a client that must wait or ask for fewer. A nil bucket has no limit.
func (b *Bucket) Charge(n int) error {
	if b == nil {
		return nil
	}
	if most := b.Most(n); n > most {
		return failure.New(http.StatusRequestEntityTooLarge, "batch_too_large",
			"%s has a rate of %s, so %d ids are too many at once: ask for at most %d", b.who, b.rate, n, most)
	}
	if wait, ok := b.Take(n); !ok {
		return failure.New(http.StatusTooManyRequests, "rate_limited",
			"%s has used up its rate of %s: the request for %d ids is served in %v",
			b.who, b.rate, n, wait.Round(time.Millisecond)).After(wait)
	}
	return nil
}

// Return gives back n ids that were taken and not issued. On a nil bucket it does nothing.
func (b *Bucket) Return(n int) {
	if b != nil {
		b.paid.Add(-b.rate.cost(int64(n)))
	}
}
