package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/store/storetest/servers"
)

// answering is the address of a server that answers each question with the next text, and then with the last.
func answering(t *testing.T, texts ...string) string {
	return servers.Accept(t, func(c net.Conn) {
		go func() {
			defer c.Close()
			for i := 0; ; i++ {
				if _, err := io.WriteString(c, texts[min(i, len(texts)-1)]); err != nil {
					return
				}
				if _, err := c.Read(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}()
	})
}

func TestWhatAStoreSaysDoesNotEndTheCommand(t *testing.T) {
	t.Parallel()
	session := string(binary.BigEndian.AppendUint32(nil, 37)) + "\x00\x00\x00\x00\x00\x00\x13\x88\x00\x00\x00\x00\x00\x00\x00\x4d\x00\x00\x00\x10" + strings.Repeat("p", 17)
	for what, url := range map[string]string{
		"redis":     "redis://" + answering(t, "", "-ERR unknown command\r\n", "$9223372036854775807\r\n"),
		"mysql":     "mysql://u:p@" + answering(t, "\x01\x00\x00\x00\x0a") + "/db",
		"postgres":  "postgres://u:p@" + answering(t, "", "R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I", "D\x3f\xff\xff\xf0") + "/db?sslmode=disable",
		"zookeeper": "zookeeper://" + answering(t, "", session, "\x00\x00\x00\x04\x00\x00\x00\x01"),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			cmd := firnCommand(t.Context(), t.TempDir(), "next", "--store", url)
			cmd.Stderr = &said
			err := cmd.Run()
			exit := new(exec.ExitError)
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(said.String(), "unavailable") || !strings.Contains(said.String(), "malformed answer") {
				t.Errorf("%v: %s", err, said.Bytes())
			}
		})
	}
}

// turncoat is a proxy whose server may turn hostile: then it answers each request with what evil has, except the
// first of a connection, where the client expects another form of answer.
type turncoat struct{ evil atomic.Pointer[string] }

func (p *turncoat) front(t *testing.T, server string) (addr string) {
	return servers.Accept(t, func(client net.Conn) {
		to, err := net.Dial("tcp", server)
		if err != nil {
			_ = client.Close()
			return
		}
		go func() {
			defer to.Close()
			b := make([]byte, 1<<16)
			for first := true; ; first = false {
				n, err := client.Read(b)
				if evil := p.evil.Load(); err == nil && evil != nil && !first {
					_, err = io.WriteString(client, *evil)
				} else if err == nil {
					_, err = to.Write(b[:n])
				}
				if err != nil {
					return
				}
			}
		}()
		go func() {
			defer client.Close()
			_, _ = io.Copy(client, to)
		}()
	})
}

// The namespaces that need no store issue ids all the while, and the others when the store is itself again.
func TestAServerOutlivesAStoreThatTurnsHostile(t *testing.T) {
	t.Parallel()
	p := &turncoat{}
	config := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(config, []byte(`
store: redis://`+p.front(t, servers.Redis(t).Addr())+`
listen: {http: "127.0.0.1:0", resp: "127.0.0.1:0"}
namespaces: {orders: {}, txn: {kind: sequence}, uid: {kind: uuid}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	port, _, _ := serveUntilTheEnd(t, exec.Command("firn", "serve", "--config", config))
	status := func(namespace string) int {
		t.Helper()
		answer, err := http.Post("http://127.0.0.1:"+port+"/v1/ids/"+namespace, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	if txn := status("txn"); txn != http.StatusOK {
		t.Fatalf("before: %d", txn)
	}
	for what, evil := range map[string]string{
		"a string of 2^63 bytes":   "$9223372036854775807\r\n",
		"an array of 2^63":         "*9223372036854775807\r\n",
		"a string of 1 GB":         "$1000000000\r\n",
		"arrays in arrays":         strings.Repeat("*1\r\n", 5_000_000),
		"a line without an end":    "+" + strings.Repeat("x", 10_000_000),
		"an attribute of 10^8":     "|100000000\r\n",
		"another protocol's words": "HTTP/1.1 400 Bad Request\r\n\r\n",
	} {
		p.evil.Store(&evil)
		for range 3 {
			if txn, uid := status("txn"), status("uid"); txn != http.StatusServiceUnavailable || uid != http.StatusOK {
				t.Errorf("%s: %d for a sequence, %d for UUIDs", what, txn, uid)
			}
		}
	}
	p.evil.Store(nil)
	for tries := 0; status("txn") != http.StatusOK; tries++ { // connections of before end one by one
		if tries == 50 {
			t.Fatal("the store is itself again, and the sequence is not")
		}
	}
}
