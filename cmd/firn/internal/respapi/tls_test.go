package respapi_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/respapi"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// serveTLS makes a server answer over TLS too. It returns a channel with the result of Serve.
func serveTLS(t *testing.T, s *respapi.Server) (address string, served <-chan error) {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	t.Cleanup(certified.Close)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(tls.NewListener(plain, &tls.Config{Certificates: certified.TLS.Certificates}))
	}()
	return plain.Addr().String(), ended
}

// dialTLS connects to it; the connection has a deadline.
func dialTLS(t *testing.T, address string) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the server may have closed it
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheSameCommandsWorkOverTLS(t *testing.T) {
	s, _, _ := serve(t, kinds, func(c *respapi.Config) { c.ReadTimeout = 500 * time.Millisecond })
	address, served := serveTLS(t, s)

	silent := dial(t, address) // without a handshake
	c := dialTLS(t, address)
	for _, text := range []string{"PING\r\n", "P", "ING\r\n", strings.Repeat("PING\r\n", 5000)} {
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("+PONG\r\n", strings.Count(text, "\n"))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Fatalf("%.20q: %.40q, %v", text, got, err)
		}
	}
	silent.ended()
	if _, err := fmt.Fprint(c, "INCR items\r\n"); err != nil {
		t.Fatal(err)
	}
	var reply [4]byte
	if _, err := io.ReadFull(c, reply[:]); err != nil || string(reply[:]) != ":1\r\n" {
		t.Errorf("an idle connection: %q, %v", reply, err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := c.Read(reply[:]); err == nil {
		t.Errorf("after the end: %q", reply[:n])
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestCommandsSentBeforeTheShutdownAreAnsweredOverTLS(t *testing.T) {
	s, _, _ := serve(t, kinds)
	address, served := serveTLS(t, s)
	const clients, each = 20, 500
	command := fmt.Sprintf(incr, 5, "items")
	busy := make([]*tls.Conn, clients)
	for i := range busy {
		c := dialTLS(t, address)
		if _, err := io.WriteString(c, command); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1<<10)); err != nil { // the server has served it and waits for more
			t.Fatal(err)
		}
		busy[i] = c
	}
	for _, c := range busy {
		if _, err := io.WriteString(c, strings.Repeat(command, each)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for i, c := range busy {
		all, err := io.ReadAll(c)
		if got := strings.Count(string(all), "\r\n"); got != each {
			t.Errorf("client %d has %d replies of %d: %v", i, got, each, err)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// The TLS library keeps the memory of a connection's longest message while the connection is idle.
func TestAnIdleConnectionIsChargedForALongMessageOverTLS(t *testing.T) {
	s, service, _ := serve(t, kinds)
	address, _ := serveTLS(t, s)
	used := func() int { return service.Shares().Used(share.Memory) }
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(argument int) string {
		text := strings.Repeat("x", argument)
		if _, err := io.WriteString(c, "ECHO "+text+"\r\n"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(fmt.Sprintf("$%d\r\n%s\r\n", argument, text)))
		n, _ := io.ReadFull(c, got) // fewer where it is refused
		return string(got[:n])
	}
	if ask(100); used() != 0 {
		t.Errorf("%d bytes for a short message", used())
	}
	ask(4000)
	within(t, "about four times the message are charged", func() bool { return used() > 12_000 && used() <= 4*4096 })
	service.Shares().Limit(share.Limits{HTTP: 10, Redis: 10, Requests: 10, Percent: 0}) // an address has nothing more
	if got := ask(6000); !strings.HasPrefix(got, "-TRYAGAIN overloaded: ") {
		t.Errorf("%.80q", got)
	}
	within(t, "all is given back", func() bool { return used() == 0 })
}

func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what, ": not after 10s")
		}
	}
}
