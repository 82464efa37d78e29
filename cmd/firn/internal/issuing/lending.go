package issuing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"regexp"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/lease"
)

// This file leases workers to programs that make their ids themselves, in any language. docs/leases.md specifies it. The
// safety argument is in package lease; a server keeps nothing about a lease that another one needs. It starts nothing:
// the requests of programs are the looks at their slots. When the server ends, they go on at another.

const (
	// firstLease is how long a grant lasts before its first renewal: if the answer is lost, the worker is free again soon.
	firstLease = 10 * time.Second
	// claimLimit bounds a claim, which may have to wait for holders that the store may have forgotten.
	claimLimit = 30 * time.Second
	// LeaseHeader has the lease in a request over HTTP. It is a secret, so it is in no address.
	LeaseHeader = "Firn-Lease"

	// fullRetry is when to ask again for a worker of a pool that has none.
	fullRetry = 5 * time.Second
)

// The answers. Positions have 64 bits, so they are texts.

// LeaseRenewed is the answer to a renewal.
type LeaseRenewed struct {
	Lease string `json:"lease"`
	Pool  string `json:"pool"`
	Clock uint64 `json:"clock,string"` // when the worker was last seen to be held, as a position
	End   uint64 `json:"end,string"`
	Once  string `json:"once,omitempty"` // that of the request
}

// LeaseGranted is the answer to a request for a worker.
type LeaseGranted struct {
	Lease         string  `json:"lease"`
	Pool          string  `json:"pool"`
	Clock         uint64  `json:"clock,string"`
	End           uint64  `json:"end,string"`
	First         uint64  `json:"first,string"`
	Base          firn.ID `json:"base"`
	Unit          int64   `json:"unit_ns,string"`
	SequenceBits  int     `json:"sequence_bits"`
	TimeShift     int     `json:"time_shift"`
	SequenceShift int     `json:"sequence_shift"`
	LookMS        int64   `json:"look_ms"`
	Worker        int64   `json:"worker"`
	Layout        string  `json:"layout"`
	Once          string  `json:"once,omitempty"`
}

// GrantLease leases a worker of a pool to a caller. It counts the request.
func (f *Front) GrantLease(ctx context.Context, caller *access.Caller, pool, once string) (LeaseGranted, error) {
	answer, err := lent(f, caller, pool, once, func(from lender) (LeaseGranted, error) { return f.grant(ctx, from) })
	answer.Once = once
	return answer, err
}

// RenewLease renews the lease with a handle, whose end is the latest that the caller knows. It counts the request.
func (f *Front) RenewLease(ctx context.Context, caller *access.Caller, pool, once, handle string, end int64) (LeaseRenewed, error) {
	answer, err := lent(f, caller, pool, once, func(from lender) (LeaseRenewed, error) { return f.renew(ctx, from, handle, end) })
	answer.Once = once
	return answer, err
}

// onceForm is what once may be.
var onceForm = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)

// CheckOnce returns a failure unless a text may be the once of a request. The answer repeats it. So a client that draws
// another for each request can tell its answer from one that a cache has kept, or that a proxy has sent twice.
func CheckOnce(once string) error {
	if !onceForm.MatchString(once) {
		return failure.BadRequest("bad_request", "once is %q: up to 64 letters, digits, - and _ are allowed", once)
	}
	return nil
}

// A lender has the pool whose workers a caller may lease.
type lender struct {
	config lease.Config // of the server's own lease in the pool
	caller *access.Caller
	most   int // how many workers the caller may lease here at once
	pool   *pool
}

// lender returns the pool with a name, if the caller may lease its workers.
func (f *Front) lender(caller *access.Caller, pool string) (lender, error) {
	now := f.service.now.Load()
	caller, err := f.current(now, caller, 1)
	if err != nil {
		return lender{}, err
	}
	most, err := caller.Leases(pool)
	if err != nil {
		return lender{}, f.denied(caller.Name(), caller.From(), "leases of pool "+pool, 1, err)
	}
	p := now.pools[pool]
	if p == nil {
		return lender{}, f.Refuse(failure.New(http.StatusNotFound, "unknown_pool", "unknown pool %q: it is not the setting pool of any namespace of the server; a namespace without that setting has pool \"default\"", pool))
	}
	l := lender{p.settings, caller, most, p}
	here, _ := os.Hostname() // for people only
	l.config.Host = fmt.Sprintf("%s for %s at %s", here, caller.Name(), caller.From())
	l.config.Store, l.config.Log = f.service.store, f.service.log
	return l, nil
}

// grantable returns an error unless workers of the pool may be leased, and the server may claim some for programs. It
// needs a worker itself: then the pool is open, and a newcomer need not wait. A server that is about to end would only make
// a program turn to another. Workers that are leased already, the server looks at all the same.
func (f *Front) grantable(l lender) error {
	if err := lease.CheckLoans(l.config); err != nil {
		return failure.BadRequest("not_leasable", "pool %q: %v", l.config.Pool, err)
	}
	if f.service.draining.Load() {
		return failure.New(http.StatusServiceUnavailable, "shutting_down", "the server is shutting down: ask another one").After(time.Second)
	}
	_, err := l.pool.held()
	return err
}

