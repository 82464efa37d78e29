package leaseapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/lease"
)

// A quota is what a caller has leased of a pool.
type quota struct{ by, pool string }

// A book has the leases that this server holds, until their ends have passed. Only then may others get their workers, so
// a lease counts until then, even if it was lost. A lease that is not in the book is not lost, see [lease.NewLoan].
type book struct {
	mu     sync.Mutex // guards all below; never held while waiting
	held   map[key]*entry
	counts map[quota]int // entries, and requests that may make one
	swept  time.Time
}

type key struct{ pool, handle string }

type entry struct {
	loan  *lease.Loan
	of    quota
	until firn.Tick
}

// sweepEvery is how often ended leases are looked for, at most.
const sweepEvery = time.Second

func newBook() *book { return &book{held: map[key]*entry{}, counts: map[quota]int{}} }

// reserve counts a request that may make an entry, or refuses it.
func (b *book) reserve(from issuing.Lender) (quota, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep()
	of := quota{from.By, from.Config.Pool}
	if n := b.counts[of]; n >= from.Most {
		f := failure.New(http.StatusTooManyRequests, "too_many_leases",
			"%s has %d leases of pool %q at this server, and may have %d (max_leases); a lease counts until its end", of.by, n, of.pool, from.Most)
		f.Retry = fullRetry
		return of, f
	}
	b.counts[of]++
	return of, nil
}

// unreserve ends the request of a reservation that makes no entry.
func (b *book) unreserve(of quota) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uncount(of)
}

// hold makes a reservation an entry.
func (b *book) hold(of quota, loan *lease.Loan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := key{of.pool, loan.Handle()}
	if e := b.held[at]; e != nil { // of a request at the same time
		e.loan, e.until = loan, max(e.until, loan.Held())
		b.uncount(of)
		return
	}
	b.held[at] = &entry{loan, of, loan.Held()}
}

// find returns a lease that this server holds, or nil.
func (b *book) find(pool, handle string) *lease.Loan {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.held[key{pool, handle}]; e != nil {
		return e.loan
	}
	return nil
}

// sweep removes leases whose ends have passed. It is called with mu held.
func (b *book) sweep() {
	now := time.Now()
	if now.Sub(b.swept) < sweepEvery {
		return
	}
	b.swept = now
	for at, e := range b.held {
		if e.until = max(e.until, e.loan.Held()); e.until < e.loan.Now() {
			delete(b.held, at)
			b.uncount(e.of)
		}
	}
}

// uncount is called with mu held.
func (b *book) uncount(of quota) {
	if b.counts[of]--; b.counts[of] == 0 {
		delete(b.counts, of)
	}
}
