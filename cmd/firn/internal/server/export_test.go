package server

import (
	"net/http"
	"time"
)

// SetTimeouts shortens the timeouts; call it before Serve.
func (s *Server) SetTimeouts(header, read, write, idle time.Duration) {
	s.timeouts.header, s.timeouts.read, s.timeouts.write, s.timeouts.idle, s.timeouts.ping = header, read, write, idle, idle
}

// SetDrain sets how long a shutdown waits for requests in flight; call it before Serve.
func (s *Server) SetDrain(longest time.Duration) { s.timeouts.drain = longest }

// LongestStop is how long a server takes at most from the end of --linger until all requests have ended.
var LongestStop = settle + defaultTimeouts.drain

// SetWall sets the clock that checks when certificates expire; call it before Serve.
func (s *Server) SetWall(wall func() time.Time) { s.certificates.wall = wall }

// Panic makes each later request over HTTP fail in the server's own code; call it while the server serves.
func (s *Server) Panic() {
	s.answerWith(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault of ours") }))
}

// NewPatientConn is newPatientConn.
var NewPatientConn = newPatientConn
