package rpc_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/cmd/firn/firnv1"
)

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// frame puts a message into gRPC's length-prefixed frame.
func frame(flags byte, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(message))), message...)
}

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// h2c returns a client that uses only HTTP/2 in clear text.
func h2c(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestHostileRequestsGetTheProtocolsOwnError(t *testing.T) {
	s := start(t, benchConfig)
	good, err := proto.Marshal(&firnv1.GenerateRequest{Namespace: "users", Count: count(3)})
	if err != nil {
		t.Fatal(err)
	}
	bomb := zipped(t, make([]byte, 64<<20))
	both := []*http.Client{{Transport: &http.Transport{DisableKeepAlives: true}}, h2c(t)}
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, c := range map[string]struct {
		path, contentType, encoding string
		body                        []byte
		want                        string // part of the status, headers, trailers or body
	}{
		"connect, malformed JSON":     {"Generate", "application/json", "", []byte(`{"namespace":`), "invalid_argument"},
		"connect, wrong type":         {"Generate", "application/json", "", []byte(`{"namespace":"users","count":"many"}`), "invalid_argument"},
		"connect, number too large":   {"Generate", "application/json", "", []byte(`{"namespace":"users","count":99999999999}`), "invalid_argument"},
		"connect, fraction":           {"Generate", "application/json", "", []byte(`{"namespace":"users","count":1.5}`), "invalid_argument"},
		"connect, malformed protobuf": {"Generate", "application/proto", "", []byte{0xff, 0xff, 0xff}, "invalid_argument"},
		"connect, oversized":          {"Generate", "application/json", "", bytes.Repeat([]byte(" "), 100<<10), "resource_exhausted"},
		"connect, bomb":               {"Generate", "application/proto", "gzip", bomb, "resource_exhausted"},
		"connect, not gzip":           {"Generate", "application/proto", "gzip", []byte("plain"), "invalid_argument"},
		"connect, unknown encoding":   {"Generate", "application/proto", "zstd", good, "unimplemented"},
		"unknown content type":        {"Generate", "text/html", "", []byte("<p>"), "415"},
		"unknown method":              {"Destroy", "application/json", "", []byte("{}"), "404"},
		"connect stream, no frame":    {"GenerateStream", "application/connect+json", "", []byte(`{"n`), "incomplete envelope"},
		"connect stream, no end":      {"GenerateStream", "application/connect+json", "", frame(0, []byte(`{"`)), "invalid_argument"},
		"connect stream, empty":       {"GenerateStream", "application/connect+json", "", nil, "unimplemented"},
		"gRPC, malformed message":     {"Generate", "application/grpc", "", frame(0, []byte{0xff, 0xff}), "Grpc-Status:[3]"},
		"gRPC, length of 4 GB":        {"Generate", "application/grpc", "", []byte{0, 0xff, 0xff, 0xff, 0xff, 1}, "Grpc-Status:[8]"},
		"gRPC, cut frame":             {"Generate", "application/grpc", "", frame(0, good)[:7], "Grpc-Status:[13]"},
		"gRPC, cut prefix":            {"Generate", "application/grpc", "", []byte{0, 0}, "Grpc-Status:[13]"},
		"gRPC, unknown flags":         {"Generate", "application/grpc", "", frame(0x7c, good), "Grpc-Status:[1"},
		"gRPC, empty":                 {"Generate", "application/grpc", "", nil, "Grpc-Status:[12]"},
		"gRPC, two messages":          {"Generate", "application/grpc", "", append(frame(0, good), frame(0, good)...), "Grpc-Status:[12]"},
		"gRPC, bomb":                  {"Generate", "application/grpc", "grpc gzip", frame(1, bomb), "Grpc-Status:[8]"},
		"gRPC, bomb below its limit":  {"Generate", "application/grpc", "grpc gzip", frame(1, zipped(t, make([]byte, 1<<20))), "Grpc-Status:[8]"},
		"gRPC, no encoding header":    {"Generate", "application/grpc", "", frame(1, good), "Grpc-Status:[13]"},
		"gRPC, unknown encoding":      {"Generate", "application/grpc", "grpc zstd", frame(1, good), "Grpc-Status:[12]"},
		"gRPC-Web, malformed":         {"Generate", "application/grpc-web+proto", "", frame(0, []byte{0xff}), "Grpc-Status:[3]"},
		"gRPC-Web, text form":         {"Generate", "application/grpc-web-text", "", []byte("AAAA"), "415"},
	} {
		for _, client := range both {
			req, err := http.NewRequest(http.MethodPost, "http://"+s.address+"/firn.v1.IDService/"+c.path, bytes.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", c.contentType)
			if encoding, isGRPC := strings.CutPrefix(c.encoding, "grpc "); isGRPC {
				req.Header.Set("Grpc-Encoding", encoding)
			} else if c.encoding != "" {
				req.Header.Set("Content-Encoding", c.encoding)
			}
			answer, err := client.Do(req)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			answer.Body.Close()
			if all := strings.ToLower(fmt.Sprint(answer.StatusCode, answer.Header, answer.Trailer, string(body))); !strings.Contains(all, strings.ToLower(c.want)) {
				t.Errorf("%s, HTTP/%d: %s; want %s", name, answer.ProtoMajor, all, c.want)
			}
		}
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("hostile requests allocated %d MB", grown>>20)
	}
	// Other clients are unaffected.
	client, _ := s.dial(t)
	if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "users"}); err != nil {
		t.Error(err)
	}
}

