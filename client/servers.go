package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// A server is one address and what the client knows about it. The client leaves a server that is away,
// and probes it until it answers. It asks a present server after the others while that is in doubt, or
// refuses ids of the namespace.
type server struct {
	address string

	// Guarded by servers.mu.
	left     bool          // it failed, and has not answered a probe since
	failures int           // in a row, of requests and probes; only an answered request resets it
	err      error         // of the latest, nil if it was good
	since    time.Duration // when it was left
	early    int           // requests in a row that were given up early; at maxEarly it is in doubt
	probed   bool          // being probed because it is in doubt
	requests int64
	failed   int64
	retries  map[string]retry // by namespace, of which a client has maxNamespaces at most
}

// A retry is due at a server that refused ids of a namespace but may have ids of others: for example,
// the namespace's pool is past its fence. Callers of the namespace ask other servers first, and from
// time to time one caller tries this one again.
type retry struct {
	tries int           // in a row
	until time.Duration // when to try again
}

// servers are all servers of a client, in the order in which they are asked.
type servers struct {
	cfg  *Config
	wire *wire

	// life ends with the client. Only probes wait under it; callers do not.
	life   context.Context
	cancel context.CancelCauseFunc
	calls  sync.WaitGroup // of Fetch
	probes sync.WaitGroup

	mu      sync.Mutex // guards all below; never held while waiting
	all     []*server
	changed chan struct{} // closed when one is back; nil while no caller waits for it
}

func newServers(cfg *Config) *servers {
	all := make([]*server, len(cfg.Servers))
	for i, address := range cfg.Servers {
		j := int(cfg.Random() % uint64(i+1)) // Fisher-Yates shuffle, inside-out
		all[i] = all[j]
		all[j] = &server{address: address, retries: map[string]retry{}}
	}
	s := &servers{cfg: cfg, wire: newWire(cfg), all: all}
	s.life, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// enter begins a call that end ends and wait waits for. Leave ends it.
func (s *servers) enter(ctx context.Context) (calling context.Context, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return nil, nil, firn.ErrClosed
	}
	s.calls.Add(1)
	calling, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	return calling, func() {
		stop()
		cancel(nil)
		s.calls.Done()
	}, nil
}

// end ends all calls and probes.
func (s *servers) end() {
	s.mu.Lock() // so that no call enters later
	defer s.mu.Unlock()
	s.cancel(firn.ErrClosed)
}

// wait waits until all calls and probes have ended.
func (s *servers) wait() {
	s.calls.Wait()
	s.probes.Wait() // after all that could begin one
	s.wire.close()
}

