// Package leaseapi leases workers to programs that make their ids themselves, in any language. docs/leases.md
// specifies it. The safety argument is in package lease; a server keeps nothing about a lease that another one needs.
package leaseapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/firn-id/firn"
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
	// callLimit bounds all other requests. Each call of the store has a bound of its own.
	callLimit = 10 * time.Second
	// fullRetry is when to ask again for a worker of a pool that has none.
	fullRetry = 5 * time.Second

	// Header has the lease. It is a secret, so it is in no address.
	Header = "Firn-Lease"
)

// API is the interface. Make one with [New].
type API struct {
	front *issuing.Front
	log   *slog.Logger
	book  *book
}

// New returns the interface to a service. It starts nothing: the requests of programs are the looks at their slots. When
// the server ends, they go on at another.
func New(s *issuing.Service, log *slog.Logger) *API {
	return &API{front: s.Front(issuing.HTTP), log: log, book: newBook()}
}

// Register adds the interface's requests to a mux.
func (a *API) Register(mux *http.ServeMux, to *httpapi.API) {
	route := func(d *httpapi.Route, h func(*http.Request, issuing.Lender) (any, error)) {
		to.Serve(mux, d, func(w http.ResponseWriter, r *http.Request) error {
			answer, err := a.answer(r, h)
			if err != nil {
				return err
			}
			a.front.Answered(http.StatusOK)
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer) // a failed write means that the client has gone; its lease ends by itself
			return nil
		})
	}
	route(&httpapi.LeaseGrant, a.grant)
	route(&httpapi.LeaseRenew, a.renew)
}

func (a *API) answer(r *http.Request, h func(*http.Request, issuing.Lender) (any, error)) (any, error) {
	caller, err := a.front.Caller(r)
	if err != nil {
		return nil, err
	}
	from, err := a.front.Lender(caller, r.PathValue("pool"))
	if err != nil {
		return nil, err
	}
	here, _ := os.Hostname() // for people only
	from.Config.Host = fmt.Sprintf("%s for %s at %s", here, from.By, r.RemoteAddr)
	answer, err := h(r, from)
	if err != nil {
		return nil, a.front.Refuse(failed(err))
	}
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

func (a *API) grant(r *http.Request, from issuing.Lender) (any, error) {
	if err := none(r); err != nil {
		return nil, err
	}
	if err := a.front.Grants(from); err != nil {
		return nil, err
	}
	of, err := a.book.reserve(from)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), claimLimit)
	defer cancel()
	loan, g, err := lease.Lend(ctx, from.Config, first)
	if err != nil {
		a.book.unreserve(of)
		return nil, err
	}
	a.book.hold(of, loan)
	a.log.Info("a worker was leased to a program", "pool", from.Config.Pool, "worker", g.Worker, "by", from.By, "from", r.RemoteAddr)
	layout := loan.Layout()
	now := renewed(loan, from, g.Through)
	answer := httpapi.LeaseGranted{
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

func (a *API) renew(r *http.Request, from issuing.Lender) (any, error) {
	handle := r.Header.Get(Header)
	loan := a.book.find(from.Config.Pool, handle)
	held := loan != nil
	if !held {
		var err error
		if loan, err = lease.OpenLoan(from.Config, handle); errors.Is(err, firn.ErrSyntax) {
			return nil, failure.BadRequest("bad_lease", "the header %s has no lease: send it as it was granted", Header)
		} else if err != nil {
			return nil, err
		}
	}
	known, err := endOf(r, loan.Layout())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), callLimit)
	defer cancel()
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
		return nil, failure.New(http.StatusGone, "lease_lost", "%s", failure.Public(err))
	}
	return renewed(loan, from, through), err
}

// takeOver renews a lease that this server does not hold.
func (a *API) takeOver(ctx context.Context, from issuing.Lender, loan *lease.Loan, known firn.Tick) (firn.Tick, error) {
	of, err := a.book.reserve(from)
	if err != nil {
		return 0, err
	}
	through, err := loan.Renew(ctx, known)
	if err != nil {
		a.book.unreserve(of)
		return 0, err
	}
	a.book.hold(of, loan)
	return through, nil
}

// endOf reads the end that a program knows, and returns the last tick before it.
func endOf(r *http.Request, layout firn.Layout) (firn.Tick, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if values := query["end"]; err != nil || len(query) != 1 || len(values) != 1 {
		return 0, failure.BadRequest("bad_request", "write ?end= with the end of the lease as it was answered last, and nothing else")
	}
	text := query.Get("end")
	end, err := strconv.ParseInt(text, 10, 64)
	if err != nil || end <= 0 || end&layout.MaxSequence() != 0 {
		return 0, failure.BadRequest("bad_request", "end %q is no position at which a lease of this layout ends: send it as it was answered last", text)
	}
	return firn.Tick(end>>layout.Config().SequenceBits) - 1, nil
}

// none refuses parameters.
func none(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	return failure.BadRequest("bad_request", "there are no parameters here")
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
