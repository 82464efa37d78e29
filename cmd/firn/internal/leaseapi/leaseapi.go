// Package leaseapi leases workers to programs that make their ids themselves, in any language. docs/leases.md
// specifies it. The safety argument is in package lease; a server keeps nothing about a lease that another one needs.
package leaseapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/lease"
)

const (
	// first is how long a grant lasts before its first renewal: if the answer is lost, the worker is free again soon.
	first = 10 * time.Second
	// claimLimit bounds a claim, which may have to wait for holders that the store may have forgotten.
	claimLimit = 30 * time.Second
	// fullRetry is when to ask again for a worker of a pool that has none.
	fullRetry = 5 * time.Second

	// Header has the lease. It is a secret, so it is in no address.
	Header = "Firn-Lease"
)

// API has the requests, for every protocol. Make one with [New].
type API struct {
	log  *slog.Logger
	book *book
}

// New returns the interface. It starts nothing: the requests of programs are the looks at their slots. When the server
// ends, they go on at another.
func New(log *slog.Logger) *API { return &API{log: log, book: newBook()} }

// Register adds the requests over HTTP to a mux.
func (a *API) Register(mux *http.ServeMux, to *httpapi.API, front *issuing.Front) {
	route := func(d *httpapi.Route, h func(*access.Caller, *http.Request) (any, error)) {
		to.Serve(mux, d, func(w http.ResponseWriter, r *http.Request) error {
			caller, err := front.Caller(r)
			if err != nil {
				return err
			}
			answer, err := h(caller, r)
			if err != nil {
				return err
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer) // a failed write means that the client has gone; its lease ends by itself
			return nil
		})
	}
	route(&httpapi.LeaseGrant, func(caller *access.Caller, r *http.Request) (any, error) {
		_, once, err := parameters(&httpapi.LeaseGrant, r)
		if err != nil {
			return nil, front.Refuse(err)
		}
		answer, err := a.Grant(r.Context(), front, caller, r.PathValue("pool"))
		answer.Once = once
		return answer, err
	})
	route(&httpapi.LeaseRenew, func(caller *access.Caller, r *http.Request) (any, error) {
		query, once, err := parameters(&httpapi.LeaseRenew, r)
		if err != nil {
			return nil, front.Refuse(err)
		}
		end, err := strconv.ParseInt(query.Get("end"), 10, 64)
		if err != nil {
			end = 0 // is refused
		}
		answer, err := a.Renew(r.Context(), front, caller, r.PathValue("pool"), r.Header.Get(Header), end)
		answer.Once = once
		return answer, err
	})
}

// onceForm is what once may be. The answer repeats it, so a client that draws another for each request can tell the answer to
// it from one that a cache has kept for another client.
var onceForm = regexp.MustCompile(`^[A-Za-z0-9]{0,64}$`)

// parameters returns those of a request, and once among them.
func parameters(d *httpapi.Route, r *http.Request) (query url.Values, once string, err error) {
	if query, err = d.Values(r); err != nil {
		return nil, "", err
	}
	if once = query.Get("once"); !onceForm.MatchString(once) {
		return nil, "", failure.BadRequest("bad_request", "once is %q: up to 64 letters and digits are allowed", once)
	}
	return query, once, nil
}

// Grant leases a worker of a pool to a caller. It counts the request.
func (a *API) Grant(ctx context.Context, front *issuing.Front, caller *access.Caller, pool string) (httpapi.LeaseGranted, error) {
	return count(front, caller, pool, func(from issuing.Lender) (httpapi.LeaseGranted, error) { return a.grant(ctx, front, from) })
}

// Renew renews the lease with a handle, whose end is the latest that the caller knows. It counts the request.
func (a *API) Renew(ctx context.Context, front *issuing.Front, caller *access.Caller, pool, handle string, end int64) (httpapi.LeaseRenewed, error) {
	return count(front, caller, pool, func(from issuing.Lender) (httpapi.LeaseRenewed, error) { return a.renew(ctx, from, handle, end) })
}

func count[T any](front *issuing.Front, caller *access.Caller, pool string, do func(issuing.Lender) (T, error)) (answer T, err error) {
	from, err := front.Lender(caller, pool)
	if err != nil {
		return answer, err
	}
	if answer, err = do(from); err != nil {
		return answer, front.Refuse(failed(err))
	}
	front.Answered(http.StatusOK)
	return answer, nil
}