// present returns the servers that have not been left: first before the others, and servers that are
// unlikely to answer last. If all have been left, err says why, and changed is closed once one is back.
func (s *servers) present(namespace string, first *server) (list []*server, changed <-chan struct{}, err error) {
	now := s.cfg.Time.Monotonic()
	s.mu.Lock()
	defer s.mu.Unlock()
	var late []*server
	var errs several
	for _, one := range s.all {
		switch {
		case one.left:
			errs = append(errs, one.err)
		case one == first:
			list = slices.Insert(list, 0, one)
		case one.early >= maxEarly, one.refuses(namespace, now):
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

// refused records that a server refused ids of a namespace.
func (s *servers) refused(one *server, namespace string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tries := max(1, one.retries[namespace].tries)
	one.retries[namespace] = retry{tries, s.cfg.Time.Monotonic() + s.backoff(tries, err)}
}

// refuses reports whether to ask other servers before this one. When it is time to try again it returns
// false to one caller only: most likely the answer is another refusal. The caller holds mu.
func (one *server) refuses(namespace string, now time.Duration) bool {
	r, ok := one.retries[namespace]
	if !ok || now < r.until {
		return ok
	}
	one.retries[namespace] = retry{r.tries + 1, now + maxBackoff}
	return false
}

// leave stops asking a server that failed until it answers a probe. Close waits for the callers of
// leave and doubt, and then for probes.
func (s *servers) leave(one *server, err error) {
	now := s.cfg.Time.Monotonic()
	s.mu.Lock()
	if one.left || s.life.Err() != nil {
		s.mu.Unlock()
		return
	}
	one.left, one.since, one.err = true, now, err
	one.failures++
	failures := one.failures
	s.mu.Unlock()
	s.cfg.Log.Warn("server left", "server", one.address, "error", err)
	if s.cfg.Hooks.Server != nil {
		s.cfg.Hooks.Server(one.address, err)
	}
	s.probes.Go(func() { s.returnTo(one, failures, err) })
}

// returnTo probes a server, with growing waits, until it answers.
func (s *servers) returnTo(one *server, failures int, err error) {
	for {
		if s.cfg.Time.Sleep(s.life, s.backoff(failures, err)) != nil {
			return
		}
		if err = s.probe(one); s.life.Err() != nil {
			return
		}
		failures = s.answered(one, err)
		if err == nil {
			break
		}
		s.cfg.Log.Debug("server does not answer yet", "server", one.address, "error", err)
	}
	s.cfg.Log.Info("server is back", "server", one.address)
	if s.cfg.Hooks.Server != nil {
		s.cfg.Hooks.Server(one.address, nil)
	}
}

// answered records the result of probing a server that was left, and returns its failures in a row.
func (s *servers) answered(one *server, err error) int {
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

// maxEarly is how many requests in a row may be given up before Config.Timeout until the server is in
// doubt. A single one says more about its caller than about the server; but callers with short
// deadlines must not wait for a server that hangs for ever.
const maxEarly = 3

// doubt records that a request was given up early, without an answer. Callers ask a server in doubt after
// the others, until it answers. A probe with the whole time-out decides whether the server is left.
func (s *servers) doubt(one *server) {
	s.mu.Lock()
	one.early++
	failures := one.failures
	begins := one.early >= maxEarly && !one.left && !one.probed && s.life.Err() == nil
	one.probed = one.probed || begins
	s.mu.Unlock()
	if !begins {
		return
	}
	s.probes.Go(func() {
		// The first probe is sent at once, so that an impatient caller does not keep others from a
		// healthy server. If only probes are answered, the server is probed and asked first less often.
		if failures > 0 && s.cfg.Time.Sleep(s.life, s.backoff(failures, nil)) != nil {
			return
		}
		err := s.probe(one)
		s.mu.Lock()
		one.probed = false
		doubted := one.early >= maxEarly
		if err == nil {
			if doubted {
				one.failures++
			}
			one.early = 0
		}
		s.mu.Unlock()
		if err != nil && doubted {
			s.leave(one, err)
		}
	})
}

// probe asks whether a server is present. Every answer that is not a server failure counts: the server
// may hide its readiness, and one that is not ready because of one pool still has ids of others.
func (s *servers) probe(one *server) error {
	ctx, cancel := context.WithTimeoutCause(s.life, s.cfg.Timeout, noAnswer(s.cfg.Timeout))
	defer cancel()
	err := s.wire.exchange(ctx, one.address, exchange{method: http.MethodGet, path: "/readyz", most: maxMessage})
	var e *Error
	if errors.As(err, &e) && (e.Status >= 400 && e.Status < 500 || e.Status == http.StatusServiceUnavailable && !e.away()) {
		return nil
	}
	return err
}

const (
	// minBackoff is the mean wait after a first failure. It doubles up to maxBackoff, which bounds how
	// long a recovery goes unnoticed.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// backoff returns how long to wait after a number of failures in a row, at least one: no shorter than
// the server asks for; but a failing server is asked again after maxBackoff at the latest, whatever it
// asks for, since it may recover sooner.
func (s *servers) backoff(failures int, err error) time.Duration {
	d := min(minBackoff<<min(max(failures, 1)-1, 16), maxBackoff)
	d = d/2 + time.Duration(s.cfg.Random()%uint64(d))
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

// noAnswer is the cause of a request that took too long. It matches no context's end.
func noAnswer(d time.Duration) error {
	return fmt.Errorf("no answer within %v", d)
}

// A ServerState is what the client knows about a server.
type ServerState struct {
	Server   string
	Up       bool          // it is asked, perhaps after others; if false it is probed
	Down     time.Duration // how long it has been down, 0 if it is up
	Requests int64         // for ids or about namespaces
	Failed   int64         // of these, including those that the caller gave up
	Err      error         // of the latest request or probe, nil if it was good
}

func (s *servers) state() []ServerState {
	now := s.cfg.Time.Monotonic()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]ServerState, len(s.all))
	for i, one := range s.all {
		list[i] = ServerState{Server: one.address, Up: !one.left, Requests: one.requests, Failed: one.failed, Err: one.err}
		if one.left {
			list[i].Down = now - one.since
		}
	}
	return list
}
