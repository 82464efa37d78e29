package server

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// A crowd is the requests that are under way. Its methods may be called concurrently.
type crowd struct {
	mu  sync.Mutex // guards all below
	all int
	of  map[netip.Addr]int
}

// enter takes a place of so many, if one is free. One address has three quarters of them at
// most, so that whoever takes as many as it can leaves some to others.
func (c *crowd) enter(from netip.Addr, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= limit || c.of[from] >= limit-limit/4 {
		return false
	}
	c.all++
	c.of[from]++
	return true
}

func (c *crowd) leave(from netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[from]--; c.of[from] == 0 {
		delete(c.of, from)
	}
}

// network returns the address of who makes a request; of IPv6 the network, in which
// addresses cost nothing.
func network(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	addr := at.Addr().Unmap()
	if addr.Is6() {
		if net, err := addr.WithZone("").Prefix(64); err == nil {
			return net.Addr()
		}
	}
	return addr
}

// crowded refuses requests when as many are under way as there may be connections: over
// HTTP/2 one connection carries hundreds, whose answers it need not take. Those that ask
// for the health of the server have as many places of their own.
func crowded(front *issuing.Front, next http.Handler) http.Handler {
	asked, probed := &crowd{of: map[netip.Addr]int{}}, &crowd{of: map[netip.Addr]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under := asked
		switch r.URL.Path {
		case "/livez", "/readyz", "/metrics":
			under = probed
		}
		from, limit := network(r.RemoteAddr), front.MaxConnections()
		if !under.enter(from, limit) {
			f := failure.New(http.StatusServiceUnavailable, "overloaded",
				"as many requests are under way, or three quarters of them from one address, as there may be, which is %d (limits.connections): try again, or another server", limit)
			f.Retry = time.Second
			httpapi.Fail(w, front.Refuse(f))
			return
		}
		defer under.leave(from)
		next.ServeHTTP(w, r)
	})
}
