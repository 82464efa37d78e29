package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// A serving is a server with a listener of its own, and its log.
type serving struct {
	*server.Server
	addr  string
	redis string
	grpc  string
	log   *records
	file  string // of the configuration
	// turn makes the server look for changes, and returns afterwards.
	turn func()
	// once calls a function and then makes the server look once.
	once func(do func())
	// hangup makes it read everything again.
	hangup func()
	stop   func()
}

// records is a log that can be read while it is written.
type records struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// has fails the test if the log lacks a text.
func (r *records) has(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(r.String(), w) {
			t.Errorf("the log lacks %s:\n%s", w, r.String())
		}
	}
}

// eventually waits until is reports true, which another goroutine brings about.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); runtime.Gosched() {
		if time.Since(began) > 20*time.Second {
			t.Errorf("not within 20s: %s", what)
			return
		}
	}
}

// serve starts a server with a configuration in a file.
func serve(t *testing.T, text string, change ...func(*server.Server)) *serving {
	t.Helper()
	file := filepath.Join(t.TempDir(), "firn.yaml")
	write(t, file, text)
	return serveFile(t, file, change...)
}

// serveOn is serve on another address.
func serveOn(t *testing.T, addr, text string) *serving {
	t.Helper()
	file := filepath.Join(t.TempDir(), "firn.yaml")
	write(t, file, text)
	return serveAt(t, addr, file)
}

// waitedFor is the record of a pool whose new workers wait for an hour.
const waitedFor = `{"layout":"41/0/10/12","made":"2026-11-20T12:00:00Z","open":false,"grace":"12s","life":""}`

func serveFile(t *testing.T, file string, change ...func(*server.Server)) *serving {
	t.Helper()
	return serveAt(t, "127.0.0.1:0", file, change...)
}

func serveAt(t *testing.T, addr, file string, change ...func(*server.Server)) *serving {
	t.Helper()
	cfg, err := settings.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	out := &records{}
	mem := memstore.New(nil)
	if _, err := mem.CompareAndSwap(t.Context(), "firn/later/pool", 0, []byte(waitedFor)); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), server.Config{Settings: cfg, Base: lease.Config{}, Store: mem, Log: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(s)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	on := server.Listeners{HTTP: listener, RESP: listen(t)}
	v := &serving{Server: s, addr: listener.Addr().String(), redis: on.RESP.Addr().String(), log: out, file: file}
	if cfg.Listen.GRPC != settings.Off {
		on.GRPC = listen(t)
		v.grpc = on.GRPC.Addr().String()
	}
	ctx, cancel := context.WithCancel(t.Context())
	served, followed := open(ctx, t, s, on), make(chan struct{})
	ticks, hangups, looked := make(chan time.Time), make(chan os.Signal), make(chan struct{})
	go func() {
		defer close(followed)
		s.Follow(ctx, server.Watch{Config: file, Ticks: ticks, Hangup: hangups, Looked: looked})
	}()
	look := func() {
		ticks <- time.Time{}
		<-looked
	}
	v.turn = func() {
		look()
		look()
	}
	v.once = func(do func()) { do(); look() }
	v.hangup = func() {
		hangups <- syscall.SIGHUP
		<-looked
	}
	v.stop = sync.OnceFunc(func() {
		cancel()
		<-followed
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(v.stop)
	return v
}

// open has a server serve on its listeners until ctx ends, and returns when they are open.
func open(ctx context.Context, t *testing.T, s *server.Server, on server.Listeners) (served chan error) {
	t.Helper()
	served = make(chan error, 1)
	opened := make(chan struct{})
	go func() { served <- s.Serve(ctx, on, func() { close(opened) }) }()
	select {
	case <-opened:
	case err := <-served:
		t.Fatal(err)
	}
	return served
}

// An answer is a response with its body.
type answer struct {
	status int
	body   string
	header http.Header
	closes bool // the connection
}

// exchange makes a request without a body. header has names and values; the empty ones are not sent.
func exchange(t *testing.T, c *http.Client, method, url string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	r, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return answer{r.StatusCode, string(body), r.Header, r.Close}, err
}

// does is an exchange that must not fail.
func does(t *testing.T, c *http.Client, method, url string, header ...string) answer {
	t.Helper()
	a, err := exchange(t, c, method, url, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func fetch(t *testing.T, c *http.Client, url string) answer {
	t.Helper()
	return does(t, c, http.MethodGet, url)
}

// get makes a request with a client and returns status and body.
func get(t *testing.T, c *http.Client, url, token string) (int, string) {
	t.Helper()
	a := does(t, c, http.MethodGet, url, "Authorization", bearer(token))
	return a.status, a.body
}

func try(t *testing.T, c *http.Client, url, token string) (int, string, error) {
	a, err := exchange(t, c, http.MethodGet, url, "Authorization", bearer(token))
	return a.status, a.body, err
}

// bearer is the header of a token, and empty for none.
func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

// fresh is a client whose connections end with the test.
func fresh(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// descriptors returns the number of open file descriptors, where the system shows it.
func descriptors() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(all)
}

// settles waits until a number is at most what it was.
func settles(t *testing.T, what string, was int, now func() int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); now() > was; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Errorf("%d %s, %d before", now(), what, was)
			return
		}
	}
}