// settle waits until the number of goroutines is at most most, or no longer changes, and returns
// it.
func settle(most int) int {
	n := runtime.NumGoroutine()
	for same := 0; n > most && same < 50; same++ {
		time.Sleep(10 * time.Millisecond)
		if now := runtime.NumGoroutine(); now != n {
			n, same = now, 0
		}
	}
	return n
}

// A sink is a recorder that supports deadlines, as streams need them.
type sink struct{ *httptest.ResponseRecorder }

func (sink) SetReadDeadline(time.Time) error  { return nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }

// FuzzRequest sends any bytes as a request of any protocol. It checks that the answer has the form
// of the protocol, that nothing panics, and that no goroutine leaks.
func FuzzRequest(f *testing.F) {
	good, err := proto.Marshal(&firnv1.GenerateRequest{Namespace: "users", Count: count(3), Form: firnv1.Form_FORM_RUNS})
	if err != nil {
		f.Fatal(err)
	}
	for kind := range uint8(32) {
		f.Add(kind, frame(0, good))
		f.Add(kind, good)
		f.Add(kind, []byte(`{"namespace":"users","count":2,"total":"5"}`))
		f.Add(kind, frame(1, zipped(f, good)))
	}
	s := start(f, benchConfig)
	paths := []string{
		"/firn.v1.IDService/Generate", "/firn.v1.IDService/Decode", "/grpc.health.v1.Health/Check", "/firn.v1.IDService/ListNamespaces",
	}
	types := []string{"application/grpc", "application/grpc-web+proto", "application/json", "application/proto", "application/connect+proto", "application/grpc+json"}
	before := runtime.NumGoroutine()
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		path, contentType := paths[int(kind)%len(paths)], types[int(kind)/len(paths)%len(types)]
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
		r.Header.Set("Content-Type", contentType)
		if kind&0x80 != 0 {
			r.Header.Set("Grpc-Encoding", "gzip")
			r.Header.Set("Content-Encoding", "gzip")
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(sink{w}, r)
		answer := w.Result()
		grpcs := strings.HasPrefix(contentType, "application/grpc")
		if answer.StatusCode >= 500 && answer.StatusCode != http.StatusNotImplemented || grpcs && answer.StatusCode != http.StatusOK {
			t.Errorf("%s, %s: %d, %q", path, contentType, answer.StatusCode, w.Body)
		}
		if n := runtime.NumGoroutine(); n > before+50 {
			if n = settle(before + 50); n > before+50 {
				t.Errorf("%d goroutines, %d at the start", n, before)
			}
		}
	})
}
