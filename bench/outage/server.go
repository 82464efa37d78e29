package main

import (
	"fmt"
	"testing"

	"github.com/firn-id/firn/bench/internal/program"
)

// A server is firn serve.
type server struct {
	*program.Firn
	store   string
	version int // of the settings of generator and ranges
	extra   int // namespaces
}

// startServer starts firn serve.
func startServer(t testing.TB, firn, redis string) *server {
	s := &server{store: "redis://" + redis + "/0"}
	s.Firn = program.StartFirn(t, firn, s.configuration())
	return s
}

// configuration returns the present configuration. The window is short, so that leases are renewed in every
// measurement.
func (s *server) configuration() string {
	text := fmt.Sprintf("store: %s\nnamespaces:\n  orders: {window: 20s, ahead: %dms}\n  items: {kind: segment, max_step: %d}\n",
		s.store, 10+s.version, 1_000_000+s.version)
	for i := range s.extra {
		text += fmt.Sprintf("  extra-%d: {kind: segment, prefix: e%d}\n", i, i)
	}
	return text
}

// targets returns a namespace over all protocols.
func (s *server) targets(namespace string) []target {
	kind := map[string]string{"orders": "snowflake", "items": "segment"}[namespace]
	return []target{
		{"HTTP", kind, "http://" + s.Address + "/" + namespace},
		{"RESP", kind, "redis://" + s.RESP + "/" + namespace},
		{"gRPC", kind, "grpc://" + s.GRPC + "/" + namespace},
	}
}
