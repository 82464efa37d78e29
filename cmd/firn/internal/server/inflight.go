package server

import (
	"hash/maphash"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// stripes is the number of counters for addresses. Addresses that share a counter also
// share its limit, which matters only when nearly all places are taken.
const stripes = 1 << 10

// An inFlight counts the requests in flight. Its methods may be called concurrently.
type inFlight struct {
	seed maphash.Seed
	all  atomic.Int64
	of   [stripes]atomic.Int64
}

func newInFlight() *inFlight { return &inFlight{seed: maphash.MakeSeed()} }

// enter takes one of limit places, if one is free. One address gets at most three quarters
// of them, so that a greedy client leaves some to others. Give the place back with leave.
func (c *inFlight) enter(remote string, limit int) (of *atomic.Int64, ok bool) {
	of = &c.of[maphash.String(c.seed, clientNetwork(remote))%stripes]
	all, own := c.all.Add(1), of.Add(1)
	if all > int64(limit) || own > int64(limit-limit/4) {
		c.leave(of)
		return nil, false
	}
	return of, true
}

func (c *inFlight) leave(of *atomic.Int64) {
	of.Add(-1)
	c.all.Add(-1)
}

// clientNetwork returns the client's address; for IPv6 its /64 network, since addresses
// within one cost nothing.
func clientNetwork(remote string) string {
	if len(remote) > 0 && remote[0] != '[' { // HOST:PORT
		host, _, _ := strings.Cut(remote, ":")
		return host
	}
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	addr := at.Addr().Unmap()
	if addr.Is6() {
		if net, err := addr.WithZone("").Prefix(64); err == nil {
			return net.Addr().String()
		}
	}
	return addr.String()
}

// limitInFlight refuses requests when as many are in flight as connections are allowed: one
// HTTP/2 connection carries hundreds, and its client need not read the answers. Health and
// metrics requests have a limit of their own.
func limitInFlight(front *issuing.Front, next http.Handler) http.Handler {
	asked, probed := newInFlight(), newInFlight()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under := asked
		switch r.URL.Path {
		case "/livez", "/readyz", "/metrics":
			under = probed
		}
		limit := front.Limits().Connections
		place, ok := under.enter(r.RemoteAddr, limit)
		if !ok {
			f := failure.New(http.StatusServiceUnavailable, "overloaded",
				"too many requests in flight, in total or from one address (limits.connections is %d, one address may have three quarters): try again, or another server", limit)
			f.Retry = time.Second
			fail(w, r, front.Refuse(f))
			return
		}
		defer under.leave(place)
		next.ServeHTTP(w, r)
	})
}
