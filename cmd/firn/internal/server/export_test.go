package server

import "time"

// SetTimeouts shortens how long clients may take, before Serve.
func (s *Server) SetTimeouts(header, read, write, idle time.Duration) {
	s.timeouts.header, s.timeouts.read, s.timeouts.write, s.timeouts.idle, s.timeouts.ping = header, read, write, idle, idle
}

// SetWall has the ends of certificates compared with another clock, before Serve.
func (s *Server) SetWall(wall func() time.Time) { s.certificates.wall = wall }
