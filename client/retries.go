package client

import "time"

// A retry is due of a server that is there and refused ids of a namespace: whose pool
// is past its fence, say, while others of the server are well. It is not left for
// that. But callers of the namespace go to others first, and one of them tries it
// again from time to time.
type retry struct {
	tries int           // in a row
	until time.Duration // when it is tried again
}

// refused takes in that a server refused ids of a namespace.
func (c *Client) refused(one *server, namespace string, err error) {
	tries := c.servers.refused(one, namespace)
	c.servers.wait(one, namespace, c.cfg.Time.Monotonic()+c.backoff(tries, err))
}

// refused returns how often a server has been tried in vain.
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

// wait puts off the next try, unless ids have been had meanwhile.
func (s *servers) wait(one *server, namespace string, until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := one.retries[namespace]; ok {
		r.until = until
		one.retries[namespace] = r
	}
}

// refuses reports whether others are to be asked before this one. When it is time to
// try again it does not, but to one caller alone: the others would all wait for what
// is a refusal most likely. The caller holds mu.
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
