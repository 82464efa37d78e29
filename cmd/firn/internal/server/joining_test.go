package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/memstore"
)

// A said closes a channel once a line of the log has words.
type said struct {
	words string
	now   chan struct{}
}

func (s *said) Write(line []byte) (int, error) {
	if strings.Contains(string(line), s.words) {
		close(s.now)
	}
	return len(line), nil
}

// A pool may be joined for as long as another server has its worker. A token that is removed must end meanwhile, and so may the
// pool.
func TestAConfigurationIsFollowedWhileAPoolIsJoined(t *testing.T) {
	token := func(name string) string {
		return fmt.Sprintf("  - {name: %s, sha256: %s, namespaces: ['*']}\n", name, access.Hash(name))
	}
	const items, orders = "namespaces:\n  items: {kind: segment}\n", "  orders: {pool: slow}\n"
	path := filepath.Join(t.TempDir(), "firn.yaml")
	write(t, path, items+orders+"tokens:\n"+token("leaked")+token("good"))
	cfg, err := settings.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowStore{Store: memstore.New(nil), prefix: "firn/slow/", gate: make(chan struct{})}
	defer close(slow.gate)
	on := server.Listeners{HTTP: listen(t)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	hangup, ended := make(chan os.Signal), make(chan error, 1)
	serving, withdrawn, opened := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		ended <- server.Start(ctx, server.Config{
			Settings: cfg, Store: slow, Log: slog.New(slog.NewTextHandler(&said{"are withdrawn", withdrawn}, nil)),
			Follow: func(s *server.Server) func() {
				close(serving)
				followed := make(chan struct{})
				go func() {
					defer close(followed)
					s.Follow(ctx, server.Watch{Config: path, Hangup: hangup})
				}()
				return func() { <-followed }
			},
		}, on, func(*server.Server) { close(opened) })
	}()
	at := "http://" + on.HTTP.Addr().String() + "/v1/ids/items"
	answers := func(token string, want int) {
		t.Helper()
		if status, body := get(t, fresh(t), at, token); status != want {
			t.Errorf("token %s: %d %s, want %d", token, status, body, want)
		}
	}
	<-serving
	answers("leaked", 200)
	write(t, path, items+orders+"tokens:\n"+token("good"))
	hangup <- syscall.SIGHUP
	<-withdrawn
	answers("leaked", 401)
	answers("good", 200)
	select {
	case <-opened:
		t.Error("the pool was joined")
	default:
	}
	write(t, path, items+"tokens:\n"+token("good")) // without the pool
	hangup <- syscall.SIGHUP
	<-opened
	answers("good", 200)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
