package server

import (
	"net/http"
	"time"
)

// SetTimeouts shortens the timeouts; call it before Serve.
func (s *Server) SetTimeouts(header, read, write, idle time.Duration) {
	s.timeouts.header, s.timeouts.read, s.timeouts.write, s.timeouts.idle, s.timeouts.ping = header, read, write, idle, idle
}

// SetWall sets the clock that checks when certificates expire; call it before Serve.
func (s *Server) SetWall(wall func() time.Time) { s.certificates.wall = wall }

// Panic makes each later request over HTTP fail in the server's own code; call it while the server serves.
func (s *Server) Panic() {
	s.answerWith(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault of ours") }))
}

// NewPatientConn is newPatientConn.
var NewPatientConn = newPatientConn

// SetDrain shortens how long requests in flight are awaited at the end; call it before Serve.
func (s *Server) SetDrain(d time.Duration) { s.timeouts.drain = d }
