package server_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/respapi"
)

// opened opens a connection, has it answered, and keeps it.
func opened(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c := dial(t, addr)
	if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	_ = answer.Body.Close() // the answer is in the reader's buffer
	return c
}

// An idle connection is worth less than a new one, whose client wants something now.
func TestAnIdleConnectionLeavesItsPlaceToANewOne(t *testing.T) {
	v := serve(t, "namespaces: {orders: {kind: segment}}\nlimits: {connections: 8, share: 50}\n")
	for range 4 {
		opened(t, v.addr)
		if got := say(t, dial(t, v.redis), "PING"); got != "+PONG" {
			t.Fatal(got)
		}
	}
	settles(t, "the answer to a new client", http.StatusOK, func() int {
		status, _, err := try(t, fresh(t), "http://"+v.addr+"/v1/ids/orders", "")
		if err != nil {
			return 0
		}
		return status
	})
	settles(t, "the answer to a new Redis client", 0, func() int {
		c := dial(t, v.redis)
		_, _ = io.WriteString(c, "INCR orders\r\n") // it may be refused already
		line, _ := bufio.NewReader(c).ReadString('\n')
		return strings.Index(line, ":")
	})
}

// A client with many connections must not have the server restarted.
func TestProbesAreAnsweredWhenAllConnectionsAreBusy(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\nlimits: {connections: 4, share: 100}\n")
	for range 4 {
		c := dial(t, v.addr)
		if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: 127."); err != nil { // unfinished, so busy
			t.Fatal(err)
		}
	}
	for range 100 { // more than there are spare connections, and none of them asks
		dial(t, v.addr)
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/metrics": 200, "/v1/ids/orders": 503} {
		answer := fetch(t, fresh(t), "http://"+v.addr+path)
		if answer.status != want || !answer.closes || want == 503 && !strings.Contains(answer.body, "too_many_connections") {
			t.Errorf("%s: %d %s, closes: %v", path, answer.status, answer.body, answer.closes)
		}
	}
	if got := ends(t, "a fifth", dial(t, v.addr)); got != "" { // it says nothing, so it is told nothing
		t.Error(got)
	}
	for range 4 {
		if got := say(t, dial(t, v.redis), "PING"); got != "+PONG" {
			t.Error(got)
		}
	}
	if got := ends(t, "a fifth Redis client", dial(t, v.redis)); got != respapi.TooMany {
		t.Errorf("%q", got)
	}
}

func TestSuitesInCBCModeAreRefused(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 2)
	into(t, folder, cert, key)
	v := serve(t, tlsKeys(folder, "")+"namespaces: {orders: {}}\n")
	for suite, want := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:          false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:          false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       true,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: true,
	} {
		for _, addr := range []string{v.addr, v.redis} {
			c, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", addr, &tls.Config{
				InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}, //nolint:gosec // what is tested
			})
			if (err == nil) != want {
				t.Errorf("%s: %v", tls.CipherSuiteName(suite), err)
			}
			if err == nil {
				_ = c.Close()
			}
		}
	}
}

// Names stay in the store for ever, so an address can make only so many; steps and rates are those of namespaces.
func TestCosIDNamesStepsAndRatesAreBounded(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}, wide: {kind: segment, max_step: 5000000}}\nanonymous: ['*']\ncosid: true\nlimits: {share: 1, rate: {\"slow.*\": 10/h}}\n")
	client := fresh(t)
	patch := func(path string) (int, string) {
		a := does(t, client, http.MethodPatch, "http://"+v.addr+path)
		return a.status, a.body
	}
	for _, c := range []struct {
		path   string
		status int
		words  string
	}{
		{"/segments/shop/a?step=1000000", 200, "1000000"},
		{"/segments/shop/a?step=1000001", 400, "1 to 1000000"},
		{"/segments/shop/a?step=1099511627776", 400, "1 to 1000000"},
		{"/segments/slow/a?step=10", 200, "10"},
		{"/segments/slow/a?step=1", 429, "10/h"},
	} {
		if status, body := patch(c.path); status != c.status || !strings.Contains(body, c.words) {
			t.Errorf("%s: %d %s", c.path, status, body)
		}
	}
	made := 2
	for i := range 200 {
		status, body := patch(fmt.Sprintf("/segments/many/n%d?step=1", i))
		if status == 429 && strings.Contains(body, "too many names") && strings.Contains(body, "one address may make 100") {
			break
		}
		if status != 200 {
			t.Fatal(status, body)
		}
		made++
	}
	if made != 100 {
		t.Errorf("%d names were made", made)
	}
	if status, body := patch("/segments/many/n0?step=1"); status != 200 || body != "2" {
		t.Errorf("a name that exists: %d %s", status, body)
	}
	if answer := fetch(t, client, "http://"+v.addr+"/v1/ids/orders"); answer.status != 200 {
		t.Errorf("%d %s", answer.status, answer.body)
	}
}
