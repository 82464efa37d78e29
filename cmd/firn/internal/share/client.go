package share

import (
	"context"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// A Client is an address or a token with what it has of each resource. Its methods may be called concurrently. A nil
// Client has no limits: it stands for callers inside the process.
type Client struct {
	shares  *Shares
	within  *Client // of an IPv6 network its /48, which has what its networks have; else nil
	uses    int     // guarded by the mutex of shares
	held    [resources]atomic.Int64
	ids     *semaphore.Weighted
	eachIDs int64 // the size of ids
	waiting atomic.Int64
	turn    sync.Mutex
}

// few and many are how many connections and requests a client may have before it lets others run in between, and before
// they take turns, which costs more.
const few, many = 16, 128

// Turn lets others run before the client's next work, if the client has much of it. The connections and requests of a busy
// client enter one after the other, each after what is ready to run has run. So a client that keeps all processors busy delays
// others by a few requests, however many it sends on however many connections, and loses little while it is alone. Long says
// that the goroutine may have run for a millisecond: a client that is not so busy needs to yield only then.
func (c *Client) Turn(long bool) {
	if c == nil {
		return
	}
	n := c.held[HTTPConnections].Load() + c.held[HTTP2Connections].Load() + c.held[Requests].Load() + c.held[Probes].Load() + c.held[RedisConnections].Load()
	switch {
	case n > many:
		c.turn.Lock()
		runtime.Gosched()
		c.turn.Unlock()
	case n > few && long:
		runtime.Gosched()
	}
}

// Leave ends a use of the client. What it has taken it must still give back.
func (c *Client) Leave() {
	if c == nil {
		return
	}
	c.shares.mu.Lock()
	defer c.shares.mu.Unlock()
	c.uses--
}

func (c *Client) idle() bool {
	for r := range c.held {
		if c.held[r].Load() != 0 {
			return false
		}
	}
	if !c.ids.TryAcquire(c.eachIDs) {
		return false
	}
	c.ids.Release(c.eachIDs)
	return true
}

// Take takes n of a resource, unless that would exceed the client's share or the limit. Each success is followed by
// [Client.Give].
func (c *Client) Take(r Resource, n int) bool {
	if c == nil {
		return true
	}
	own, all := c.held[r].Add(int64(n)), c.shares.used[r].Add(int64(n))
	over := own > c.shares.each[r].Load() || all > c.shares.limits[r].Load()
	if w := c.within; w != nil {
		over = w.held[r].Add(int64(n)) > wide*c.shares.each[r].Load() || over
	}
	if over {
		c.Give(r, n)
	}
	return !over
}

// Full reports whether the client, or the network that it is in, has its share of a resource.
func (c *Client) Full(r Resource) bool {
	each := c.shares.each[r].Load()
	return c.held[r].Load() >= each || c.within != nil && c.within.held[r].Load() >= wide*each
}

// Give gives n of a resource back.
func (c *Client) Give(r Resource, n int) {
	if c == nil {
		return
	}
	c.held[r].Add(-int64(n))
	c.shares.used[r].Add(-int64(n))
	if c.within != nil {
		c.within.held[r].Add(-int64(n))
	}
}

// TryIDs takes room for n ids of an answer, at most the client's share, if there is room now. Each success is followed by
// [Client.GiveIDs] with the same n.
func (c *Client) TryIDs(n int64) bool {
	if c == nil {
		return true
	}
	n = min(n, c.eachIDs)
	if !c.ids.TryAcquire(n) {
		return false
	}
	if !c.within.TryIDs(n) {
		c.ids.Release(n)
		return false
	}
	return true
}

// WaitForIDs is TryIDs that waits until ctx ends. It reports whether there is room. Of many requests of a client only
// maxWaiting wait: they too occupy memory.
func (c *Client) WaitForIDs(ctx context.Context, n int64) bool {
	if c == nil {
		return true
	}
	n = min(n, c.eachIDs)
	defer c.waiting.Add(-1)
	if c.waiting.Add(1) > maxWaiting || c.ids.Acquire(ctx, n) != nil {
		return false
	}
	if !c.within.WaitForIDs(ctx, n) {
		c.ids.Release(n)
		return false
	}
	return true
}

// Waits reports whether as many requests of the client wait for room for ids as may.
func (c *Client) Waits() bool { return c != nil && c.waiting.Load() >= maxWaiting }

// GiveIDs gives the room for n ids back.
func (c *Client) GiveIDs(n int64) {
	if c != nil {
		n = min(n, c.eachIDs)
		c.ids.Release(n)
		c.within.GiveIDs(n)
	}
}

// nouns are the resources in the plural, with the status and the code of a refusal.
var nouns = [resources]struct {
	of     string
	status int
	code   string
}{
	HTTPConnections:  {"connections", http.StatusServiceUnavailable, "too_many_connections"},
	HTTP2Connections: {"connections of HTTP/2", http.StatusServiceUnavailable, "too_many_connections"},
	RedisConnections: {"connections", http.StatusServiceUnavailable, "too_many_connections"},
	Requests:         {"requests in flight", http.StatusServiceUnavailable, "overloaded"},
	Probes:           {"requests for health in flight", http.StatusServiceUnavailable, "overloaded"},
	Metrics:          {"requests for metrics in flight", http.StatusServiceUnavailable, "overloaded"},
	Streams:          {"streams of ids", http.StatusTooManyRequests, "too_many_streams"},
	TokenStreams:     {"streams of ids", http.StatusTooManyRequests, "too_many_streams"},
	Watches:          {"watches of health, streams of reflection and of events", http.StatusTooManyRequests, "too_many_streams"},
	Memory:           {"bytes of unfinished requests", http.StatusServiceUnavailable, "overloaded"},
	Refusals:         {"refused requests", http.StatusServiceUnavailable, "overloaded"},
	Names:            {"names made on first use", http.StatusTooManyRequests, "too_many_names"},
}

// Refusal is the failure of a client that could not take any more of a resource.
func (c *Client) Refusal(r Resource) *failure.Failure {
	all, each := c.shares.Of(r)
	who := "one address"
	if r == TokenStreams {
		who = "one token"
	}
	if r == Names {
		return failure.New(nouns[r].status, nouns[r].code, "too many names made on first use, and machine numbers of CosId: one address may make %d (limits.share), all clients %d: declare namespaces in the configuration, give numbers back",
			each, all)
	}
	return failure.New(nouns[r].status, nouns[r].code, "too many %s: %s may have %d, all clients %d (limits.share, limits.md): try again, or another server",
		nouns[r].of, who, each, all).After(time.Second)
}

// networkBits is the size of the smallest IPv6 network: addresses within it cost nothing.
const networkBits = 64

// Network returns what counts as one address, of HOST:PORT: the host, and for IPv6 its /64 network.
func Network(remote string) string {
	if len(remote) > 0 && remote[0] != '[' {
		host, _, _ := strings.Cut(remote, ":")
		return host
	}
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	addr := at.Addr().Unmap()
	if addr.Is6() {
		if net, err := addr.WithZone("").Prefix(networkBits); err == nil {
			return net.String()
		}
	}
	return addr.String()
}

// around returns the /48 of an IPv6 network, as providers give one customer; "" for all else.
func around(network string) string {
	p, err := netip.ParsePrefix(network)
	if err != nil || p.Bits() != networkBits {
		return ""
	}
	return netip.PrefixFrom(p.Addr(), 48).Masked().String()
}

// key is the context key of a request's client.
type key struct{}

// With returns a context with the client of a connection or request.
func With(ctx context.Context, c *Client) context.Context { return context.WithValue(ctx, key{}, c) }

// In returns the client in a context, or nil.
func In(ctx context.Context) *Client {
	c, _ := ctx.Value(key{}).(*Client)
	return c
}
