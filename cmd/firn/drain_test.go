package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRequestsReceivedBeforeShutdownAreAnswered pauses a server, sends a request on each of many
// connections that it has already served, and then sends SIGTERM. So the requests have arrived
// before the shutdown, but are not read yet, as on a busy server.
func TestRequestsReceivedBeforeShutdownAreAnswered(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "firn.yaml")
	if err := os.WriteFile(file, []byte("store: 'memory:'\nlisten: {http: '127.0.0.1:0', resp: '127.0.0.1:0'}\nnamespaces: {orders: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, lines := serveLogged(ctx, t, folder, file)
	found := regexp.MustCompile(`http=http://(\S+) resp=redis://(\S+)`)
	var at []string
	for at == nil && lines.Scan() {
		at = found.FindStringSubmatch(lines.Text())
	}
	if at == nil {
		t.Fatal("the server did not start")
	}
	const each = 100
	type client struct {
		net.Conn
		lines *bufio.Reader
		http  bool
	}
	var clients []client
	answered := func(c client) error {
		if !c.http {
			line, err := c.lines.ReadString('\n')
			if err == nil && !strings.HasPrefix(line, ":") {
				err = fmt.Errorf("%q", line)
			}
			return err
		}
		answer, err := http.ReadResponse(c.lines, nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	}
	ask := func(c client) {
		t.Helper()
		text := "INCR orders\r\n"
		if c.http {
			text = "POST /v1/ids/orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * each {
		conn, err := net.Dial("tcp", at[1+i%2])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		c := client{conn, bufio.NewReader(conn), i%2 == 0}
		ask(c)
		if err := answered(c); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	for _, c := range clients {
		ask(c)
	}
	signal(syscall.SIGTERM)
	signal(syscall.SIGCONT)
	lost := map[bool]int{}
	var why error
	for _, c := range clients {
		if err := answered(c); err != nil {
			lost[c.http]++
			why = err
		}
	}
	if why != nil {
		t.Errorf("of %d each: %d lost over HTTP, %d over the Redis protocol: %v", each, lost[true], lost[false], why)
	}
	for lines.Scan() {
		continue
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
