package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A slowStore answers once the gate is open. With a prefix, only its keys wait.
type slowStore struct {
	store.Store
	prefix string
	gate   chan struct{}
	err    error
}

func (s *slowStore) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if err := s.wait(ctx, prefix); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, prefix)
}

func (s *slowStore) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := s.wait(ctx, key); err != nil {
		return store.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s *slowStore) wait(ctx context.Context, key string) error {
	if !strings.HasPrefix(key, s.prefix) {
		return nil
	}
	select {
	case <-s.gate:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestAStartingServerAnswersThatItIsStarting(t *testing.T) {
	slow := &slowStore{Store: memstore.New(nil), gate: make(chan struct{})}
	on := server.Listeners{HTTP: listen(t), RESP: listen(t), GRPC: listen(t)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	opened, ending := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- server.Start(ctx, server.Config{
			Store: slow, Log: slog.New(slog.DiscardHandler), Follow: func(*server.Server) func() { return func() { close(ending) } },
		}, on, func(*server.Server) { close(opened) })
	}()
	client := fresh(t)
	ask := func(path string) (int, string, http.Header) {
		t.Helper()
		a := fetch(t, client, "http://"+on.HTTP.Addr().String()+path)
		return a.status, a.body, a.header
	}
	if status, body, _ := ask("/livez"); status != 200 || body != "ok\n" {
		t.Errorf("livez: %d %s", status, body)
	}
	for _, path := range []string{"/readyz", "/v1/ids/orders", "/metrics"} {
		if status, body, header := ask(path); status != 503 || !strings.Contains(body, `"code":"starting"`) || header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s %v", path, status, body, header)
		}
	}
	if got := startLine(t, client, "http://"+on.HTTP.Addr().String()+"/"); got != "<!doctype html>" {
		t.Errorf("a browser gets %q", got)
	}
	ids := firnv1connect.NewIDServiceClient(client, "http://"+on.HTTP.Addr().String())
	if _, err := ids.Generate(t.Context(), connect.NewRequest(&firnv1.GenerateRequest{Namespace: "orders"})); connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "is starting") {
		t.Errorf("over Connect: %v", err)
	}
	for _, at := range []net.Listener{on.HTTP, on.GRPC} {
		conn, err := grpc.NewClient("passthrough:///"+at.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = health.NewHealthClient(conn).Check(t.Context(), &health.HealthCheckRequest{})
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "is starting") {
			t.Errorf("over gRPC: %v", err)
		}
	}
	for range 3 {
		c := dial(t, on.RESP.Addr().String())
		if got := say(t, c, "PING"); !strings.HasPrefix(got, "-LOADING the server is starting") {
			t.Errorf("PING: %s", got)
		}
	}
	silent := dial(t, on.RESP.Addr().String()) // must not delay the others
	close(slow.gate)
	<-opened
	if got := ends(t, "one that said nothing", silent); got != "" {
		t.Errorf("one that said nothing heard %q", got)
	}
	if got := say(t, dial(t, on.RESP.Addr().String()), "INCR orders"); !strings.HasPrefix(got, ":") {
		t.Errorf("INCR: %s", got)
	}
	if status, body, _ := ask("/v1/ids/orders"); status != 200 {
		t.Errorf("ids: %d %s", status, body)
	}
	stop()
	<-ending
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// mixed has namespaces of a pool and others.
const mixed = "namespaces: {orders: {pool: slow}, fast: {pool: fast}, items: {kind: segment}, txn: {kind: sequence}, key: {kind: uuid}}\n"

// startMixed starts a server that cannot join its pool "slow" before the gate opens.
func startMixed(t *testing.T, slow *slowStore) (on server.Listeners, opened chan struct{}, stop func(), ended chan error) {
	t.Helper()
	cfg, err := settings.Parse("firn.yaml", []byte(mixed))
	if err != nil {
		t.Fatal(err)
	}
	slow.Store, slow.prefix, slow.gate = memstore.New(nil), "firn/slow/", make(chan struct{})
	on = server.Listeners{HTTP: listen(t), RESP: listen(t)}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	opened, ended = make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- server.Start(ctx, server.Config{Settings: cfg, Store: slow, Log: slog.New(slog.DiscardHandler)}, on, func(*server.Server) { close(opened) })
	}()
	return on, opened, stop, ended
}

// whileServing asks until the server no longer answers that it is starting.
func whileServing(t *testing.T, url string) answer {
	t.Helper()
	for {
		a := fetch(t, fresh(t), url)
		if !strings.Contains(a.body, `"code":"starting"`) {
			return a
		}
	}
}

