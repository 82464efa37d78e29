package rpc_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/memstore"
)

// newAPI serves only this interface, on an HTTP server that set may configure.
func newAPI(t *testing.T, set func(*http.Server)) (*rpc.API, *httptest.Server) {
	t.Helper()
	service, err := issuing.Open(t.Context(), issuing.Config{
		Settings: settings.Config{Namespaces: map[string]settings.Namespace{"users": {Kind: "segment"}}},
		Store:    memstore.New(nil), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	api := rpc.New(service, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	api.Register(mux)
	h := httptest.NewUnstartedServer(mux)
	h.Config.Protocols = new(http.Protocols)
	h.Config.Protocols.SetHTTP1(true)
	h.Config.Protocols.SetUnencryptedHTTP2(true)
	set(h.Config)
	h.Start()
	t.Cleanup(func() {
		api.Drain()
		h.Close()
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return api, h
}

func TestAStreamHasTheRequestedNumberOfIDs(t *testing.T) {
	overEach(t, testAStreamHasTheRequestedNumberOfIDs)
}

func testAStreamHasTheRequestedNumberOfIDs(t *testing.T, over transport) {
	client, _ := start(t, benchConfig, over).dial(t)
	for _, c := range []struct {
		total    int64
		batch    *int32
		messages int
	}{{1, nil, 1}, {999, nil, 1}, {1000, nil, 1}, {1001, nil, 2}, {10, count(3), 4}, {250_000, count(100_000), 3}} {
		for name, form := range forms {
			for _, namespace := range []string{"users", "wide"} {
				s, err := client.GenerateStream(t.Context(), &firnv1.GenerateStreamRequest{
					Namespace: namespace, Total: proto.Int64(c.total), Batch: c.batch, Form: form,
				})
				if err != nil {
					t.Fatal(err)
				}
				seen, messages := map[string]bool{}, 0
				for {
					answer, err := s.Recv()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					messages++
					for _, id := range expand(answer) {
						seen[id] = true
					}
				}
				if int64(len(seen)) != c.total || messages != c.messages {
					t.Errorf("%s, %s: %d different ids in %d messages, want %d in %d", namespace, name, len(seen), messages, c.total, c.messages)
				}
			}
		}
	}
}

// The client reads slowly, for longer than the server's timeouts for a request and an
// answer.
func TestAStreamOutlivesTheTimeoutsOfOneAnswer(t *testing.T) {
	api, h := newAPI(t, func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	})
	api.SetStall(400 * time.Millisecond)
	for name, options := range map[string][]connect.ClientOption{"connect over HTTP/1.1": nil, "gRPC-Web over HTTP/1.1": {connect.WithGRPCWeb()}} {
		client := firnv1connect.NewIDServiceClient(h.Client(), h.URL, options...)
		// Messages of 80 KB do not all fit into the socket buffers.
		s, err := client.GenerateStream(t.Context(), connect.NewRequest(&firnv1.GenerateStreamRequest{Namespace: "users", Batch: count(10_000)}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		readFor(t, name, func() error {
			if !s.Receive() {
				return s.Err()
			}
			return nil
		})
		s.Close()
	}
	conn, err := grpc.NewClient(h.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := firnv1.NewIDServiceClient(conn).GenerateStream(t.Context(), &firnv1.GenerateStreamRequest{Namespace: "users", Batch: count(10_000)})
	if err != nil {
		t.Fatal(err)
	}
	readFor(t, "gRPC", func() error {
		_, err := s.Recv()
		return err
	})
}

// readFor reads until well after the server's timeouts.
func readFor(t *testing.T, name string, read func() error) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for start := time.Now(); time.Since(start) < 1500*time.Millisecond; <-ticker.C {
		if err := read(); err != nil {
			t.Fatalf("%s: after %v: %v", name, time.Since(start), err)
		}
	}
}

func TestAClientThatNeverReadsLosesItsStream(t *testing.T) {
	api, h := newAPI(t, func(*http.Server) {})
	api.SetStall(200 * time.Millisecond)
	conn, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"namespace":"users","batch":100000}`
	if _, err := io.WriteString(conn, "POST /firn.v1.IDService/GenerateStream HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\n\r\n"+
		chunk(string([]byte{0, 0, 0, 0, byte(len(body))})+body)+"0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	await(t, "the stream to begin", func() bool { ids, _ := api.Open(); return ids == 1 })
	await(t, "the stream to end", func() bool { ids, _ := api.Open(); return ids == 0 })

	client, err := grpc.NewClient(h.Listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, err := firnv1.NewIDServiceClient(client).GenerateStream(t.Context(), &firnv1.GenerateStreamRequest{Namespace: "users"})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the stream to begin", func() bool { ids, _ := api.Open(); return ids == 1 })
	await(t, "the stream to end", func() bool { ids, _ := api.Open(); return ids == 0 })
	for err == nil {
		_, err = s.Recv() // messages sent before, then the end
	}
	if errors.Is(err, io.EOF) || status.Code(err) == codes.OK {
		t.Errorf("a stalled stream ended with %v", err)
	}
}

func TestACanceledStreamEndsAtTheServerToo(t *testing.T) {
	api, h := newAPI(t, func(*http.Server) {})
	for name, options := range map[string][]connect.ClientOption{"connect": nil, "gRPC-Web": {connect.WithGRPCWeb()}} {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := firnv1connect.NewIDServiceClient(h.Client(), h.URL, options...).GenerateStream(ctx,
			connect.NewRequest(&firnv1.GenerateStreamRequest{Namespace: "users"}))
		if err != nil || !s.Receive() {
			t.Fatalf("%s: %v", name, err)
		}
		cancel()
		s.Close()
		await(t, "the stream to end", func() bool { ids, _ := api.Open(); return ids == 0 })
	}
	h.Client().CloseIdleConnections()
}

// await waits until reached reports true.
func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !reached() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestAnIncompleteRequestEnds(t *testing.T) {
	_, h := newAPI(t, func(s *http.Server) { s.ReadTimeout = 200 * time.Millisecond })
	for _, client := range []*http.Client{h.Client(), h2c(t)} {
		for path, contentType := range map[string]string{
			"/firn.v1.IDService/Generate":                               "application/grpc",
			"/firn.v1.IDService/GenerateStream":                         "application/grpc-web+proto",
			"/firn.v1.IDService/Decode":                                 "application/json",
			"/grpc.health.v1.Health/Watch":                              "application/grpc",
			"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": "application/grpc",
		} {
			body, hold := io.Pipe()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+path, body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", contentType)
			answer, err := client.Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", path, err)
			}
			hold.Close()
		}
	}
}

func TestStreamsAreLimited(t *testing.T) {
	api, h := newAPI(t, func(*http.Server) {})
	client := firnv1connect.NewIDServiceClient(h2c(t), h.URL, connect.WithGRPC())
	ask := func() error {
		s, err := client.GenerateStream(t.Context(), connect.NewRequest(&firnv1.GenerateStreamRequest{Namespace: "users", Total: proto.Int64(1)}))
		if err != nil {
			return err
		}
		for s.Receive() {
		}
		return errors.Join(s.Err(), s.Close())
	}
	api.Occupy(true)
	if err := ask(); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Error(err)
	}
	api.Occupy(false)
	if err := ask(); err != nil {
		t.Error(err)
	}
}
