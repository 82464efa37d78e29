//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/store/storetest/servers"
)

// fullPipe returns the end of a pipe that is not read and has no room.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) })
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{4096, 1} { // the kernel wants a whole page free for the first
		for err = nil; err == nil; {
			_, err = w.Write(make([]byte, size))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	return w
}

func TestAServerWhoseLogNobodyReadsServesAndEnds(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "firn.yaml")
	at := fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t))
	config := "store: 'memory:'\nlisten: {http: '" + at + "', resp: 'off'}\nnamespaces: {orders: {}}\nanonymous: [orders]\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := firnCommand(ctx, folder, "serve", "--config", file)
	cmd.Stderr = fullPipe(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ask := func(path string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for ask("/v1/ids/orders") != http.StatusOK && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond) // until it listens: its log cannot say so
	}
	for i := range 20 { // each a record of the audit log
		if got := ask(fmt.Sprint("/v1/ids/", strings.Repeat("x", i+1))); got != http.StatusUnauthorized {
			t.Errorf("status %d", got)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
