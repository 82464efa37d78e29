package issuing

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// A Protocol is a protocol of requests; it is a label of metrics.
type Protocol uint8

// The protocols.
const (
	HTTP Protocol = iota
	RPC
	RESP
	Leaf
	TinyID
	CosID
	protocols // the number of protocols
)

func (p Protocol) String() string {
	return [...]string{"http", "rpc", "resp", "leaf", "tinyid", "cosid"}[p]
}

// A Front is the service for one protocol: it identifies callers (caller.go) and issues ids (issue.go). It
// answers other requests too (reader.go). Each request is counted once, with its error (tally.go). Errors are or wrap those that
// package failure knows.
type Front struct {
	service  *Service
	protocol Protocol
	seconds  prometheus.Observer
}

// Front returns the service for a protocol.
func (s *Service) Front(p Protocol) *Front {
	return &Front{s, p, s.metrics.seconds.WithLabelValues(p.String())}
}

// Shares has what all clients use, by address.
func (s *Service) Shares() *share.Shares { return s.shares }

// Limits returns the limits in force.
func (f *Front) Limits() settings.Limits { return f.service.now.Load().limits }
