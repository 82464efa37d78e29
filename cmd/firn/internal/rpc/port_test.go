package rpc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/store/memstore"
)

// A port is a Port without the rest of a server.
type port struct {
	*rpc.Port
	api     *rpc.API
	shares  *share.Shares
	address string
}

// newPort serves two namespaces. Set may change the configuration and the limits.
func newPort(t *testing.T, set func(*rpc.PortConfig, *share.Limits)) *port {
	t.Helper()
	limits := share.Limits{HTTP: 100, Redis: 100, Requests: 100, Percent: 100}
	cfg := rpc.PortConfig{
		Log: slog.New(slog.DiscardHandler), Starting: failure.New(http.StatusServiceUnavailable, "starting", "the server is starting"),
		Handshake: 5 * time.Second, Read: time.Minute, Write: time.Minute, Idle: time.Minute, Ping: time.Minute,
	}
	set(&cfg, &limits)
	cfg.Shares = share.New(limits)
	service, err := issuing.Open(t.Context(), issuing.Config{
		Settings: settings.Config{Namespaces: map[string]settings.Namespace{"users": {Kind: "segment"}, "uid": {Kind: "uuid"}}},
		Store:    memstore.New(nil), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Shares: cfg.Shares,
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &port{Port: rpc.NewPort(cfg), api: rpc.New(service, slog.New(slog.DiscardHandler)), shares: cfg.Shares, address: listener.Addr().String()}
	p.Open(p.api)
	served := make(chan error, 1)
	go func() { served <- p.Serve(listener) }()
	t.Cleanup(func() {
		p.api.Drain()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		if err := service.Close(); err != nil {
			t.Error(err)
		}
		for _, r := range []share.Resource{share.Requests, share.Probes, share.Streams, share.Watches, share.Memory} {
			await(t, fmt.Sprintf("resource %d to be free", r), func() bool { return p.shares.Used(r) == 0 }) // methods may still end
		}
	})
	return p
}

func (p *port) dial(t testing.TB, options ...grpc.DialOption) (firnv1.IDServiceClient, *grpc.ClientConn) {
	t.Helper()
	conn, err := grpc.NewClient(p.address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return firnv1.NewIDServiceClient(conn), conn
}

// post begins a call over HTTP/2 with a body of its own making.
func (p *port) post(t *testing.T, client *http.Client, method string, body io.Reader, headers ...string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.address+method, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return client.Do(r)
}

const generate = "/firn.v1.IDService/Generate"

// reason returns the reason of an error.
func reason(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

func request(t *testing.T, namespace string, n int) []byte {
	t.Helper()
	message, err := proto.Marshal(&firnv1.GenerateRequest{Namespace: namespace, Count: count(n)})
	if err != nil {
		t.Fatal(err)
	}
	return frame(0, message)
}

func TestAStreamThatIsNotReadEndsWithItsReason(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	p.api.SetStall(200 * time.Millisecond)
	client, _ := p.dial(t)
	for _, batch := range []int{1000, 10_000, 100_000} { // below and above what grpc-go sends without the client
		stream, err := client.GenerateStream(t.Context(), &firnv1.GenerateStreamRequest{Namespace: "users", Batch: count(batch)})
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the stream to begin", func() bool { ids, _ := p.api.Open(); return ids == 1 })
		time.Sleep(400 * time.Millisecond) // not to synchronise: this is what the client does
		if ids, _ := p.api.Open(); ids != 1 {
			t.Error("its place is free although its messages are in memory")
		}
		for err == nil {
			_, err = stream.Recv() // messages sent before, then the end
		}
		if status.Code(err) != codes.ResourceExhausted || reason(err) != "too_slow" {
			t.Errorf("batches of %d: %v", batch, err)
		}
		await(t, "the place of the stream", func() bool { ids, _ := p.api.Open(); return ids == 0 })
	}
}

func TestAClientThatTakesNothingLosesItsConnection(t *testing.T) {
	p := newPort(t, func(c *rpc.PortConfig, _ *share.Limits) { c.Write = 300 * time.Millisecond })
	p.api.SetStall(100 * time.Millisecond)
	for _, method := range []string{generate, "/firn.v1.IDService/GenerateStream"} {
		client := h2c(t)
		client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 10}
		body := request(t, "users", 10_000)
		if method != generate {
			message, err := proto.Marshal(&firnv1.GenerateStreamRequest{Namespace: "users", Batch: count(1000)})
			if err != nil {
				t.Fatal(err)
			}
			body = frame(0, message)
		}
		answer, err := p.post(t, client, method, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the request in flight", func() bool { return p.shares.Used(share.Requests) == 1 })
		await(t, "its end", func() bool { return p.shares.Used(share.Requests) == 0 })
		if _, err := io.Copy(io.Discard, answer.Body); err == nil {
			t.Errorf("%s: an answer that was cut off looks complete", method)
		}
		answer.Body.Close()
	}
}

func TestARequestThatStaysIncompleteLosesItsConnection(t *testing.T) {
	p := newPort(t, func(c *rpc.PortConfig, _ *share.Limits) { c.Read = 200 * time.Millisecond })
	for _, method := range []string{generate, "/firn.v1.IDService/GenerateStream", "/firn.v1.IDService/Decode", "/grpc.health.v1.Health/Watch"} {
		body, hold := io.Pipe()
		go hold.Write(request(t, "users", 1)[:7])
		answer, err := p.post(t, h2c(t), method, body)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", method, err)
		}
		hold.Close()
	}
	// Questions about the schema may come later, on a stream that ends alone.
	body, hold := io.Pipe()
	defer hold.Close()
	client := h2c(t)
	answer, err := p.post(t, client, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.Trailer.Get("Grpc-Status")+answer.Header.Get("Grpc-Status") != "8" {
		t.Error(err, answer.Header, answer.Trailer)
	}
	answer.Body.Close()
}

// The requests have a minute, so the connection ends because of the memory.
func TestIncompleteRequestsCountAsMemory(t *testing.T) {
	p := newPort(t, func(_ *rpc.PortConfig, l *share.Limits) { l.Percent, l.Requests, l.HTTP = 1, 10_000, 10_000 }) // a megabyte, 100 requests
	client, failed := h2c(t), make(chan error, 40)
	for range cap(failed) {
		body, hold := io.Pipe()
		t.Cleanup(func() { hold.Close() })
		go hold.Write(append([]byte{0, 0, 0, 0xfd, 0}, make([]byte, 60_000)...))
		go func() {
			answer, err := p.post(t, client, generate, body)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			failed <- err
		}()
	}
	for range cap(failed) {
		if err := <-failed; err == nil {
			t.Error("a request without an end was answered")
		}
	}
	await(t, "the memory", func() bool { return p.shares.Used(share.Memory) == 0 })
}

func TestRequestsInFlightAreLimitedAndProbesAreNot(t *testing.T) {
	p := newPort(t, func(_ *rpc.PortConfig, l *share.Limits) { l.Requests = 2 })
	client, conn := p.dial(t)
	probe := health.NewHealthClient(conn)
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		watch, err := probe.Watch(ctx, &health.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() error {
		_, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users"})
		return err
	}
	if err := ask(); status.Code(err) != codes.Unavailable || reason(err) != "overloaded" {
		t.Error(err)
	}
	if _, err := probe.Check(t.Context(), &health.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	cancel()
	await(t, "the watches to end", func() bool { return p.shares.Used(share.Requests) == 0 })
	if err := ask(); err != nil {
		t.Error(err)
	}
}

// grpc-go refuses some calls itself, before their method begins.
func TestCallsWithoutAMethodGiveTheirPlaceBack(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	client := h2c(t)
	for _, method := range []string{"/a.B/C", "/firn.v1.IDService/None", "/", "/x", generate} {
		answer, err := p.post(t, client, method, bytes.NewReader(request(t, "users", 1)), "Grpc-Encoding", "zstd")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.Header.Get("Grpc-Status") != "12" {
			t.Error(method, answer.Header, err)
		}
		answer.Body.Close()
	}
	await(t, "the places of the calls", func() bool { return p.shares.Used(share.Requests) == 0 })
}

func TestStreamsOverThePortAreLimited(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	client, _ := p.dial(t)
	ask := func() error {
		s, err := client.GenerateStream(t.Context(), &firnv1.GenerateStreamRequest{Namespace: "users", Total: proto.Int64(1)})
		for err == nil {
			_, err = s.Recv()
		}
		return err
	}
	p.api.Occupy(true)
	if err := ask(); status.Code(err) != codes.ResourceExhausted || reason(err) != "too_many_streams" {
		t.Error(err)
	}
	p.api.Occupy(false)
	if err := ask(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// Each may keep four answers of some kilobytes that its client does not read.
func TestStreamsOfReflectionAreLimited(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	overHTTP, h := newAPI(t, func(*http.Server) {})
	for address, api := range map[string]*rpc.API{p.address: p.api, h.Listener.Addr().String(): overHTTP} {
		ask := func(want codes.Code) {
			t.Helper()
			answer, err := (&port{address: address}).post(t, h2c(t), "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", bytes.NewReader(frame(0, []byte("\x3a\x01*"))))
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.Header.Get("Grpc-Status")+answer.Trailer.Get("Grpc-Status") != fmt.Sprint(int(want)) {
				t.Errorf("%v: %v %v, want %v", err, answer.Header, answer.Trailer, want)
			}
		}
		api.Occupy(true)
		ask(codes.ResourceExhausted)
		api.Occupy(false)
		ask(codes.OK)
	}
}

func TestACanceledStreamOverThePortEndsAtTheServerToo(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	client, _ := p.dial(t)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := client.GenerateStream(ctx, &firnv1.GenerateStreamRequest{Namespace: "users"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	await(t, "the stream to end", func() bool { ids, _ := p.api.Open(); return ids == 0 })
}

func TestLargeAnswersHoldRoomUntilTheyAreTaken(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	client := h2c(t)
	client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 10}
	c := p.shares.Client("127.0.0.1:1")
	defer c.Leave()
	all := int64(share.MaxIDs)
	answer, err := p.post(t, client, generate, bytes.NewReader(request(t, "users", 10_000)))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the request in flight", func() bool { return p.shares.Used(share.Requests) == 1 })
	if c.TryIDs(all) {
		t.Error("there is room for all ids, although an answer with 10,000 is not taken")
		c.GiveIDs(all)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || len(body) < 80_000 {
		t.Error(len(body), err)
	}
	answer.Body.Close()
	await(t, "the room", func() bool {
		free := c.TryIDs(all)
		if free {
			c.GiveIDs(all)
		}
		return free
	})
}

func TestBeforeItIsOpenThePortSaysThatTheServerStarts(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	p.Open(nil)
	client, conn := p.dial(t)
	if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users"}); status.Code(err) != codes.Unavailable || reason(err) != "starting" {
		t.Error(err)
	}
	if _, err := health.NewHealthClient(conn).Check(t.Context(), &health.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
	p.Open(p.api)
	if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users"}); err != nil {
		t.Error(err)
	}
}

// As over HTTP, a bug in one request does not end those of others.
func TestAPanicEndsOnlyItsRequest(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	client, _ := p.dial(t)
	p.Open(new(rpc.API)) // which no method can use
	if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users"}); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "nil pointer") {
		t.Error(err)
	}
	p.Open(p.api)
	if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users"}); err != nil {
		t.Error(err)
	}
}

// Whoever calls through a proxy, or for a web page, must not look as if it were this machine, also if the requests before
// on the connection were.
func TestEachRequestOfAConnectionProvesItsCaller(t *testing.T) {
	overEach(t, func(t *testing.T, over transport) {
		client, _ := start(t, "namespaces: {users: {kind: segment}}", over).dial(t)
		for _, c := range []struct {
			header []string
			want   codes.Code
		}{
			{nil, codes.OK},
			{[]string{"x-forwarded-for", "10.0.0.1"}, codes.Unauthenticated},
			{nil, codes.OK},
			{[]string{"origin", "https://evil.example"}, codes.Unauthenticated},
			{[]string{"sec-fetch-site", "cross-site"}, codes.Unauthenticated},
			{[]string{"authorization", "Basic x"}, codes.Unauthenticated},
			{[]string{"authorization", "Bearer a"}, codes.OK}, // no token is configured
			{[]string{"authorization", "Bearer a", "authorization", "Bearer b"}, codes.Unauthenticated},
			{[]string{"x-other", "1"}, codes.OK},
		} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), c.header...)
			if _, err := client.Generate(ctx, &firnv1.GenerateRequest{Namespace: "users"}); status.Code(err) != c.want {
				t.Errorf("%v: %v, want %v", c.header, err, c.want)
			}
		}
	})
	overEach(t, func(t *testing.T, over transport) {
		s := start(t, "namespaces: {users: {kind: segment}}", over)
		conn, err := grpc.NewClient(s.target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("firn.example"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := firnv1.NewIDServiceClient(conn).Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users"}); status.Code(err) != codes.Unauthenticated {
			t.Error(err)
		}
	})
}

func TestCompressedRequestsGetPlainAnswers(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	client, _ := p.dial(t)
	answer, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users", Count: count(1000)}, grpc.UseCompressor(gzip.Name))
	if err != nil || len(answer.GetIds()) != 1000 {
		t.Error(answer, err)
	}
	compressed := frame(1, zipped(t, request(t, "users", 3)[5:]))
	raw, err := p.post(t, h2c(t), generate, bytes.NewReader(compressed), "Grpc-Encoding", "gzip", "Grpc-Accept-Encoding", "gzip")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Body.Close()
	body, err := io.ReadAll(raw.Body)
	if err != nil || len(body) != 5+2+3*8 || body[0] != 0 || raw.Header.Get("Grpc-Encoding") == "gzip" {
		t.Error(body, raw.Header, err)
	}
}

func TestHostileMessagesOverThePort(t *testing.T) {
	s := start(t, benchConfig, onPort)
	p := &port{address: s.target}
	good := request(t, "users", 3)[5:]
	bomb := zipped(t, make([]byte, 64<<20))
	for name, c := range map[string]struct {
		method, encoding string
		body             []byte
		want             codes.Code
	}{
		"malformed message":      {generate, "", frame(0, []byte{0xff, 0xff}), codes.InvalidArgument},
		"length of 4 GB":         {generate, "", []byte{0, 0xff, 0xff, 0xff, 0xff, 1}, codes.ResourceExhausted},
		"cut frame":              {generate, "", frame(0, good)[:7], codes.Internal},
		"cut prefix":             {generate, "", []byte{0, 0}, codes.Internal},
		"unknown flags":          {generate, "", frame(0x7c, good), codes.Internal},
		"empty":                  {generate, "", nil, codes.Internal},
		"two messages":           {generate, "", append(frame(0, good), frame(0, good)...), codes.Internal},
		"oversized":              {generate, "", frame(0, make([]byte, 65<<10)), codes.ResourceExhausted},
		"bomb":                   {generate, "gzip", frame(1, bomb), codes.ResourceExhausted},
		"bomb below its limit":   {generate, "gzip", frame(1, zipped(t, make([]byte, 1<<20))), codes.ResourceExhausted},
		"not gzip":               {generate, "gzip", frame(1, good), codes.Internal},
		"no encoding header":     {generate, "", frame(1, good), codes.Internal},
		"unknown encoding":       {generate, "zstd", frame(1, good), codes.Unimplemented},
		"unknown method":         {"/firn.v1.IDService/Destroy", "", frame(0, good), codes.Unimplemented},
		"unknown service":        {"/a.B/C", "", frame(0, good), codes.Unimplemented},
		"no method":              {"/", "", frame(0, good), codes.Unimplemented},
		"malformed question":     {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "", frame(0, []byte{0xff}), codes.InvalidArgument},
		"malformed health":       {"/grpc.health.v1.Health/Check", "", frame(0, []byte{0xff}), codes.InvalidArgument},
		"invalid UTF-8":          {generate, "", frame(0, []byte("\x0a\x02\xff\xfe")), codes.InvalidArgument},
		"malformed stream":       {"/firn.v1.IDService/GenerateStream", "", frame(0, []byte{0xff}), codes.InvalidArgument},
		"an unknown large field": {generate, "", frame(0, append([]byte("\x0a\x05users\x7a\x80\x08"), make([]byte, 1024)...)), codes.OK},
	} {
		var headers []string
		if c.encoding != "" {
			headers = []string{"Grpc-Encoding", c.encoding}
		}
		answer, err := p.post(t, h2c(t), c.method, bytes.NewReader(c.body), headers...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("Grpc-Status") + answer.Trailer.Get("Grpc-Status"); got != fmt.Sprint(int(c.want)) {
			t.Errorf("%s: status %s, want %d: %v %v", name, got, c.want, answer.Header, answer.Trailer)
		}
	}
	client, _ := s.dial(t)
	if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users"}); err != nil {
		t.Error(err)
	}
}

func TestACallOverThePortHasAtMostAHundredFields(t *testing.T) {
	p := newPort(t, func(*rpc.PortConfig, *share.Limits) {})
	for fields, want := range map[int]string{80: "0", 101: "3"} {
		var headers []string
		for i := range fields {
			headers = append(headers, fmt.Sprint("f", i), "v")
		}
		answer, err := p.post(t, h2c(t), generate, bytes.NewReader(request(t, "users", 1)), headers...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Error(err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("Grpc-Status") + answer.Trailer.Get("Grpc-Status"); got != want {
			t.Errorf("%d fields: status %s, want %s: %v", fields, got, want, answer.Header)
		}
	}
}

func TestAnIdleConnectionOfThePortEnds(t *testing.T) {
	p := newPort(t, func(c *rpc.PortConfig, _ *share.Limits) { c.Idle = 200 * time.Millisecond })
	c, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	began, farewell := time.Now(), false
	f := http2.NewFramer(c, c)
	_, err = io.WriteString(c, http2.ClientPreface)
	if err = errors.Join(err, f.WriteSettings()); err != nil {
		t.Fatal(err)
	}
	for {
		read, err := f.ReadFrame()
		if err != nil {
			if !errors.Is(err, io.EOF) || !farewell || time.Since(began) < 200*time.Millisecond {
				t.Errorf("it ended after %v with %v, GOAWAY %v", time.Since(began), err, farewell)
			}
			return
		}
		switch read := read.(type) {
		case *http2.GoAwayFrame:
			farewell = true
		case *http2.PingFrame:
			if err := f.WritePing(true, read.Data); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestReflection(t *testing.T) {
	s := start(t, benchConfig, onPort)
	for _, client := range []*grpcreflect.Client{
		grpcreflect.NewClient(h2c(t), "http://"+s.target, connect.WithGRPC()),
		grpcreflect.NewClient(h2c(t), "http://"+s.address, connect.WithGRPC()),
		grpcreflect.NewClient(h2c(t), "http://"+s.address), // over Connect
	} {
		stream := client.NewStream(t.Context())
		names, err := stream.ListServices()
		if err != nil || !slices.Equal(names, []protoreflect.FullName{"firn.v1.IDService", "firn.v1.LeaseService", "grpc.health.v1.Health"}) {
			t.Error(names, err)
		}
		files, err := stream.FileContainingSymbol("firn.v1.IDService.Generate")
		if err != nil || len(files) != 3 || files[0].GetName() != "firn/v1/id.proto" { // with those it imports
			t.Error(files, err)
		}
		if files, err = stream.FileByFilename("firn/v1/id.proto"); err != nil || len(files) != 1 { // the client has the others
			t.Error(files, err)
		}
		if numbers, err := stream.AllExtensionNumbers("google.protobuf.MethodOptions"); err != nil {
			t.Error(numbers, err)
		}
		for _, err := range []error{
			second(stream.FileByFilename("none.proto")), second(stream.FileContainingSymbol("firn.v1.None")),
			second(stream.AllExtensionNumbers("firn.v1.None")), second(stream.FileContainingExtension("firn.v1.Run", 7)),
		} {
			if connect.CodeOf(err) != connect.CodeNotFound {
				t.Error(err)
			}
		}
		if _, err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// An answer to 1,000 ids is 8 bytes an id and nothing between: what the port writes is what protobuf writes.
func TestTheAnswerIsThatOfProtobuf(t *testing.T) {
	s := start(t, benchConfig, onPort)
	p := &port{address: s.target}
	answer, err := p.post(t, h2c(t), generate, bytes.NewReader(request(t, "users", 1000)))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || len(body) < 5 || int(binary.BigEndian.Uint32(body[1:])) != len(body)-5 {
		t.Fatal(len(body), err)
	}
	var decoded firnv1.GenerateResponse
	if err := proto.Unmarshal(body[5:], &decoded); err != nil {
		t.Fatal(err)
	}
	again, err := proto.Marshal(&decoded)
	if err != nil || !bytes.Equal(again, body[5:]) || len(decoded.GetIds()) != 1000 {
		t.Errorf("%d ids, %v: %x", len(decoded.GetIds()), err, body)
	}
}
