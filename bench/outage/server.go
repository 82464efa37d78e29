package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/firn-id/firn/bench/internal/program"
)

// A server is firn serve.
type server struct {
	program.Program
	firn   string
	store  string
	resp   string
	grpc   string
	config string

	version int // of the settings of generator and ranges
	extra   int // namespaces
}

// startServer starts firn serve.
func startServer(dir, firn, redis string) (*server, error) {
	s := &server{firn: firn, store: "redis://" + redis + "/0", config: filepath.Join(dir, "firn.yaml")}
	var err error
	if s.resp, err = program.FreeAddress(); err != nil {
		return nil, err
	}
	if s.grpc, err = program.FreeAddress(); err != nil {
		return nil, err
	}
	if s.Address, err = program.FreeAddress(); err != nil {
		return nil, err
	}
	if err := s.configure(); err != nil {
		return nil, err
	}
	s.Path, s.Args = firn, []string{"serve", "--config", s.config, "--http", s.Address, "--resp", s.resp, "--grpc", s.grpc}
	s.Says = program.Serving
	return s, s.Start()
}

// configure writes the configuration. The window is short, so that leases are renewed in every
// measurement.
func (s *server) configure() error {
	text := fmt.Sprintf("store: %s\nnamespaces:\n  orders: {window: 20s, ahead: %dms}\n  items: {kind: segment, max_step: %d}\n",
		s.store, 10+s.version, 1_000_000+s.version)
	for i := range s.extra {
		text += fmt.Sprintf("  extra-%d: {kind: segment, prefix: e%d}\n", i, i)
	}
	return os.WriteFile(s.config, []byte(text), 0o600)
}

// targets returns a namespace over all protocols.
func (s *server) targets(namespace string) []target {
	kind := map[string]string{"orders": "snowflake", "items": "segment"}[namespace]
	return []target{
		{"HTTP", kind, "http://" + s.Address + "/" + namespace},
		{"RESP", kind, "redis://" + s.resp + "/" + namespace},
		{"gRPC", kind, "grpc://" + s.grpc + "/" + namespace},
	}
}
