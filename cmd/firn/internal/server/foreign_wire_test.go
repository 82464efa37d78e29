package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// listen serves as the binary does and returns the address.
func listenWire(t *testing.T, cfg settings.Config) string {
	t.Helper()
	srv, err := server.New(t.Context(), server.Config{Settings: cfg, Base: lease.Config{}, Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener := listen(t)
	ctx, stop := context.WithCancel(context.Background())
	done := open(ctx, t, srv, server.Listeners{HTTP: listener})
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, srv.Close()); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// A wire is a connection on which bytes are sent as they are.
type wire struct {
	t    *testing.T
	conn net.Conn
	from *bufio.Reader
}

func dialWire(t *testing.T, address string) *wire {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &wire{t, conn, bufio.NewReader(conn)}
}

var date = regexp.MustCompile(`(?m)^Date: .* GMT\r$`)

// ask sends a request and returns the answer with its head, but for the date.
func (w *wire) ask(request string) string {
	w.t.Helper()
	if _, err := io.WriteString(w.conn, request); err != nil {
		w.t.Fatal(err)
	}
	var head strings.Builder
	length := -1
	for {
		line, err := w.from.ReadString('\n')
		if err != nil {
			w.t.Fatalf("%v after %q", err, head.String())
		}
		head.WriteString(line)
		if _, err := fmt.Sscanf(line, "Content-Length: %d", &length); err != nil && line == "\r\n" {
			break
		}
	}
	body := make([]byte, max(length, 0))
	if _, err := io.ReadFull(w.from, body); err != nil {
		w.t.Fatal(err)
	}
	return date.ReplaceAllString(head.String(), "Date: D\r") + string(body)
}

// TestTheJavaClientOfTinyIDIsAnswered sends what tinyid-client sends by Java 17, byte for
// byte: a POST with the parameters in the query and an empty form, again and again
// on one connection.
func TestTheJavaClientOfTinyIDIsAnswered(t *testing.T) {
	address := listenWire(t, settings.Config{Namespaces: map[string]settings.Namespace{
		"test":     {Kind: "segment", Segment: settings.Segment{MinStep: 100_000}},
		"test_odd": {Kind: "segment", Segment: settings.Segment{MinStep: 50_000, Stride: 2, Offset: 1}},
	}})
	request := func(prefix, token, bizType string) string {
		return "POST " + prefix + "/tinyid/id/nextSegmentIdSimple?token=" + token + "&bizType=" + bizType + " HTTP/1.1\r\n" +
			"Cache-Control: no-cache\r\nPragma: no-cache\r\nUser-Agent: Java/17.0.15\r\nHost: " + address + "\r\n" +
			"Accept: text/html, image/gif, image/jpeg, */*; q=0.2\r\nConnection: keep-alive\r\n" +
			"Content-type: application/x-www-form-urlencoded\r\nContent-Length: 0\r\n\r\n"
	}
	answer := func(failure, body string) string {
		return "HTTP/1.1 200 OK\r\nCache-Control: private, no-store\r\nContent-Length: " + fmt.Sprint(len(body)) +
			"\r\nContent-Type: text/html;charset=UTF-8\r\n" + failure + "Date: D\r\n\r\n" + body
	}
	const token = "0f673adf80504e2eaa552f5d791b644c"
	client := dialWire(t, address)
	for _, c := range []struct{ request, want string }{
		{request("", token, "test"), answer("", "0,20000,100000,1,0")},
		{request("", token, "test"), answer("", "100000,120000,200000,1,0")},
		{request("/gateway", token, "test"), answer("", "200000,220000,300000,1,0")},
		{request("", token, "test_odd"), answer("", "0,19999,99999,2,1")},
		{request("", token, "test_odd"), answer("", "99999,119999,199999,2,1")},
		// The client takes an empty answer for a failure.
		{request("", token, "none"), answer("Firn-Error: unknown_namespace\r\n", "")},
		{request("", token, ""), answer("Firn-Error: forbidden\r\n", "")},
		{request("", token, "test"), answer("", "300000,320000,400000,1,0")},
	} {
		if got := client.ask(c.request); got != c.want {
			t.Errorf("%s answers\n%s\nwant\n%s", c.request, got, c.want)
		}
	}
	// A bizType that is not escaped, as the client sends it.
	bad := dialWire(t, address).ask(strings.Replace(request("", token, "x"), "bizType=x", "bizType=a b", 1))
	if !strings.HasPrefix(bad, fmt.Sprintf("HTTP/1.1 %d ", http.StatusBadRequest)) {
		t.Errorf("a malformed request answers %s", bad)
	}
}

// TestCurlOfLeafIsAnswered sends what curl sends, byte for byte, on one connection.
func TestCurlOfLeafIsAnswered(t *testing.T) {
	address := listenWire(t, settings.Config{Namespaces: map[string]settings.Namespace{
		"leaf-segment-test": {Kind: "segment", Segment: settings.Segment{MinStep: 2000}}, "test": {Pooled: settings.Pooled{Layout: "leaf"}},
	}})
	client := dialWire(t, address)
	request := func(path string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"
	}
	head := func(status, failure, typ string, length int) string {
		return "HTTP/1.1 " + status + "\r\nCache-Control: private, no-store\r\nContent-Length: " + fmt.Sprint(length) +
			"\r\nContent-Type: " + typ + ";charset=UTF-8\r\n" + failure + "Date: D\r\n\r\n"
	}
	for i := range 3 {
		got, want := client.ask(request("/api/segment/get/leaf-segment-test")), head("200 OK", "", "text/plain", 1)+fmt.Sprint(i+1)
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := client.ask(request("/api/snowflake/get/test")); !regexp.MustCompile(`\r\n\r\n\d{19}$`).MatchString(got) {
		t.Errorf("a snowflake: %s", got)
	}
	body := `{"workerId":"0","sequenceId":"4095","timestamp":"1288834974657(2010-11-04 `
	if got := client.ask(request("/decodeSnowflakeId?snowflakeId=4095")); !strings.Contains(got, body) || !strings.HasSuffix(got, `)"}`) {
		t.Errorf("taken apart: %s", got)
	}
	got := regexp.MustCompile(`"timestamp":\d{13}`).ReplaceAllString(client.ask(request("/api/segment/get/xxx")), `"timestamp":T`)
	want := `{"timestamp":T,"status":500,"error":"Internal Server Error","exception":"com.sankuai.inf.leaf.server.exception.LeafServerException",` +
		`"message":"Result{id=-2, status=EXCEPTION}","path":"/api/segment/get/xxx"}`
	if whole := head("500 Internal Server Error", "Firn-Error: unknown_namespace\r\n", "application/json", len(want)+12) + want; got != whole {
		t.Errorf("%s, want %s", got, whole)
	}
}
