package rpc_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A faulty store fails or delays writes on demand.
type faulty struct {
	*memstore.Store
	down atomic.Bool
	hold atomic.Pointer[chan struct{}] // if not nil, writes to counters wait until it is closed
	held atomic.Int64                  // how many writes wait
}

func (f *faulty) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if f.down.Load() {
		return store.Entry{}, store.ErrUnavailable
	}
	if hold := f.hold.Load(); hold != nil && strings.Contains(key, "counter:txn") {
		f.held.Add(1)
		defer f.held.Add(-1)
		select {
		case <-*hold:
		case <-ctx.Done():
			return store.Entry{}, context.Cause(ctx)
		}
	}
	return f.Store.CompareAndSwap(ctx, key, old, value)
}

func TestHealthFollowsTheServer(t *testing.T) { overEach(t, testHealthFollowsTheServer) }

func testHealthFollowsTheServer(t *testing.T, over transport) {
	s := &faulty{Store: memstore.New(nil)}
	srv := startOver(t, "namespaces: {orders: {window: 1s}}", s, over)
	client, conn := srv.dial(t)
	probe := health.NewHealthClient(conn)
	check := func(service string) health.HealthCheckResponse_ServingStatus {
		t.Helper()
		answer, err := probe.Check(t.Context(), &health.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetStatus()
	}
	for _, service := range []string{"", "firn.v1.IDService", "firn.v1.LeaseService", "grpc.health.v1.Health"} {
		if got := check(service); got != health.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v", service, got)
		}
	}
	if _, err := probe.Check(t.Context(), &health.HealthCheckRequest{Service: "unknown"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	all, err := probe.List(t.Context(), &health.HealthListRequest{})
	if err != nil || len(all.GetStatuses()) != 4 || all.GetStatuses()["firn.v1.IDService"].GetStatus() != health.HealthCheckResponse_SERVING {
		t.Error(all, err)
	}

	watch, err := probe.Watch(t.Context(), &health.HealthCheckRequest{Service: "firn.v1.IDService"})
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := probe.Watch(t.Context(), &health.HealthCheckRequest{Service: "unknown"})
	if err != nil {
		t.Fatal(err)
	}
	next := func(w health.Health_WatchClient, want health.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if got, err := w.Recv(); err != nil || got.GetStatus() != want {
			t.Fatalf("%v, %v; want %v", got, err, want)
		}
	}
	next(watch, health.HealthCheckResponse_SERVING)
	next(unknown, health.HealthCheckResponse_SERVICE_UNKNOWN)

	// The store is down for longer than the window: no id can be issued.
	s.down.Store(true)
	next(watch, health.HealthCheckResponse_NOT_SERVING)
	if got := check(""); got != health.HealthCheckResponse_NOT_SERVING {
		t.Error(got)
	}
	if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "orders"}); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
	s.down.Store(false)
	next(watch, health.HealthCheckResponse_SERVING)
	if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "orders"}); err != nil {
		t.Error(err)
	}

	// At shutdown a watch gets the status, and then an error that sends the client to another server.
	if err := srv.stop(); err != nil {
		t.Error(err)
	}
	next(watch, health.HealthCheckResponse_NOT_SERVING)
	for _, w := range []health.Health_WatchClient{watch, unknown} {
		if _, err := w.Recv(); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
	}
}

// TestShutdownEndsStreamsAndAnswersRequests stops a server while a request waits for the store and
// a stream is open.
func TestShutdownEndsStreamsAndAnswersRequests(t *testing.T) {
	overEach(t, testShutdownEndsStreamsAndAnswersRequests)
}

func testShutdownEndsStreamsAndAnswersRequests(t *testing.T, over transport) {
	s := &faulty{Store: memstore.New(nil)}
	srv := startOver(t, "namespaces: {txn: {kind: sequence}, users: {kind: segment}}", s, over)
	client, _ := srv.dial(t)
	generate := func() (*firnv1.GenerateResponse, error) {
		return client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "txn", Count: count(2)})
	}
	if _, err := generate(); err != nil {
		t.Fatal(err)
	}
	stream, err := client.GenerateStream(t.Context(), &firnv1.GenerateStreamRequest{Namespace: "users"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	s.hold.Store(&hold)
	type answer struct {
		*firnv1.GenerateResponse
		error
	}
	answered := make(chan answer, 1)
	go func() {
		a, err := generate()
		answered <- answer{a, err}
	}()
	await(t, "the request to reach the store", func() bool { return s.held.Load() == 1 })

	stopped := make(chan error, 1)
	go func() { stopped <- srv.stop() }()
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("the stream ended with %v", err)
	}
	select {
	case a := <-answered:
		t.Fatalf("the request was answered before the store answered: %v", a)
	case err := <-stopped:
		t.Fatalf("the server stopped during a request: %v", err)
	default:
	}
	close(hold)
	if a := <-answered; a.error != nil || !proto.Equal(a.GenerateResponse, &firnv1.GenerateResponse{Ids: []int64{3, 4}}) {
		t.Errorf("the request during shutdown: %v", a)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); errors.Is(err, io.EOF) {
		t.Error("the stream ended as if it were complete")
	}
}
