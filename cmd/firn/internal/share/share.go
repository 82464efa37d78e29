// Package share divides what all clients of a server use among them: connections, requests in flight, streams, memory.
//
// One address has at most a share of each (for IPv6 one /64 network, since addresses within it cost nothing, and a /48, of
// which a customer may have all, three times the share). So a client leaves room for others, whatever it does and without credentials. A token has a share of its own where tokens are known.
// Behind a proxy all clients have one address, so the share is adjustable.
//
// A connection finds its [Client] once and carries it. A request then costs a few additions.
package share

import (
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// A Resource is something that all clients use and of which there is a limited amount.
type Resource uint8

// The resources.
const (
	HTTPConnections  Resource = iota // connections of the HTTP listener
	HTTP2Connections                 // those that speak HTTP/2, which occupy more memory, also on the listener of gRPC
	RedisConnections                 // connections of the listener of the Redis protocol
	Requests                         // requests in flight, over HTTP and gRPC
	Probes                           // the same of health
	Metrics                          // the same of metrics, each of which is megabytes if there are many namespaces
	Streams                          // streams of ids
	TokenStreams                     // the same by token, on whatever addresses
	Watches                          // watches of health, and streams of reflection and of events
	Memory                           // bytes of requests that wait for their rest or for EXEC, and of answers that wait for their client
	Names                            // names that clients made; never given back
	Refusals                         // answers to requests that were refused at once
	resources
)

// The limits that are not configured.
const (
	maxStreams = 1000
	maxWatches = 1000
	maxMetrics = 16
	maxMemory  = 96 << 20
	// http2Part is the part of the connections that may speak HTTP/2.
	http2Part  = 10
	leastHTTP2 = 100
	// wide is how many shares an IPv6 /48 has.
	wide = 3
	// maxRefusals is generous: a client that reads them has few at a time.
	maxRefusals = 1000
	// maxNames bounds names made on first use: each has metrics of its own, or keys in the store.
	maxNames = 10_000

	// MaxIDs bounds the ids in answers that clients have not taken yet. A client can request megabytes with a few bytes, on
	// many connections, and read them slowly or never.
	MaxIDs = 4 << 20
	// maxWaiting bounds the requests of one client that wait for room for ids.
	maxWaiting = 256
)

// Limits are the limits that are configured.
type Limits struct {
	HTTP, Redis int // connections
	Requests    int
	Percent     int // of each resource, for one client
}

// Shares are the resources of a server. Make it with [New]. Its methods may be called concurrently.
type Shares struct {
	limits, each [resources]atomic.Int64 // for all clients, and for one
	eachIDs      atomic.Int64
	used         [resources]struct {
		atomic.Int64
		_ [56]byte // a cache line each, since every request writes some
	}

	mu      sync.Mutex         // guards the fields below
	clients map[string]*Client // forgotten by sweep
	sweepAt int                // the number of clients
}

// New returns the resources with these limits.
func New(l Limits) *Shares {
	s := &Shares{clients: map[string]*Client{}, sweepAt: minSweep}
	s.Limit(l)
	return s
}

// Limit replaces the limits. Clients keep what they have.
func (s *Shares) Limit(l Limits) {
	for r, limit := range [resources]int{
		HTTPConnections: l.HTTP, HTTP2Connections: min(l.HTTP, max(l.HTTP/http2Part, leastHTTP2)), RedisConnections: l.Redis, Requests: l.Requests, Probes: l.Requests,
		Streams: maxStreams, TokenStreams: maxStreams, Watches: maxWatches, Metrics: maxMetrics, Memory: maxMemory, Names: maxNames, Refusals: maxRefusals,
	} {
		s.limits[r].Store(int64(limit))
		s.each[r].Store(max(1, int64(limit)*int64(l.Percent)/100))
	}
	s.eachIDs.Store(max(1, MaxIDs*int64(l.Percent)/100))
}

// Of returns the limits of a resource, for all clients and for one.
func (s *Shares) Of(r Resource) (all, each int) {
	return int(s.limits[r].Load()), int(s.each[r].Load())
}

// Used returns how much of a resource all clients have.
func (s *Shares) Used(r Resource) int { return int(s.used[r].Load()) }

// minSweep is from how many clients on those without anything are forgotten.
const minSweep = 1 << 10

// OfRequest returns the client of a request: that of its connection, or of its address. Each call is followed by a call of
// leave.
func (s *Shares) OfRequest(r *http.Request) (c *Client, leave func()) {
	if c := In(r.Context()); c != nil {
		return c, func() {}
	}
	c = s.Client(r.RemoteAddr)
	return c, c.Leave
}

// Client returns the client at a remote address, as HOST:PORT. Each call is followed by [Client.Leave].
func (s *Shares) Client(remote string) *Client { return s.enter(Network(remote)) }

// Token returns the client with a token. Each call is followed by [Client.Leave].
func (s *Shares) Token(name string) *Client { return s.enter("token " + name) }

func (s *Shares) enter(key string) *Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[key]
	if c == nil {
		if len(s.clients) >= s.sweepAt {
			s.sweep()
		}
		c = s.add(key, s.eachIDs.Load())
		if net := around(key); net != "" {
			if c.within = s.clients[net]; c.within == nil {
				c.within = s.add(net, min(wide*s.eachIDs.Load(), MaxIDs))
			}
			c.within.uses++ // until c is forgotten
		}
	}
	c.uses++
	return c
}

// add is called with the lock held.
func (s *Shares) add(key string, ids int64) *Client {
	c := &Client{shares: s, ids: semaphore.NewWeighted(ids), eachIDs: ids}
	s.clients[key] = c
	return c
}

// sweep forgets the clients that have nothing. One that has left may still have a request in flight, or names.
func (s *Shares) sweep() {
	for key, c := range s.clients {
		if c.uses == 0 && c.idle() {
			delete(s.clients, key)
			if c.within != nil {
				c.within.uses--
			}
		}
	}
	s.sweepAt = max(minSweep, 2*len(s.clients))
}
