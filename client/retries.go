package client

import "time"

// A retry is due at a server that is present but refused ids of a namespace: for
// example, the namespace's pool is past its fence while the server's other pools are
// well. The client does not leave the server for that. But callers of the namespace
// ask other servers first, and from time to time one of them tries this one again.
type retry struct {
	tries int           // in a row
	until time.Duration // when to try again
}

// refused records that a server refused ids of a namespace.
func (c *Client) refused(one *server, namespace string, err error) {
	tries := c.servers.refused(one, namespace)
	c.servers.wait(one, namespace, c.cfg.Time.Monotonic()+c.backoff(tries, err))
}

// refused returns how often in a row a server has refused a namespace.
func (s *servers) refused(one *server, namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.retries == nil {
		one.retries = map[string]retry{}
	}
	r, ok := one.retries[namespace]
	if !ok {
		r.tries = 1
		one.retries[namespace] = r
	}
	return r.tries
}

// wait postpones the next try, unless the server has given ids meanwhile.
func (s *servers) wait(one *server, namespace string, until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := one.retries[namespace]; ok {
		r.until = until
		one.retries[namespace] = r
	}
}

// refuses reports whether to ask other servers before this one. When it is time to
// try again it returns false to one caller only: the others would all wait for what
// is most likely another refusal. The caller holds mu.
func (s *servers) refuses(one *server, namespace string, now time.Duration) bool {
	r, ok := one.retries[namespace]
	if !ok {
		return false
	}
	if now < r.until {
		return true
	}
	r.tries++
	r.until = now + maxBackoff
	one.retries[namespace] = r
	return false
}
