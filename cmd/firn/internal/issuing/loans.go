package issuing

import (
	"net/http"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/lease"
)

// A quota is what a caller has leased of a pool.
type quota struct{ by, pool string }

// loans are the leases of programs that this server holds, until their ends have passed. Only then may others get their
// workers, so a lease counts until then, even if it was lost. A lease that is not among them is not lost, see [lease.NewLoan].
type loans struct {
	mu     sync.Mutex // guards all below; never held while waiting
	held   map[loanKey]*loanEntry
	counts map[quota]int // entries, and requests that may make one
	swept  time.Time
}

type loanKey struct{ pool, handle string }

type loanEntry struct {
	loan  *lease.Loan
	of    quota
	until firn.Tick
}

// sweepEvery is how often ended leases are looked for, at most.
const sweepEvery = time.Second

func newLoans() *loans { return &loans{held: map[loanKey]*loanEntry{}, counts: map[quota]int{}} }

// reserve counts a request that may make an entry, or refuses it.
func (l *loans) reserve(from lender) (quota, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep()
	of := quota{from.caller.Name(), from.config.Pool}
	if n := l.counts[of]; n >= from.most {
		return of, failure.New(http.StatusTooManyRequests, "too_many_leases",
			"%s has %d leases of pool %q at this server, and may have %d (max_leases); a lease counts until its end", of.by, n, of.pool, from.most).After(fullRetry)
	}
	l.counts[of]++
	return of, nil
}

// unreserve ends the request of a reservation that makes no entry.
func (l *loans) unreserve(of quota) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uncount(of)
}

// hold makes a reservation an entry.
func (l *loans) hold(of quota, loan *lease.Loan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := loanKey{of.pool, loan.Handle()}
	if e := l.held[at]; e != nil { // of a request at the same time
		e.loan, e.until = loan, max(e.until, loan.Held())
		l.uncount(of)
		return
	}
	l.held[at] = &loanEntry{loan, of, loan.Held()}
}

// find returns a lease that this server holds, or nil.
func (l *loans) find(pool, handle string) *lease.Loan {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.held[loanKey{pool, handle}]; e != nil {
		return e.loan
	}
	return nil
}

// sweep removes leases whose ends have passed. It is called with mu held.
func (l *loans) sweep() {
	now := time.Now()
	if now.Sub(l.swept) < sweepEvery {
		return
	}
	l.swept = now
	for at, e := range l.held {
		if e.until = max(e.until, e.loan.Held()); e.until < e.loan.Now() {
			delete(l.held, at)
			l.uncount(e.of)
		}
	}
}

// uncount is called with mu held.
func (l *loans) uncount(of quota) {
	if l.counts[of]--; l.counts[of] == 0 {
		delete(l.counts, of)
	}
}
