package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A server is one address and what the client knows about it.
type server struct {
	address string

	// Guarded by servers.mu.
	left     bool          // it failed, and has not answered a probe since
	failures int           // in a row, of requests and probes
	err      error         // of the latest, nil if it was good
	since    time.Duration // when it was left
	early    int           // requests in a row that were given up early; at maxEarly it is in doubt
	probed   bool          // being probed because it is in doubt
	requests int64
	failed   int64
	retries  map[string]retry // by namespace, of which a client has maxNamespaces at most
}

// servers are all servers of a client, in the order in which they are asked.
type servers struct {
	mu      sync.Mutex // never held while waiting
	all     []*server
	changed chan struct{} // closed when one is back; nil unless somebody waits
}

func newServers(addresses []string, random func() uint64) *servers {
	all := make([]*server, len(addresses))
	for i, address := range addresses {
		j := int(random() % uint64(i+1)) // Fisher-Yates shuffle, inside-out
		all[i] = all[j]
		all[j] = &server{address: address}
	}
	return &servers{all: all}
}

// present returns the servers that have not been left: q.first before the others, and
// servers that are unlikely to answer last. If all have been left, err says why, and
// changed is closed once one is back.
func (s *servers) present(q question, now time.Duration) (list []*server, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var late []*server
	var errs several
	for _, one := range s.all {
		switch {
		case one.left:
			errs = append(errs, one.err)
		case one == q.first:
			list = slices.Insert(list, 0, one)
		case one.early >= maxEarly, s.refuses(one, q.namespace, now):
			late = append(late, one)
		default:
			list = append(list, one)
		}
	}
	if list = append(list, late...); len(list) > 0 {
		return list, nil, nil
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return nil, s.changed, errs
}

// note counts a request and its outcome, and whether the server itself answered.
func (s *servers) note(one *server, namespace string, err error, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.requests++
	if err != nil || !one.left { // keep why it was left until a probe is answered
		one.err = err
	}
	if err != nil {
		one.failed++
	} else {
		delete(one.retries, namespace)
	}
	if answered {
		one.failures, one.early = 0, 0
	}
}

// leave marks a server as left. It returns how often the server failed in a row, and
// whether this call was the first to leave it.
func (s *servers) leave(one *server, now time.Duration, err error) (failures int, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.left {
		return one.failures, false
	}
	one.left, one.since, one.err = true, now, err
	one.failures++ // only a successful request resets it, not a probe
	return one.failures, true
}

// probed records the result of a probe, and returns the failures in a row.
func (s *servers) probed(one *server, err error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		one.failures++
		one.err = err
		return one.failures
	}
	one.left, one.early = false, 0
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	return one.failures
}

const (
	// minBackoff is the mean wait after a first failure. It doubles up to
	// maxBackoff, which bounds how long a recovery goes unnoticed.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 2 * time.Second
	// maxRetryAfter bounds the wait that a rate-limiting server may ask for. A server
	// that fails may ask for maxBackoff at most: others may recover before.
	maxRetryAfter = time.Minute
)

// backoff returns how long to wait after a number of failures in a row, at least one.
// The wait is not shorter than the server asks for.
func (c *Client) backoff(failures int, err error) time.Duration {
	d := min(minBackoff<<min(max(failures, 1)-1, 16), maxBackoff)
	d = d/2 + time.Duration(c.cfg.Random()%uint64(d))
	var e *Error
	switch {
	case !errors.As(err, &e):
		return d
	case errors.Is(e, ErrLimited):
		return max(d, min(e.RetryAfter, maxRetryAfter))
	default:
		return max(d, min(e.RetryAfter, maxBackoff))
	}
}

// leave stops asking a server that failed until it answers a probe. It is called
// within calls that Close waits for.
func (c *Client) leave(one *server, err error) {
	if c.life.Err() != nil {
		return
	}
	failures, first := c.servers.leave(one, c.cfg.Time.Monotonic(), err)
	if !first {
		return
	}
	c.cfg.Log.Warn("server left", "server", one.address, "error", err)
	if c.cfg.Hooks.Server != nil {
		c.cfg.Hooks.Server(one.address, err)
	}
	c.probes.Go(func() { c.returnTo(one, failures, err) })
}

// returnTo probes a server, with growing waits, until it answers.
func (c *Client) returnTo(one *server, failures int, err error) {
	for {
		if c.cfg.Time.Sleep(c.life, c.backoff(failures, err)) != nil {
			return
		}
		if err = c.probe(one); c.life.Err() != nil {
			return
		}
		failures = c.servers.probed(one, err)
		if err == nil {
			break
		}
		c.cfg.Log.Debug("server does not answer yet", "server", one.address, "error", err)
	}
	c.cfg.Log.Info("server is back", "server", one.address)
	if c.cfg.Hooks.Server != nil {
		c.cfg.Hooks.Server(one.address, nil)
	}
}

func (s *servers) failuresOf(one *server) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return one.failures
}

// probe asks whether a server is present. Every answer that is not a server failure
// counts: the server may hide its readiness from clients without the right to see it,
// and a server that is not ready because of one pool still has ids of others.
func (c *Client) probe(one *server) error {
	ctx, cancel := context.WithTimeoutCause(c.life, c.cfg.Timeout, noAnswer(c.cfg.Timeout))
	defer cancel()
	err := c.exchange(ctx, one, exchange{method: http.MethodGet, path: "/readyz", most: maxMessage})
	var e *Error
	if errors.As(err, &e) && (e.Status >= 400 && e.Status < 500 || e.Status == http.StatusServiceUnavailable && !e.away()) {
		return nil
	}
	return err
}

// noAnswer is the cause of a request that took too long. It does not match a context's
// end in [errors.Is]: the caller's context has not ended.
func noAnswer(d time.Duration) error {
	return fmt.Errorf("no answer within %v", d)
}
