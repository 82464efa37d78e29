package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/cli"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// serve serves two namespaces until the test ends, and returns the address.
func serve(t *testing.T) string {
	t.Helper()
	cfg := server.Config{Settings: settings.Config{Namespaces: map[string]settings.Namespace{
		"users": {Kind: "segment"}, "random": {Kind: "uuid"},
	}}, Base: lease.Config{}, Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler)}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served, opened := make(chan error, 1), make(chan struct{})
	go func() {
		served <- server.Start(ctx, cfg, server.Listeners{HTTP: listener}, func(*server.Server) { close(opened) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-opened:
	case err := <-served:
		served <- nil
		t.Fatal(err)
	}
	return listener.Addr().String()
}

func TestBenchTakesIDsOverGRPC(t *testing.T) {
	address := serve(t)
	bench := func(target string) (status int, stdout, stderr string) {
		var out, errs bytes.Buffer
		status = cli.Main([]string{"bench", "--json", "--verify", "--callers", "3", "--batch", "1000", "--duration", "200ms", target},
			strings.NewReader(""), &out, &errs)
		return status, out.String(), errs.String()
	}
	for _, query := range []string{"", "?form=list", "?stream=true", "?stream=true&form=list"} {
		status, out, errs := bench("grpc://" + address + "/users" + query)
		var r struct {
			IDs        int64
			Duplicates int64
			Verified   bool
			Median     int64 `json:"median_ns"`
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%q: %v, %d, %s", query, err, status, errs)
		}
		if status != 0 || r.IDs < 1000 || r.Duplicates != 0 || !r.Verified || r.Median == 0 {
			t.Errorf("%q: %d, %s, %s", query, status, out, errs)
		}
	}
	for target, want := range map[string]struct {
		status int
		words  string
	}{
		"grpc://" + address + "/random":         {1, "texts"},
		"grpc://" + address + "/none":           {1, "unknown namespace"},
		"grpc://" + address + "/users?strem=1":  {2, "?stream=true"},
		"grpc://" + address + "/users?form=all": {2, "?form=list"},
		"grpc://":                               {2, "grpc://HOST:PORT"},
		"grpcs://" + address + "/users":         {1, "tls"},
	} {
		if status, out, errs := bench(target); status != want.status || !strings.Contains(errs, want.words) {
			t.Errorf("%s: %d, %s, %s; want %d and %q", target, status, out, errs, want.status, want.words)
		}
	}
}
