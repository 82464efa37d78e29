package cli

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

func TestDurationsInTheJSONLogAreReadable(t *testing.T) {
	var out strings.Builder
	cmd := newServe()
	cmd.SetErr(&out)
	log, lines, err := newLog(cmd, "json", false)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("waiting", "for", 12*time.Second)
	if err := lines.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), `"msg":"waiting","for":"12s"}`) {
		t.Error(out.String())
	}
}

func TestWhatIsSuggestedCanBeReachedFromThisMachine(t *testing.T) {
	listen := func(address string) net.Listener {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	port := func(l net.Listener) string {
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	all, loopback := listen(":0"), listen("127.0.0.1:0")
	for _, test := range []struct {
		on   server.Listeners
		want []string
	}{
		{server.Listeners{HTTP: all}, []string{"  curl http://127.0.0.1:" + port(all) + "/v1/ids/orders\n"}},
		{server.Listeners{HTTP: all, RESP: loopback}, []string{"  curl http://127.0.0.1:", "  redis-cli -h 127.0.0.1 -p " + port(loopback) + " INCR orders\n"}},
	} {
		var out strings.Builder
		suggest(&out, test.on)
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q, want %q", out.String(), want)
			}
		}
		if got := strings.Contains(out.String(), "redis-cli"); got != (test.on.RESP != nil) {
			t.Errorf("%q", out.String())
		}
	}
}

func TestAPortInUseSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, err = listen(t.Context(), slog.New(slog.DiscardHandler), address{text: "127.0.0.1:0", from: "--http"}, address{text: taken.Addr().String(), from: "--resp"}, address{text: "127.0.0.1:0", from: "--grpc"})
	// Two servers on one machine, whose other addresses are given, as before there was one for gRPC.
	on, without := listen(t.Context(), slog.New(slog.DiscardHandler), address{text: "127.0.0.1:0"}, address{text: settings.Off}, address{text: taken.Addr().String(), optional: true})
	if without != nil || on.GRPC != nil {
		t.Error(on, without)
	}
	if err := on.Close(); err != nil {
		t.Error(err)
	}
	want := "listen on " + taken.Addr().String() + " (--resp): "
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "end the program that listens there, or give another address") {
		t.Errorf("%v, want %s…", err, want)
	}
	all := freePort(t)
	_, err = listen(t.Context(), slog.New(slog.DiscardHandler), address{text: all, from: "--http"}, address{text: "127.0.0.1" + all, from: "--resp"}, address{text: settings.Off})
	if want := "listen on 127.0.0.1" + all + " (--resp): the server listens on " + all + " already: give one of them another port"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// freePort returns a free port of all interfaces, below those that connections of other programs get.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := fmt.Sprintf(":%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", port); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}
