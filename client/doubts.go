package client

// maxEarly is how many requests in a row may be given up before Config.Timeout until
// the server is in doubt. A single one says more about its caller than about the
// server. But without a limit, callers with short deadlines would keep waiting for a
// server that hangs, for ever.
const maxEarly = 3

// doubt records that a request was given up early, without an answer. Callers ask a
// server in doubt after the others. A probe with the whole time-out decides whether
// the server is left. Any answer in the meantime ends the doubt.
//
// Like leave, it is called within calls that Close waits for.
func (c *Client) doubt(one *server) {
	if c.life.Err() != nil || !c.servers.doubt(one) {
		return
	}
	c.probes.Go(func() {
		// The first probe is sent at once, so that one impatient caller does not keep
		// others from a healthy server. If probes are answered but requests still bring
		// nothing, the server is probed and asked first less and less often.
		if failures := c.servers.failuresOf(one); failures > 0 && c.cfg.Time.Sleep(c.life, c.backoff(failures, nil)) != nil {
			return
		}
		err := c.probe(one)
		if c.servers.decide(one, err) {
			c.leave(one, err)
		}
	})
}

// doubt reports whether to probe the server. decide ends the probing.
func (s *servers) doubt(one *server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.early++
	if one.early < maxEarly || one.left || one.probed {
		return false
	}
	one.probed = true
	return true
}

// decide records the result of probing a server in doubt, and reports whether to
// leave it.
func (s *servers) decide(one *server, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.probed = false
	if err != nil {
		return one.early >= maxEarly
	}
	if one.early >= maxEarly {
		one.failures++ // only a request that is answered resets it
	}
	one.early = 0
	return false
}
