package rpc_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/store/memstore"
)

// post sends a body and returns the answer's parts.
func post(t *testing.T, url, contentType string, body []byte) (status int, header http.Header, got []byte) {
	t.Helper()
	answer, err := http.Post(url, contentType, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got, err = io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, got
}

func TestConnectIsJSONOverPlainHTTP(t *testing.T) {
	s := start(t, benchConfig)
	base := "http://" + s.address + "/firn.v1.IDService/"
	for body, want := range map[string]string{
		`{"namespace":"users","count":2}`:                       `^\{"ids":\["\d+", *"\d+"\]\}$`,
		`{"namespace":"users","count":2,"form":"FORM_RUNS"}`:    `^\{"runs":\[\{"first":"\d+", *"count":2, *"stride":"1"\}\]\}$`,
		`{"namespace":"users","count":"2","from_the_future":1}`: `^\{"ids":\["\d+", *"\d+"\]\}$`,
		`{"namespace":"unknown"}`:                               `^\{"code":"not_found","message":"unknown namespace.*"reason":"unknown_namespace"`,
	} {
		if status, _, got := post(t, base+"Generate", "application/json", []byte(body)); !regexp.MustCompile(want).Match(got) {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
	// Methods without side effects allow GET.
	for method, want := range map[string]string{"Decode": "200", "ListNamespaces": "200", "Generate": "405"} {
		answer, err := http.Get(base + method + "?connect=v1&encoding=json&message=" + url.QueryEscape(`{"id":"5"}`))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if !strings.HasPrefix(answer.Status, want) {
			t.Errorf("GET %s: %s", method, answer.Status)
		}
	}
	// A stream is a sequence of frames; the last one has the outcome.
	request := []byte(`{"namespace":"users","total":"3","batch":2}`)
	_, _, got := post(t, base+"GenerateStream", "application/connect+json", frame(0, request))
	var flags []byte
	for len(got) >= 5 {
		n := 5 + binary.BigEndian.Uint32(got[1:5])
		if !json.Valid(got[5:n]) {
			t.Errorf("%q", got[5:n])
		}
		flags = append(flags, got[0])
		got = got[n:]
	}
	if !bytes.Equal(flags, []byte{0, 0, 2}) || len(got) != 0 {
		t.Errorf("frames %v, and %q", flags, got)
	}
}

func TestGRPCWebIsMessageAndTrailersInTheBody(t *testing.T) {
	s := start(t, benchConfig)
	request, err := proto.Marshal(&firnv1.GenerateRequest{Namespace: "users", Count: count(1000), Form: firnv1.Form_FORM_RUNS})
	if err != nil {
		t.Fatal(err)
	}
	status, header, got := post(t, "http://"+s.address+"/firn.v1.IDService/Generate", "application/grpc-web+proto", frame(0, request))
	if status != http.StatusOK || header.Get("Content-Type") != "application/grpc-web+proto" || len(got) < 5 {
		t.Fatalf("%d %v %q", status, header, got)
	}
	n := 5 + binary.BigEndian.Uint32(got[1:5])
	var made firnv1.GenerateResponse
	if err := proto.Unmarshal(got[5:n], &made); err != nil || got[0] != 0 || len(expand(&made)) != 1000 {
		t.Errorf("%v: %v", err, &made)
	}
	trailers := got[n:]
	if trailers[0] != 0x80 || !strings.Contains(strings.ToLower(string(trailers[5:])), "grpc-status: 0\r\n") {
		t.Errorf("trailers %q", trailers)
	}
}

func TestReflectionShowsTheSchema(t *testing.T) {
	s := start(t, benchConfig)
	stream := grpcreflect.NewClient(h2c(t), "http://"+s.address, connect.WithGRPC()).NewStream(t.Context())
	defer stream.Close()
	names, err := stream.ListServices()
	if err != nil || fmt.Sprint(names) != "[firn.v1.IDService firn.v1.LeaseService grpc.health.v1.Health]" {
		t.Error(names, err)
	}
	files, err := stream.FileContainingSymbol("firn.v1.IDService")
	if err != nil || len(files) == 0 || files[0].GetName() != "firn/v1/id.proto" {
		t.Error(files, err)
	}
}

func TestATokenIsTakenFromTheMetadata(t *testing.T) { overEach(t, testATokenIsTakenFromTheMetadata) }

func testATokenIsTakenFromTheMetadata(t *testing.T, over transport) {
	client, _ := start(t, benchConfig, over).dial(t)
	for header, want := range map[string]codes.Code{"Bearer secret": codes.OK, "Basic dXNlcg==": codes.Unauthenticated} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", header)
		_, err := client.Generate(ctx, &firnv1.GenerateRequest{Namespace: "users"})
		if status.Code(err) != want {
			t.Errorf("%s: %v, want %v", header, err, want)
		}
		stream, err := client.GenerateStream(ctx, &firnv1.GenerateStreamRequest{Namespace: "users"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("%s: %v, want %v", header, err, want)
		}
	}
}

func TestAClientsDeadlineEndsItsCall(t *testing.T) {
	s := &faulty{Store: memstore.New(nil)}
	srv := startOver(t, "namespaces: {txn: {kind: sequence}}", s)
	hold := make(chan struct{})
	defer close(hold)
	s.hold.Store(&hold)
	for name, options := range map[string][]connect.ClientOption{"connect": nil, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()}} {
		client := firnv1connect.NewIDServiceClient(h2c(t), "http://"+srv.address, options...)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := client.Generate(ctx, connect.NewRequest(&firnv1.GenerateRequest{Namespace: "txn"}))
		cancel()
		if connect.CodeOf(err) != connect.CodeDeadlineExceeded {
			t.Errorf("%s: %v", name, err)
		}
	}
	await(t, "the requests to leave the store", func() bool { return s.held.Load() <= 1 })
}

func TestGRPCOverTLSNegotiatesHTTP2(t *testing.T) {
	s := start(t, benchConfig)
	h := httptest.NewUnstartedServer(s.Handler())
	h.EnableHTTP2 = true
	h.StartTLS()
	defer h.Close()
	if v := h.TLS.MinVersion; v != 0 && v < tls.VersionTLS12 {
		t.Error(v)
	}
	client := firnv1connect.NewIDServiceClient(h.Client(), h.URL, connect.WithGRPC())
	answer, err := client.Generate(t.Context(), connect.NewRequest(&firnv1.GenerateRequest{Namespace: "users", Count: count(10)}))
	if err != nil || len(answer.Msg.GetIds()) != 10 {
		t.Error(answer, err)
	}
}

// TestClientsLeakNothing counts goroutines and file descriptors after clients that disconnect.
func TestClientsLeakNothing(t *testing.T) { overEach(t, testClientsLeakNothing) }

func testClientsLeakNothing(t *testing.T, over transport) {
	s := start(t, benchConfig, over)
	use := func() {
		client, conn := s.dial(t)
		defer conn.Close()
		if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users"}); err != nil {
			t.Error(err)
		}
		for range 10 {
			stream, err := client.GenerateStream(t.Context(), &firnv1.GenerateStreamRequest{Namespace: "users"})
			if err != nil {
				t.Error(err)
				continue
			}
			if _, err := stream.Recv(); err != nil { // and then disconnects
				t.Error(err)
			}
		}
	}
	descriptors := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Logf("file descriptors are not counted here: %v", err)
		}
		return len(open)
	}
	use()
	before, opened := settle(0), descriptors()
	for range 20 {
		use()
	}
	if now := descriptors(); now > opened+3 {
		t.Errorf("%d file descriptors, %d before", now, opened)
	}
	if after := settle(before + 5); after > before+5 {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before\n%s", after, before, stacks[:runtime.Stack(stacks, true)])
	}
}
