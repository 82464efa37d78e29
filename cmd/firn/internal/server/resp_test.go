package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRedisCommandsInFlightEndBeforeWorkersAreGivenBack(t *testing.T) {
	s, gated, store := newGated(t)
	on := server.Listeners{HTTP: listen(t), RESP: listen(t)}
	gated.armed.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	served := open(ctx, t, s, on)
	c, err := net.Dial("tcp", on.RESP.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const count = 200 // more than may run ahead of the clock: it must wait
	if _, err := fmt.Fprintf(c, "FIRN.NEXT orders COUNT %d\r\nINCR orders\r\n", count); err != nil {
		t.Fatal(err)
	}
	<-gated.entered
	stop()
	for { // until it takes no new connections
		other, err := net.Dial("tcp", on.RESP.Addr().String())
		if err != nil {
			break
		}
		other.Close()
	}
	select {
	case err := <-served:
		t.Fatalf("it stopped serving with a command under way: %v", err)
	default:
	}
	close(gated.gate)
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "*200\r\n:") || strings.Count(string(answer), "\r\n:") != count+1 {
		t.Errorf("the commands under way: %.100q, %v", answer, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	p, err := lease.Inspect(t.Context(), store, "default")
	if err != nil || !p.Slots[0].Free {
		t.Errorf("the worker after Close: %+v, %v", p.Slots, err)
	}
}

func TestBothProtocolsServeOneNamespace(t *testing.T) {
	cfg := settings.Config{Namespaces: map[string]settings.Namespace{"items": {Kind: "segment"}}}
	s, err := server.New(t.Context(), server.Config{Settings: cfg, Base: lease.Config{}, Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	on := server.Listeners{HTTP: listen(t), RESP: listen(t)}
	ctx, stop := context.WithCancel(t.Context())
	served := open(ctx, t, s, on)
	c, err := net.Dial("tcp", on.RESP.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lines := bufio.NewReader(c)
	for want := 1; want < 10; want += 2 {
		if _, err := io.WriteString(c, "INCR items\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := lines.ReadString('\n'); line != fmt.Sprintf(":%d\r\n", want) {
			t.Fatalf("%q, %v, want %d", line, err, want)
		}
		answer, err := http.Get("http://" + on.HTTP.Addr().String() + "/v1/ids/items")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !strings.Contains(string(body), fmt.Sprintf(`["%d"]`, want+1)) {
			t.Fatalf("%s, %v, want %d", body, err, want+1)
		}
	}
	answer, err := http.Get("http://" + on.HTTP.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	for _, want := range []string{`firn_requests_total{code="ok",namespace="items",protocol="resp"} 5`, `firn_connections{listener="resp"} 1`, `firn_request_seconds_count{protocol="resp"} `} {
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("metrics lack %s, %v", want, err)
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAListenerThatFailsEndsTheServer(t *testing.T) {
	for broken, want := range map[string]string{"http": "serve http", "resp": "listen for the redis protocol"} {
		s, err := server.New(t.Context(), server.Config{Settings: settings.Config{}, Base: lease.Config{}, Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		on := server.Listeners{HTTP: listen(t), RESP: listen(t)}
		fails := on.HTTP
		if broken == "resp" {
			fails = on.RESP
		}
		if err := fails.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(t.Context(), on, func() {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", broken, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A client that has gone shows itself only when its answers are written: until then its later commands would take ids.
func TestAnAnswerIsNotWithheldUntilAllCommandsAreDone(t *testing.T) {
	v := serve(t, "namespaces: {flake: {layout: sonyflake}}\n") // 25,600 ids a second
	c := dial(t, v.redis)
	if _, err := io.WriteString(c, "FIRN.NEXT flake COUNT 10000\r\nFIRN.NEXT flake COUNT 100000\r\n"); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(c)
	for range 1 + 10_000 {
		if _, err := answers.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	_, metrics := get(t, fresh(t), "http://"+v.addr+"/metrics", "")
	if want := `firn_ids_total{namespace="flake"} 10000`; !strings.Contains(metrics, want) {
		t.Error("the second command was done before the answer to the first was written")
	}
}
