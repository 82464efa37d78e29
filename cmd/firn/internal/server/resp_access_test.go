package server_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/respapi"
)

// say sends a line over the Redis protocol and returns the line of the answer.
func say(t *testing.T, c net.Conn, line string) string {
	t.Helper()
	if _, err := fmt.Fprintf(c, "%s\r\n", line); err != nil {
		t.Fatal(err)
	}
	return hear(t, c)
}

// hear reads a line, and no byte more.
func hear(t *testing.T, c net.Conn) string {
	t.Helper()
	var text strings.Builder
	one := make([]byte, 1)
	for !strings.HasSuffix(text.String(), "\r\n") {
		if _, err := c.Read(one); err != nil {
			t.Fatalf("%q, %v", text.String(), err)
		}
		text.Write(one)
	}
	return strings.TrimSpace(text.String())
}

func TestRedisClientsAuthenticate(t *testing.T) {
	sum := sha256.Sum256([]byte("secret"))
	tokens := fmt.Sprintf("tokens: [{name: shop, sha256: %q, namespaces: [orders], rate: 3/h}]\n", hex.EncodeToString(sum[:]))
	text := "namespaces: {orders: {kind: segment}, users: {}}\n"
	v := serve(t, text+tokens)
	c := dial(t, v.redis)
	for _, step := range [][2]string{
		{"INCR orders", "-NOAUTH Authentication required."},
		{"AUTH wrong", "-WRONGPASS "},
		{"AUTH secret", "+OK"},
		{"INCR orders", ":1"},
		{"INCR users", "-NOPERM "},
		{"INCRBY orders 5", ":6"},
		{"INCR orders", "-TRYAGAIN rate_limited: "},
	} {
		if got := say(t, c, step[0]); !strings.HasPrefix(got, step[1]) {
			t.Errorf("%s: %s, want %s", step[0], got, step[1])
		}
	}
	if log := v.log.String(); strings.Contains(log, "secret") || !strings.Contains(log, `what="namespace users"`) || strings.Count(log, "msg=denied") != 3 {
		t.Errorf("the audit log:\n%s", log)
	}
	// Removing a token also affects open connections.
	write(t, v.file, text+"tokens: []\n")
	v.hangup()
	write(t, v.file, text+strings.Replace(tokens, "orders", "users", 1))
	v.hangup()
	if got := say(t, c, "INCR orders"); !strings.HasPrefix(got, "-NOPERM ") {
		t.Errorf("after the token was given another namespace: %s", got)
	}
	write(t, v.file, text+strings.Replace(tokens, hex.EncodeToString(sum[:]), strings.Repeat("0", 64), 1))
	v.hangup()
	if got := say(t, c, "INCR orders"); got != "-NOAUTH Authentication required." {
		t.Errorf("after the token was taken out: %s", got)
	}
}

func TestRedisConnectionsAreBounded(t *testing.T) {
	v := serve(t, "limits: {connections: 2, share: 100}\n")
	a, b := dial(t, v.redis), dial(t, v.redis)
	for _, c := range []net.Conn{a, b} {
		if got := say(t, c, "PING"); got != "+PONG" {
			t.Error(got)
		}
	}
	if got := ends(t, "the third", dial(t, v.redis)); got != respapi.TooMany {
		t.Errorf("the third: %q", got)
	}
	write(t, v.file, "limits: {connections: 3, share: 100}\n")
	v.hangup()
	if got := say(t, dial(t, v.redis), "INCR orders"); !strings.HasPrefix(got, ":") {
		t.Errorf("after the limit was raised: %s", got)
	}
}

func TestRedisClientsUseTLSAndCertificates(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 2)
	into(t, folder, cert, key)
	write(t, filepath.Join(folder, "ca.pem"), ca.pem)
	v := serve(t, fmt.Sprintf("namespaces: {orders: {}}\ntls: {cert: %[1]s/cert.pem, key: %[1]s/key.pem, client_ca: %[1]s/ca.pem, client_auth: optional}\n"+
		"tokens: [{name: pay, certificate: pay.example.org, namespaces: [orders]}]\n", folder))
	cert, key = ca.valid("pay.example.org", 3)
	for want, client := range map[string]*http.Client{"-NOAUTH ": ca.client("", ""), ":": ca.client(cert, key)} {
		transport, ok := client.Transport.(*http.Transport)
		if !ok {
			t.Fatalf("%T", client.Transport)
		}
		config := transport.TLSClientConfig.Clone()
		config.ServerName = "localhost"
		c := tls.Client(dial(t, v.redis), config)
		if got := say(t, c, "INCR orders"); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		// RESET forgets the credentials; the certificate belongs to the connection.
		if got := say(t, c, "RESET"); got != "+RESET" {
			t.Error(got)
		}
		if got := say(t, c, "INCR orders"); !strings.HasPrefix(got, want) {
			t.Errorf("after RESET: %s, want %s", got, want)
		}
	}
}

// Otherwise they see no more than a connection that ends.
func TestClientsWithoutTLSAreLogged(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 2)
	into(t, folder, cert, key)
	v := serve(t, fmt.Sprintf("tls: {cert: %[1]s/cert.pem, key: %[1]s/key.pem}\n", folder))
	for protocol, begins := range map[string]string{"redis": "*1\r\n$4\r\nPING\r\n", "grpc": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		for range 3 {
			c := dial(t, map[string]string{"redis": v.redis, "grpc": v.grpc}[protocol])
			if _, err := io.WriteString(c, begins); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
		}
		if n := strings.Count(v.log.String(), "the client does not speak TLS, which this port requires\" protocol="+protocol); n != 1 {
			t.Errorf("%s is logged %d times: %s", protocol, n, v.log.String())
		}
	}
}
