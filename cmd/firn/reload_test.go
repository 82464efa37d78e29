package main

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
)

// serveLogged starts a server with a configuration file, and returns it with a scanner of its log.
func serveLogged(ctx context.Context, t *testing.T, folder, file string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := firnCommand(ctx, folder, "serve", "--config", file)
	cmd.Stderr = nil
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(log)
}

// TestAServerReloadsItsConfiguration changes the configuration of a running process, with and
// without a signal.
func TestAServerReloadsItsConfiguration(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "firn.yaml")
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("store: 'memory:'\nlisten: {http: '127.0.0.1:0', resp: off, grpc: off}\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token := func(secret, rest string) string {
		return "tokens: [{name: shop, sha256: " + access.Hash(secret) + ", namespaces: " + rest + "}]\n"
	}
	configure("namespaces: {orders: {}, users: {}}\n" + token("geheim", "[orders]"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, lines := serveLogged(ctx, t, folder, file)
	until := func(words string) string {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), "geheim") {
				t.Errorf("a secret is in the log: %s", lines.Text())
			}
			if strings.Contains(lines.Text(), words) {
				return lines.Text()
			}
		}
		t.Fatalf("the log ended without %q", words)
		return ""
	}
	url := regexp.MustCompile(`http://[0-9.:]+`).FindString(until("msg=serving"))
	ask := func(name, secret string, want int) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/ids/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != want {
			t.Errorf("%s: %s, %v, want %d", name, answer.Status, err, want)
		}
	}
	ask("orders", "geheim", 200)
	ask("users", "geheim", 403)
	ask("orders", "geheim2", 401)

	configure("namespaces: {orders: {}, users: {}}\n" + token("geheim", "['*']"))
	until(`msg="in force: configuration" cause=changed`) // without a signal
	ask("users", "geheim", 200)

	configure("namespaces: {orders: {}, users: {}}\n" + token("geheim", "nonsense"))
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(`msg="not in force: configuration" cause=SIGHUP`)
	ask("users", "geheim", 200)

	configure("namespaces: {orders: {}, users: {}}\n" + token("other", "['*']"))
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(`msg="in force: configuration" cause=SIGHUP`)
	ask("users", "geheim", 401)
	ask("users", "other", 200)

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until("worker released")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A SIGHUP while the server starts, for example by a log rotation, must not end it; a SIGTERM then
// ends it without an error.
func TestSignalsDuringStartup(t *testing.T) {
	folder := t.TempDir()
	url := "sqlite:" + filepath.Join(folder, "firn.db")
	makePool(t, url, `{"layout":"41/0/10/12","made":"2026-11-20T12:00:00Z","open":false,"grace":"12s","life":""}`)
	file := filepath.Join(folder, "firn.yaml")
	if err := os.WriteFile(file, []byte("store: '"+url+"'\nlisten: {http: '127.0.0.1:0', resp: 'off'}\nnamespaces: {orders: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, lines := serveLogged(ctx, t, folder, file)
	for lines.Scan() && !strings.Contains(lines.Text(), "waiting before a worker is granted") {
		continue
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	for lines.Scan() { // to the end of the log, before Wait closes it
		continue
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("SIGHUP and SIGTERM during startup: %v", err)
	}
}

// A log rotation sends SIGHUP. While a pool is joined, the server serves other namespaces, and audits them.
func TestASIGHUPWhileAPoolIsJoinedHasItsEffectAfterwards(t *testing.T) {
	folder := t.TempDir()
	url := "sqlite:" + filepath.Join(folder, "firn.db")
	s, err := storeurl.Create(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	worker := int64(3)
	holder, err := lease.Open(t.Context(), lease.Config{Store: s, Pinned: &worker})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "firn.yaml")
	if err := os.WriteFile(file, []byte("store: '"+url+"'\nlisten: {http: '127.0.0.1:0', resp: 'off'}\nnamespaces: {orders: {worker: 3}, key: {kind: uuid}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, lines := serveLogged(ctx, t, folder, file)
	until := func(words string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), words) {
				return
			}
		}
		t.Fatalf("the log ended without %q", words)
	}
	until("waiting for the fence of a pinned worker")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(holder.Close(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	until(`msg="in force: configuration" cause=SIGHUP`)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until("worker released")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
