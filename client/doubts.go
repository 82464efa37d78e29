package client

// maxEarly is how many requests in a row may be given up early, before Config.Timeout
// says anything, until a server is in doubt. One says more of its caller than of the
// server. But callers that are all in a hurry would else go on to wait for one that
// hangs, each of them, for ever.
const maxEarly = 3

// doubt takes in that a request was given up early, without an answer. Callers ask a
// server that is in doubt after the others, and a probe, which has the whole time-out,
// decides: it is left, or stays. Whatever it answers meanwhile ends the doubt.
//
// Like leave it is called within calls that Close waits for.
func (c *Client) doubt(one *server) {
	if c.life.Err() != nil || !c.servers.doubt(one) {
		return
	}
	c.probes.Go(func() {
		// At once, so that a caller of no patience keeps nobody from a server that is
		// well. If requests go on to bring nothing, though probes are answered, it is
		// probed and asked first more and more seldom.
		if failures := c.servers.failuresOf(one); failures > 0 && c.cfg.Time.Sleep(c.life, c.backoff(failures, nil)) != nil {
			return
		}
		err := c.probe(one)
		if c.servers.decide(one, err) {
			c.leave(one, err)
		}
	})
}

// doubt reports whether the server is to be probed, which decide ends.
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

// decide takes in what the probe of a server in doubt found, and reports whether it is
// to be left.
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