// failed gives the errors of package lease their codes.
func failed(err error) error {
	code := func(status int, code string, retry time.Duration) error {
		f := failure.New(status, code, "%s", failure.Public(err))
		f.Retry = retry
		return f
	}
	switch {
	case errors.Is(err, lease.ErrFull):
		return code(http.StatusServiceUnavailable, "pool_full", fullRetry)
	case errors.Is(err, lease.ErrClock):
		return code(http.StatusServiceUnavailable, "wrong_clock", fullRetry)
	case errors.Is(err, lease.ErrPool):
		return code(http.StatusServiceUnavailable, failure.Mismatch, 0)
	}
	return err
}

func (a *API) grant(ctx context.Context, front *issuing.Front, from issuing.Lender) (answer httpapi.LeaseGranted, err error) {
	if err := front.Grants(from); err != nil {
		return answer, err
	}
	of, err := a.book.reserve(from)
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, claimLimit)
	defer cancel()
	loan, g, err := lease.Lend(ctx, from.Config, first)
	if err != nil {
		a.book.unreserve(of)
		return answer, err
	}
	a.book.hold(of, loan)
	a.log.Info("a worker was leased to a program", "pool", from.Config.Pool, "worker", g.Worker, "by", from.By, "from", from.Address)
	layout := loan.Layout()
	now := renewed(loan, from, g.Through)
	answer = httpapi.LeaseGranted{
		Lease: now.Lease, Pool: now.Pool, Clock: now.Clock, End: now.End, First: position(layout, g.After+1), Worker: g.Worker,
		Unit: layout.Unit().Nanoseconds(), LookMS: loan.Every().Milliseconds(), Layout: decode.Label(layout),
	}
	cfg := layout.Config()
	answer.SequenceBits, answer.TimeShift = cfg.SequenceBits, cfg.DatacenterBits+cfg.WorkerBits+cfg.SequenceBits
	if cfg.SequenceFirst {
		answer.SequenceShift = cfg.DatacenterBits + cfg.WorkerBits
	}
	answer.Base, err = layout.Compose(firn.Parts{Datacenter: from.Config.Generator.Datacenter, Worker: g.Worker})
	return answer, err
}

func (a *API) renew(ctx context.Context, from issuing.Lender, handle string, end int64) (answer httpapi.LeaseRenewed, err error) {
	loan := a.book.find(from.Config.Pool, handle)
	held := loan != nil
	if !held {
		if loan, err = lease.NewLoan(from.Config, handle); errors.Is(err, firn.ErrSyntax) {
			return answer, failure.BadRequest("bad_lease", "there is no lease in the request: send it as it was granted, over HTTP in the header %s", Header)
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
		through, err = a.takeOver(ctx, from, loan, known)
	default:
		through, err = loan.Look(ctx, known)
	}
	if errors.Is(err, lease.ErrLost) {
		return answer, failure.New(http.StatusGone, "lease_lost", "%s", failure.Public(err))
	}
	return renewed(loan, from, through), err
}

// takeOver renews a lease that this server does not hold. One that it must not take over, it still looks at.
func (a *API) takeOver(ctx context.Context, from issuing.Lender, loan *lease.Loan, known firn.Tick) (firn.Tick, error) {
	of, full := a.book.reserve(from)
	if full != nil {
		_, err := loan.Look(ctx, known)
		return 0, cmp.Or(err, full)
	}
	through, err := loan.Renew(ctx, known)
	if loan.Held() < 0 { // also if there was nothing to move: then the other server holds it still
		a.book.unreserve(of)
		return through, err
	}
	a.book.hold(of, loan)
	return through, err
}

// position returns the first position of a tick.
func position(layout firn.Layout, tick firn.Tick) uint64 {
	return uint64(max(tick, 0)) << layout.Config().SequenceBits
}

func renewed(loan *lease.Loan, from issuing.Lender, through firn.Tick) httpapi.LeaseRenewed {
	layout := loan.Layout()
	return httpapi.LeaseRenewed{
		Lease: loan.Handle(), Pool: from.Config.Pool, Clock: position(layout, loan.Now()),
		End: position(layout, min(through, math.MaxInt64-1)+1),
	}
}
