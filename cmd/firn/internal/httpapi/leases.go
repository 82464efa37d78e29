package httpapi

import (
	"net/http"
	"strconv"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

var onceParameter = Parameter{Name: "once", Help: "up to 64 letters, digits, - and _, other ones in each request. The answer repeats them, so a client can tell an answer that a cache has kept for another", Form: text}

// The requests of leases. A program follows docs/leases.md: this description does not suffice.
var (
	leaseGrantRoute = Route{
		Name: "lease", Path: "/v1/leases/{pool}", Methods: http.MethodPost,
		Says:   "Leases a worker to a program that makes its ids itself, by the rules of docs/leases.md. The first grant is short: renew it.",
		Query:  []Parameter{onceParameter},
		Answer: inJSON("LeaseGranted", of[issuing.LeaseGranted]),
		Codes: leaseCodes(map[int][]string{
			http.StatusTooManyRequests: {"too_many_leases"}, http.StatusServiceUnavailable: {"pool_full", "joining", "shutting_down"},
		}),
	}
	leaseRenewRoute = Route{
		Name: "renewLease", Path: "/v1/leases/{pool}/renew", Methods: http.MethodPost,
		Says:   "Checks that a worker is still leased, and moves the end of the lease forward when it is time.",
		Query:  []Parameter{{Name: "end", Help: "the latest end that the program knows; required", Form: text}, onceParameter},
		Header: []Parameter{{Name: issuing.LeaseHeader, Help: "the lease; required", Form: text}},
		Answer: inJSON("LeaseRenewed", of[issuing.LeaseRenewed]),
		Codes: leaseCodes(map[int][]string{
			http.StatusBadRequest: {"bad_lease"}, http.StatusGone: {"lease_lost"}, http.StatusTooManyRequests: {"too_many_leases"},
		}),
	}
)

// leaseCodes returns the codes of a request, with those of all requests of leases.
func leaseCodes(own map[int][]string) map[int][]string {
	all := map[int][]string{
		http.StatusBadRequest: {"not_leasable"}, http.StatusForbidden: {"forbidden"}, http.StatusNotFound: {"unknown_pool"},
		http.StatusServiceUnavailable: {"store_unavailable", "timed_out", "canceled", "time_exhausted", "wrong_clock", failure.Mismatch},
	}
	for status, codes := range own {
		all[status] = append(all[status], codes...)
	}
	return all
}

func (a *API) grantLease(c *call) (any, error) {
	return a.front.GrantLease(c.Context(), c.caller, c.PathValue("pool"), c.query.Get("once"))
}

func (a *API) renewLease(c *call) (any, error) {
	end, err := strconv.ParseInt(c.query.Get("end"), 10, 64)
	if err != nil {
		end = 0 // is refused
	}
	return a.front.RenewLease(c.Context(), c.caller, c.PathValue("pool"), c.query.Get("once"), c.Header.Get(issuing.LeaseHeader), end)
}
