package httpapi

import (
	"net/http"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// The requests of package leaseapi, and their answers. Positions have 64 bits, so they are texts.

// LeaseRenewed is the answer to a renewal.
type LeaseRenewed struct {
	Lease string `json:"lease"`
	Pool  string `json:"pool"`
	Clock uint64 `json:"clock,string"` // the present as a position
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

var once = Parameter{Name: "once", Help: "up to 64 letters and digits, other ones in each request. The answer repeats them, so a client can tell an answer that a cache has kept for another", Form: text}

// The requests of leases. A program follows docs/leases.md: this description does not suffice.
var (
	LeaseGrant = Route{
		Name: "lease", Path: "/v1/leases/{pool}", Methods: http.MethodPost,
		Says:   "Leases a worker to a program that makes its ids itself, by the rules of docs/leases.md. The first grant is short: renew it.",
		Query:  []Parameter{once},
		Answer: inJSON("LeaseGranted", of[LeaseGranted]),
		Codes: leaseCodes(map[int][]string{
			http.StatusTooManyRequests: {"too_many_leases"}, http.StatusServiceUnavailable: {"pool_full", "joining", "shutting_down"},
		}),
	}
	LeaseRenew = Route{
		Name: "renewLease", Path: "/v1/leases/{pool}/renew", Methods: http.MethodPost,
		Says:   "Checks that a worker is still leased, and moves the end of the lease forward when it is time.",
		Query:  []Parameter{{Name: "end", Help: "the latest end that the program knows; required", Form: text}, once},
		Header: []Parameter{{Name: "Firn-Lease", Help: "the lease; required", Form: text}},
		Answer: inJSON("LeaseRenewed", of[LeaseRenewed]),
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
