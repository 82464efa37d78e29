package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/store/memstore"
)

// The server would answer for another hour, but one of its fronts fails.
func TestAfterAShutdownRequestAServerStillServesButIsNotReady(t *testing.T) {
	on := server.Listeners{HTTP: listen(t), RESP: listen(t)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	opened, ended := make(chan struct{}), make(chan error, 1)
	log := &records{}
	go func() {
		ended <- server.Start(ctx, server.Config{
			Store: memstore.New(nil), Log: slog.New(slog.NewTextHandler(log, nil)), Linger: time.Hour,
		}, on, func(*server.Server) { close(opened) })
	}()
	<-opened
	url, client := "http://"+on.HTTP.Addr().String(), fresh(t)
	ask := func(path string) (int, string, bool) {
		t.Helper()
		a := fetch(t, client, url+path)
		return a.status, a.body, a.closes
	}
	redis := dial(t, on.RESP.Addr().String())
	if status, body, closes := ask("/readyz"); status != 200 || closes {
		t.Errorf("before: %d %s", status, body)
	}
	stop()
	for { // until the server has noticed the shutdown
		status, body, closes := ask("/readyz")
		if status == 200 {
			continue
		}
		if status != 503 || !strings.Contains(body, "shutting") || !closes {
			t.Errorf("readyz: %d %s, closes the connection: %t", status, body, closes)
		}
		break
	}
	for range 3 {
		if status, body, closes := ask("/v1/ids/orders"); status != 200 || !closes {
			t.Errorf("ids: %d %s, closes the connection: %t", status, body, closes)
		}
	}
	stream, err := firnv1connect.NewIDServiceClient(client, url).GenerateStream(t.Context(), connect.NewRequest(&firnv1.GenerateStreamRequest{Namespace: "orders", Total: new(int64(5))}))
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for stream.Receive() {
		got += len(stream.Msg().GetIds())
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil || got != 5 {
		t.Errorf("a stream: %d ids, %v", got, err)
	}
	for _, c := range []net.Conn{redis, dial(t, on.RESP.Addr().String())} {
		if got := say(t, c, "INCR orders"); !strings.HasPrefix(got, ":") {
			t.Errorf("INCR: %s", got)
		}
	}
	if err := on.HTTP.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ended with %v", err)
	}
	log.has(t, "shutdown requested: no longer ready, still serving", "worker released")
	if c, err := net.Dial("tcp", on.RESP.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("it listens after its end")
	}
}