func lent[T any](f *Front, caller *access.Caller, pool, once string, do func(lender) (T, error)) (answer T, err error) {
	if err := CheckOnce(once); err != nil {
		return answer, f.Refuse(err)
	}
	from, err := f.lender(caller, pool)
	if err != nil {
		return answer, err
	}
	if answer, err = do(from); err != nil {
		return answer, f.Refuse(lendingFailure(err))
	}
	f.Answered(http.StatusOK)
	return answer, nil
}

// lendingFailure gives the errors of package lease their codes.
func lendingFailure(err error) error {
	unavailable := func(code string) *failure.Failure {
		return failure.New(http.StatusServiceUnavailable, code, "%s", failure.Public(err))
	}
	switch {
	case errors.Is(err, lease.ErrFull):
		return unavailable("pool_full").After(fullRetry)
	case errors.Is(err, lease.ErrClock):
		return unavailable("wrong_clock").After(fullRetry)
	case errors.Is(err, lease.ErrPool):
		return unavailable(failure.Mismatch)
	}
	return err
}

func (f *Front) grant(ctx context.Context, from lender) (answer LeaseGranted, err error) {
	if err := f.grantable(from); err != nil {
		return answer, err
	}
	of, err := f.service.loans.reserve(from)
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, claimLimit)
	defer cancel()
	loan, g, err := lease.Lend(ctx, from.config, firstLease)
	if err != nil {
		f.service.loans.unreserve(of)
		return answer, err
	}
	f.service.loans.hold(of, loan)
	f.service.log.Info("a worker was leased to a program", "pool", from.config.Pool, "worker", g.Worker,
		"by", from.caller.Name(), "from", from.caller.From())
	layout := loan.Layout()
	now := renewed(loan, from, g.Through)
	answer = LeaseGranted{
		Lease: now.Lease, Pool: now.Pool, Clock: now.Clock, End: now.End, First: position(layout, g.After+1), Worker: g.Worker,
		Unit: layout.Unit().Nanoseconds(), LookMS: loan.Every().Milliseconds(), Layout: decode.Label(layout),
	}
	cfg := layout.Config()
	answer.SequenceBits, answer.TimeShift = cfg.SequenceBits, cfg.DatacenterBits+cfg.WorkerBits+cfg.SequenceBits
	if cfg.SequenceFirst {
		answer.SequenceShift = cfg.DatacenterBits + cfg.WorkerBits
	}
	answer.Base, err = layout.Compose(firn.Parts{Datacenter: from.config.Generator.Datacenter, Worker: g.Worker})
	return answer, err
}

func (f *Front) renew(ctx context.Context, from lender, handle string, end int64) (answer LeaseRenewed, err error) {
	loan := f.service.loans.find(from.config.Pool, handle)
	held := loan != nil
	if !held {
		if loan, err = lease.NewLoan(from.config, handle); errors.Is(err, firn.ErrSyntax) {
			return answer, failure.BadRequest("bad_lease", "there is no lease in the request: send it as it was granted, over HTTP in the header %s", LeaseHeader)
		} else if err != nil {
			return answer, err
		}
	}
	if end <= 0 || end&loan.Layout().MaxSequence() != 0 {
		return answer, failure.BadRequest("bad_request", "the request has no end at which a lease of this layout ends: send it as it was answered last, over HTTP as ?end=")
	}
	known := firn.Tick(end>>loan.Layout().Config().SequenceBits) - 1
	var through firn.Tick
	switch due := loan.Due(known); {
	case due && held:
		through, err = loan.Renew(ctx, known)
	case due:
		through, err = f.takeOver(ctx, from, loan, known)
	default:
		through, err = loan.Look(ctx, known)
	}
	if errors.Is(err, lease.ErrLost) {
		return answer, failure.New(http.StatusGone, "lease_lost", "%s", failure.Public(err))
	}
	return renewed(loan, from, through), err
}

// takeOver renews a lease that this server does not hold. One that it must not take over, it still looks at.
func (f *Front) takeOver(ctx context.Context, from lender, loan *lease.Loan, known firn.Tick) (firn.Tick, error) {
	of, full := f.service.loans.reserve(from)
	if full != nil {
		_, err := loan.Look(ctx, known)
		return 0, cmp.Or(err, full)
	}
	through, err := loan.Renew(ctx, known)
	if loan.Held() < 0 { // also if there was nothing to move: then the other server holds it still
		f.service.loans.unreserve(of)
		return through, err
	}
	f.service.loans.hold(of, loan)
	return through, err
}

// position returns the first position of a tick.
func position(layout firn.Layout, tick firn.Tick) uint64 {
	return uint64(max(tick, 0)) << layout.Config().SequenceBits
}

func renewed(loan *lease.Loan, from lender, through firn.Tick) LeaseRenewed {
	layout := loan.Layout()
	return LeaseRenewed{
		Lease: loan.Handle(), Pool: from.config.Pool, Clock: position(layout, loan.Clock()),
		End: position(layout, min(through, math.MaxInt64-1)+1),
	}
}
