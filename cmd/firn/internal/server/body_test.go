package server_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// overHTTP2 is a client that speaks HTTP/2 from the first byte.
func overHTTP2(t *testing.T) *http.Client {
	t.Helper()
	c := fresh(t)
	transport, ok := c.Transport.(*http.Transport)
	if !ok {
		t.Fatalf("%T", c.Transport)
	}
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetUnencryptedHTTP2(true)
	return c
}

// A body hides its length from the client, and counts how much of it was read.
type body struct {
	io.Reader
	taken atomic.Int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.taken.Add(int64(n))
	return n, err
}

func TestATooLongBodyIsRefusedOverEachProtocol(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}, items: {kind: segment}}\nlimits: {body: 100000}\n")
	for _, c := range []struct {
		client   *http.Client
		protocol string
	}{{fresh(t), "HTTP/1.1"}, {overHTTP2(t), "HTTP/2.0"}} {
		used, connections := 0, map[string]bool{}
		for _, path := range []string{"/v1/ids/orders", "/tinyid/id/nextId?bizType=items", "/api/segment/get/items"} {
			for _, kind := range []string{"application/json", "application/x-www-form-urlencoded"} {
				for _, length := range []int{1, 100_000, 100_001, 900_000} {
					for _, declared := range []bool{true, false} {
						what := fmt.Sprintf("%s %s %s %d %v", c.protocol, path, kind, length, declared)
						sent := &body{Reader: strings.NewReader(strings.Repeat("a", length))}
						ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
							connections[i.Conn.LocalAddr().String()] = true
						}})
						req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+v.addr+path, sent)
						if err != nil {
							t.Fatal(err)
						}
						if declared {
							req.ContentLength = int64(length)
						}
						req.Header.Set("Content-Type", kind)
						answer, err := c.client.Do(req)
						if err != nil {
							t.Fatalf("%s: %v", what, err)
						}
						said, err := io.ReadAll(answer.Body)
						if err := answer.Body.Close(); err != nil {
							t.Error(err)
						}
						used++
						want, code := http.StatusOK, ""
						if length > 100_000 {
							want, code = http.StatusRequestEntityTooLarge, "body_too_large"
						}
						if err != nil || answer.StatusCode != want || !strings.Contains(string(said), code) || answer.Proto != c.protocol {
							t.Errorf("%s: %s %d %s, %v", what, answer.Proto, answer.StatusCode, said, err)
						}
						// A stream with an unread body is reset, and some clients then drop the
						// answer.
						if answer.ProtoMajor == 2 && sent.taken.Load() != int64(length) {
							t.Errorf("%s: %d bytes of the body were taken", what, sent.taken.Load())
						}
					}
				}
			}
		}
		if c.protocol == "HTTP/2.0" && len(connections) != 1 {
			t.Errorf("%d requests took %d connections: one that brings too much is not to end those beside it", used, len(connections))
		}
	}
}

// A body far above the limit is refused too, but not read.
func TestAFarTooLongBodyIsNotRead(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\n")
	const length = 1 << 30
	sent := &body{Reader: io.LimitReader(zeros{}, length)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+v.addr+"/v1/ids/orders", sent)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := overHTTP2(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge || sent.taken.Load() > length/10 {
		t.Errorf("%d after %d bytes", answer.StatusCode, sent.taken.Load())
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A request whose body never arrives takes no ids.
func TestAMissingBodyIsAnError(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\n")
	c := dial(t, v.addr)
	if _, err := fmt.Fprint(c, "POST /v1/ids/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n"); err != nil {
		t.Fatal(err)
	}
	if text := ends(t, "chunks", c); !strings.HasPrefix(text, "HTTP/1.1 400 ") || !strings.Contains(text, `"bad_request"`) {
		t.Errorf("%q", text)
	}
}

// Paths of other systems may have any prefix, even one that looks like an RPC's: their
// bodies are bounded all the same, before authentication.
func TestAnRPCLikePrefixDoesNotLiftTheBodyLimit(t *testing.T) {
	v := serve(t, "namespaces: {items: {kind: segment}}\n")
	for _, prefix := range []string{"/firn.v1.IDService", "/firn.v1.x", "/grpc.health.v1.Health", "/grpc.reflection.v1.ServerReflection", "/grpc.x", ""} {
		// Of unknown length, so that it has to be read.
		body := io.MultiReader(strings.NewReader("bizType=items&x="), strings.NewReader(strings.Repeat("x", 1<<20)))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+v.addr+prefix+"/tinyid/id/nextId", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := fresh(t).Do(req)
		if err != nil {
			continue // the server closed the connection
		}
		said, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Errorf("%s: %d %s", prefix, answer.StatusCode, said)
		}
	}
}

// An interrupted answer cannot be resumed: a later answer has other ids, and a client that
// appends its rest joins two ids in the middle.
func TestAnAnswerIsCompleteAndForOneCaller(t *testing.T) {
	v := serve(t, "namespaces: {items: {kind: segment}}\ncosid: true\n")
	for _, path := range []string{"/v1/ids/items?count=100", "/tinyid/id/nextIdSimple?bizType=items&batchSize=100", "/api/segment/get/items", "/ids/items"} {
		for _, part := range []string{"", "bytes=50-"} {
			want := http.StatusOK
			if part != "" {
				want = http.StatusBadRequest
			}
			a := does(t, fresh(t), http.MethodGet, "http://"+v.addr+path, "Range", part)
			if a.status != want {
				t.Errorf("%s of %q: %d %s", path, part, a.status, a.body)
			}
			// With no-store alone, Squid may give one answer to all collapsed requests.
			if kept := a.header.Get("Cache-Control"); kept != "private, no-store" {
				t.Errorf("%s of %q may be kept: %q", path, part, kept)
			}
		}
	}
}

// A map of thousands of short keys occupies a hundred times the memory of their text.
func TestAFormCostsAboutItsLength(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}, items: {kind: segment}}\n")
	form := strings.Repeat("a&", 4000) + "bizType=items&batchSize=2&"
	for i := range 3000 {
		form += fmt.Sprintf("%x=&", i)
	}
	client := overHTTP2(t)
	for path, want := range map[string]string{"/v1/ids/orders": `"ids"`, "/tinyid/id/nextIdSimple": ","} {
		least := uint64(math.MaxUint64)
		for range 10 { // others allocate meanwhile
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer, err := client.Post("http://"+v.addr+path, "application/x-www-form-urlencoded", strings.NewReader(form)) //nolint:noctx // ends with the server
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			runtime.ReadMemStats(&after)
			if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(said), want) {
				t.Fatalf("%s: %d %s, %v", path, answer.StatusCode, said, err)
			}
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		if limit := uint64(20 * len(form)); least > limit {
			t.Errorf("%s: a form of %d bytes takes %d bytes of memory, want at most %d", path, len(form), least, limit)
		}
	}
}
