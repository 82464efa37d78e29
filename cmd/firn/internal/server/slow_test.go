package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/server"
)

// dial opens a connection that leaves no TIME_WAIT behind when it is closed.
func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		t.Fatalf("%T", c)
	}
	// Without linger: thousands of ports in TIME_WAIT would starve other tests.
	if err := tcp.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tcp.Close() })
	return tcp
}

// ends reads until the server closes a connection.
func ends(t *testing.T, what string, c net.Conn) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the server holds the connection", what)
	}
	return string(text)
}

func TestSlowClientsAreCutOffAndOthersServed(t *testing.T) {
	before, open := runtime.NumGoroutine(), descriptors()
	v := serve(t, "namespaces: {orders: {}}\nlimits: {batch: 500000}\n", func(s *server.Server) {
		s.SetTimeouts(200*time.Millisecond, 400*time.Millisecond, 600*time.Millisecond, 400*time.Millisecond)
	})
	client := fresh(t)
	const head = "POST /v1/ids/orders HTTP/1.1\r\nHost: 127.0.0.1\r\n"
	const each = 50
	slow := map[string][]net.Conn{}
	for what, text := range map[string]string{
		"says nothing":                  "",
		"half a request line":           "GET /v1/i",
		"half a header":                 head + "X-A: b",
		"a body that does not come":     head + "Content-Length: 1000\r\n\r\n",
		"half a body":                   head + "Content-Length: 1000\r\n\r\nabc",
		"chunks that do not end":        head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"idle after a request":          head + "\r\n",
		"an answer that is not read":    "GET /v1/ids/orders?count=500000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"a header that is far too long": head + "X-A: " + strings.Repeat("a", 100_000),
	} {
		n := each
		if strings.HasPrefix(what, "an answer") {
			n = 2 // of 10 MB each
		}
		for range n {
			c := dial(t, v.addr)
			if strings.HasPrefix(what, "an answer") {
				if err := c.SetReadBuffer(4096); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Write([]byte(text)); err != nil && !strings.HasPrefix(what, "a header that") {
				t.Fatal(err)
			}
			slow[what] = append(slow[what], c)
		}
	}
	for range 100 {
		if status, body := get(t, client, "http://"+v.addr+"/v1/ids/orders", ""); status != 200 {
			t.Errorf("beside slow clients: %d %s", status, body)
		}
	}
	for what, all := range slow {
		for _, c := range all {
			if !strings.HasPrefix(what, "an answer") {
				ends(t, what, c)
			}
		}
	}
	// The unread answers are larger than the socket buffers, and the server gave them up:
	// only this client's connection is left.
	settles(t, "connections", 1, func() int {
		_, body := get(t, client, "http://"+v.addr+"/metrics", "")
		var n int
		_, rest, _ := strings.Cut(body, `firn_connections{listener="http"} `)
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		return n
	})
	client.CloseIdleConnections()
	v.stop()
	for _, all := range slow {
		for _, c := range all {
			_ = c.Close()
		}
	}
	settles(t, "goroutines", before, runtime.NumGoroutine)
	settles(t, "descriptors", open, descriptors)
}

func TestConnectionsAboveTheLimitAreRefusedAtOnce(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\nlimits: {connections: 100, share: 100}\n")
	var held []*net.TCPConn
	for range 100 {
		c := dial(t, v.addr)
		// An answer shows that the server has taken it.
		if _, err := c.Write([]byte("GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatal(line, err)
		}
		held = append(held, c)
	}
	for range 50 {
		c := dial(t, v.addr)
		if _, err := c.Write([]byte("GET /v1/ids/orders HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if text := ends(t, "above the limit", c); !strings.HasPrefix(text, "HTTP/1.1 503 ") || !strings.Contains(text, `"too_many_connections"`) {
			t.Errorf("%q", text)
		}
	}
	v.log.has(t, "connections are refused", "limit=100", "limits.connections")
	if n := strings.Count(v.log.String(), "connections are refused"); n != 1 {
		t.Errorf("said %d times", n)
	}
	_ = held[0].Close() // makes room
	client := fresh(t)
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		status, body, err := try(t, client, "http://"+v.addr+"/metrics", "")
		if err == nil && status == 200 && strings.Contains(body, `firn_connections{listener="http"} 100`) && strings.Contains(body, `firn_connections_refused_total{listener="http"} `) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(status, err, "metrics lack the connections: ", body)
		}
	}
	// The limit can be raised without a restart.
	write(t, v.file, "namespaces: {orders: {}}\nlimits: {connections: 300, share: 100}\n")
	v.turn()
	for range 50 {
		held = append(held, dial(t, v.addr))
	}
	if status, body := get(t, fresh(t), "http://"+v.addr+"/v1/ids/orders", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// holds is the environment variable with the address to hold connections to. A second process
// holds them, since both ends of thousands exceed some systems' limit of descriptors.
const holds = "FIRN_TEST_HOLDS"

// heldConnections is less than half of common limits of descriptors, since the Redis protocol has the other half.
const heldConnections = 9_000

func TestMain(m *testing.M) {
	if addr := os.Getenv(holds); addr != "" {
		os.Exit(hold(addr))
	}
	os.Exit(m.Run())
}

// hold opens connections, says so, and holds them until its input ends.
func hold(addr string) int {
	var all []net.Conn // the garbage collector would close unreferenced ones
	for range heldConnections {
		c, err := net.Dial("tcp", addr)
		all = append(all, c)
		if err == nil {
			tcp, _ := c.(*net.TCPConn)
			err = tcp.SetLinger(0)
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(all)
	return 0
}

func TestThousandsOfIdleConnectionsDoNotBlockOthers(t *testing.T) {
	before, open := runtime.NumGoroutine(), descriptors()
	v := serve(t, "listen: {grpc: off}\nnamespaces: {orders: {}}\nlimits: {connections: 12000, share: 100}\n", func(s *server.Server) {
		s.SetTimeouts(time.Minute, time.Minute, time.Minute, time.Minute) // none is cut off on a slow machine
	})
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), holds+"="+v.addr)
	input, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	client := fresh(t)
	for range 200 {
		if status, body := get(t, client, "http://"+v.addr+"/v1/ids/orders", ""); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	_, body := get(t, client, "http://"+v.addr+"/metrics", "")
	if want := fmt.Sprintf("\nfirn_connections{listener=\"http\"} %d\n", heldConnections+1); !strings.Contains(body, want) {
		t.Errorf("not all are held: the metrics lack %s", want)
	}
	if err := errors.Join(input.Close(), holder.Wait()); err != nil {
		t.Fatal(err)
	}
	client.CloseIdleConnections()
	v.stop()
	settles(t, "goroutines", before, runtime.NumGoroutine)
	settles(t, "descriptors", open, descriptors)
}

func TestATooLargeRequestIsRefused(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\nlimits: {body: 2000}\n")
	for length, want := range map[int]string{2000: "HTTP/1.1 200 ", 2001: "HTTP/1.1 413 "} {
		c := dial(t, v.addr)
		if _, err := fmt.Fprintf(c, "POST /v1/ids/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", length, strings.Repeat("a", length)); err != nil {
			t.Fatal(err)
		}
		if text := ends(t, "body", c); !strings.HasPrefix(text, want) || (length > 2000) != strings.Contains(text, "body_too_large") {
			t.Errorf("%d bytes: %q", length, text)
		}
	}
}
