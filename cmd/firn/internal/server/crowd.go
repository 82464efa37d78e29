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

// stripes is how many counts a crowd has for addresses. Those that share one also share
// what one address may have, which shows only when nearly all places are taken.
const stripes = 1 << 10

// A crowd is the requests that are under way. Its methods may be called concurrently.
type crowd struct {
	seed maphash.Seed
	all  atomic.Int64
	of   [stripes]atomic.Int64
}

func newCrowd() *crowd { return &crowd{seed: maphash.MakeSeed()} }

// enter takes a place of so many, if one is free. One address has three quarters of them at
// most, so that whoever takes as many as it can leaves some to others. The place is given
// back with leave.
func (c *crowd) enter(remote string, limit int) (of *atomic.Int64, ok bool) {
	of = &c.of[maphash.String(c.seed, network(remote))%stripes]
	all, own := c.all.Add(1), of.Add(1)
	if all > int64(limit) || own > int64(limit-limit/4) {
		c.leave(of)
		return nil, false
	}
	return of, true
}

func (c *crowd) leave(of *atomic.Int64) {
	of.Add(-1)
	c.all.Add(-1)
}

// network returns the address of who makes a request; of IPv6 the network, in which
// addresses cost nothing.
func network(remote string) string {
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

// crowded refuses requests when as many are under way as there may be connections: over
// HTTP/2 one connection carries hundreds, whose answers it need not take. Those that ask
// for the health of the server have as many places of their own.
func crowded(front *issuing.Front, next http.Handler) http.Handler {
	asked, probed := newCrowd(), newCrowd()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under := asked
		switch r.URL.Path {
		case "/livez", "/readyz", "/metrics":
			under = probed
		}
		limit := front.MaxConnections()
		place, ok := under.enter(r.RemoteAddr, limit)
		if !ok {
			f := failure.New(http.StatusServiceUnavailable, "overloaded",
				"as many requests are under way, or three quarters of them from one address, as there may be, which is %d (limits.connections): try again, or another server", limit)
			f.Retry = time.Second
			fail(w, r, front.Refuse(f))
			return
		}
		defer under.leave(place)
		next.ServeHTTP(w, r)
	})
}
