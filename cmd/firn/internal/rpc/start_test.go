package rpc_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
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

// A transport is where clients of gRPC are served.
type transport string

const (
	onHTTP transport = "on the port of HTTP"
	onPort transport = "on the port of gRPC"
)

// overEach runs a test or a benchmark over each transport.
func overEach[T interface{ Run(string, func(T)) bool }](t T, test func(T, transport)) {
	for _, over := range []transport{onHTTP, onPort} {
		t.Run(string(over), func(t T) { test(t, over) })
	}
}

// A started server listens on its own ports, as firn serve does.
type started struct {
	*server.Server
	address string       // of HTTP
	target  string       // that dial connects to
	stop    func() error // acts as SIGTERM does; returns Start's error
}

// start serves a configuration over a memory store until the test ends.
func start(t testing.TB, config string, over ...transport) *started {
	t.Helper()
	return startOver(t, config, memstore.New(nil), over...)
}

func startOver(t testing.TB, config string, s store.Store, over ...transport) *started {
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
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	on := server.Listeners{HTTP: listen(), GRPC: listen()}
	ctx, cancel := context.WithCancel(context.Background())
	served, opened := make(chan error, 1), make(chan *server.Server, 1)
	go func() {
		served <- server.Start(ctx, server.Config{Settings: cfg, Base: lease.Config{}, Store: s, Log: slog.New(slog.DiscardHandler)}, on,
			func(srv *server.Server) { opened <- srv })
	}()
	st := &started{address: on.HTTP.Addr().String(), target: on.HTTP.Addr().String()}
	select {
	case st.Server = <-opened:
	case err := <-served:
		t.Fatal(err)
	}
	if slices.Contains(over, onPort) {
		st.target = on.GRPC.Addr().String()
	}
	stopped := false
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
	})
	return st
}

// dial returns a grpc-go client.
func (s *started) dial(t testing.TB) (firnv1.IDServiceClient, *grpc.ClientConn) {
	t.Helper()
	conn, err := grpc.NewClient(s.target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return firnv1.NewIDServiceClient(conn), conn
}