func TestOtherNamespacesAreServedWhileAPoolIsJoined(t *testing.T) {
	slow := &slowStore{}
	on, opened, stop, ended := startMixed(t, slow)
	at := "http://" + on.HTTP.Addr().String()
	for _, name := range []string{"items", "txn", "key"} {
		if a := whileServing(t, at+"/v1/ids/"+name); a.status != 200 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	a := whileServing(t, at+"/v1/ids/orders")
	if a.status != 503 || a.header.Get("Retry-After") != "1" || !strings.Contains(a.body, `"code":"joining"`) || !strings.Contains(a.body, "pool slow: the server is joining it") {
		t.Errorf("orders: %d %s %v", a.status, a.body, a.header)
	}
	// Or a rolling update would end the servers that still issue them.
	if a := whileServing(t, at+"/readyz"); a.status != 503 || !strings.Contains(a.body, "the server is starting: ") || !strings.Contains(a.body, "orders: pool slow: the server is joining it") {
		t.Errorf("readyz: %d %s", a.status, a.body)
	}
	if a := whileServing(t, at+"/readyz?namespace=items"); a.status != 200 {
		t.Errorf("readyz of items: %d %s", a.status, a.body)
	}
	if a := whileServing(t, at+"/readyz?namespace=orders"); a.status != 503 {
		t.Errorf("readyz of orders: %d %s", a.status, a.body)
	}
	if a := whileServing(t, at+"/v1/namespaces/orders"); a.status != 200 || !strings.Contains(a.body, "joining") {
		t.Errorf("the state of orders: %d %s", a.status, a.body)
	}
	if a := whileServing(t, at+"/metrics"); a.status != 200 || !strings.Contains(a.body, `firn_namespace_ready{namespace="orders"} 0`) || strings.Contains(a.body, `firn_lease_worker{pool="slow"}`) {
		t.Errorf("metrics: %d %s", a.status, a.body)
	}
	c := dial(t, on.RESP.Addr().String())
	if got := say(t, c, "INCR orders"); !strings.HasPrefix(got, "-TRYAGAIN joining: pool slow") {
		t.Errorf("INCR orders: %s", got)
	}
	if got := say(t, c, "INCR items"); !strings.HasPrefix(got, ":") {
		t.Errorf("INCR items: %s", got)
	}
	select {
	case <-opened:
		t.Error("opened before the pool was joined")
	default:
	}
	close(slow.gate)
	<-opened
	if a := fetch(t, fresh(t), at+"/readyz"); a.status != 200 {
		t.Errorf("readyz: %d %s", a.status, a.body)
	}
	for _, name := range []string{"orders", "fast"} {
		if a := whileServing(t, at+"/v1/ids/"+name); a.status != 200 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAServerWhosePoolCannotBeJoinedEnds(t *testing.T) {
	slow := &slowStore{err: errors.New("the store is on fire")}
	on, opened, _, ended := startMixed(t, slow)
	if a := whileServing(t, "http://"+on.HTTP.Addr().String()+"/v1/ids/items"); a.status != 200 {
		t.Errorf("items: %d %s", a.status, a.body)
	}
	close(slow.gate)
	if err := <-ended; !errors.Is(err, slow.err) || !strings.Contains(err.Error(), "namespace orders: ") {
		t.Error(err)
	}
	select {
	case <-opened:
		t.Error("opened")
	default:
	}
}

func TestAShutdownWhileAPoolIsJoinedEndsTheServer(t *testing.T) {
	on, _, stop, ended := startMixed(t, &slowStore{})
	if a := whileServing(t, "http://"+on.HTTP.Addr().String()+"/v1/ids/items"); a.status != 200 {
		t.Errorf("items: %d %s", a.status, a.body)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAServerThatCannotStartEnds(t *testing.T) {
	wrong := errors.New("the store is on fire")
	slow := &slowStore{Store: memstore.New(nil), gate: make(chan struct{}), err: wrong}
	close(slow.gate)
	for name, on := range map[string]server.Listeners{"both": {HTTP: listen(t), RESP: listen(t)}, "http": {HTTP: listen(t)}} {
		err := server.Start(t.Context(), server.Config{Store: slow, Log: slog.New(slog.DiscardHandler)}, on, func(*server.Server) { t.Errorf("%s: opened", name) })
		if !errors.Is(err, wrong) {
			t.Errorf("%s: %v", name, err)
		}
		if err := on.Close(); err == nil {
			t.Errorf("%s: the listeners were left open", name)
		}
	}
}

func TestAShutdownDuringStartupEndsTheServer(t *testing.T) {
	slow := &slowStore{Store: memstore.New(nil), gate: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	on := server.Listeners{HTTP: listen(t), RESP: listen(t)}
	go func() {
		ended <- server.Start(ctx, server.Config{Store: slow, Log: slog.New(slog.DiscardHandler)}, on, func(*server.Server) {})
	}()
	if got := say(t, dial(t, on.RESP.Addr().String()), "PING"); !strings.HasPrefix(got, "-LOADING") {
		t.Errorf("PING: %s", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a requested shutdown returned %v", err)
	}
}

// startLine returns the first line of what a browser gets.
func startLine(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	line, _, _ := strings.Cut(does(t, c, http.MethodGet, url, "Accept", "text/html,*/*;q=0.8").body, "\n")
	return line
}
