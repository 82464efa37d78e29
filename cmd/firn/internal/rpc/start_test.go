package rpc_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A started server listens on its own port, as firn serve does.
type started struct {
	*server.Server
	address string
	stop    func() error // acts as SIGTERM does; returns Serve's error
}

// start serves a configuration over a memory store until the test ends.
func start(t testing.TB, config string) *started {
	t.Helper()
	return startOver(t, config, memstore.New(nil))
}

func startOver(t testing.TB, config string, s store.Store) *started {
	t.Helper()
	var cfg settings.Config
	if config != "" {
		path := filepath.Join(t.TempDir(), "firn.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if cfg, err = settings.Read(path); err != nil {
			t.Fatal(err)
		}
	}
	srv, err := server.New(context.Background(), server.Config{Settings: cfg, Base: lease.Config{}, Store: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, server.Listeners{HTTP: listener}) }()
	stopped := false
	st := &started{Server: srv, address: listener.Addr().String()}
	st.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-served
	}
	t.Cleanup(func() {
		if err := st.stop(); err != nil {
			t.Error(err)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// dial returns a grpc-go client.
func (s *started) dial(t testing.TB) (firnv1.IDServiceClient, *grpc.ClientConn) {
	t.Helper()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return firnv1.NewIDServiceClient(conn), conn
}
