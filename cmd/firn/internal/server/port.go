package server

import (
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
)

// newPort returns what serves gRPC on an address of its own, with the timeouts and certificates of HTTP.
func (s *Server) newPort() *rpc.Port {
	cfg := rpc.PortConfig{
		Log: s.log, Shares: s.shares, Starting: errStarting(),
		Handshake: s.timeouts.header, Read: s.timeouts.read, Write: s.timeouts.write, Idle: s.timeouts.idle, Ping: s.timeouts.ping,
	}
	if s.certificates != nil {
		cfg.TLS = s.certificates.over("h2")
		cfg.Refused = func(from string, err error) { s.audit.DeniedTLS(from, err.Error()) }
	}
	if s.traces != nil && s.traces.On() {
		cfg.Trace = s.traces.Call
	}
	return rpc.NewPort(cfg)
}
