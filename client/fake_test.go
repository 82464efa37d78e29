package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// A fake answers as a server does, and fails as its settings say. Change them with
// set.
type fake struct {
	mu sync.Mutex

	kind    string // of every namespace; "" for one that is made on first use, of kind made
	made    string
	more    string // of the answer about the namespace
	next    int64  // the next id
	batch   int    // the most ids at once, 0 for any
	text    string // what stands before an id
	status  int    // of answers about ids, 0 for 200; with code and header
	code    string
	header  http.Header
	denies  bool          // says nothing about namespaces
	drains  bool          // answers shutting_down to everything
	unready string        // the code of answers about readiness, "" for ready
	past    string        // the namespace whose pool is past its fence, "" for no namespace
	delay   time.Duration // before answers
	down    bool          // it refuses connections
	hangs   bool          // it takes requests and does not answer
	held    chan struct{} // if set, answers wait until it is closed

	counted
	tokens []string
}

// counted are the requests that a fake has received.
type counted struct {
	ids, asked, probes int // for ids, about the namespace, for readiness
	refused            int // for ids of the namespace that is past its fence
	counts             []int
}

func (f *fake) seen() counted {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counted
	c.counts = slices.Clone(c.counts)
	return c
}

func (f *fake) set(change func(f *fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens = append(f.tokens, r.Header.Get("Authorization"))
	refuse := func(status int, code string) {
		for key := range f.header {
			w.Header().Set(key, f.header.Get(key))
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"code":%q,"message":"set by the test"}}`, code)
	}
	switch {
	case r.URL.Path == "/readyz":
		f.probes++
		switch {
		case f.drains:
			refuse(503, "shutting_down")
		case f.unready != "":
			refuse(503, f.unready)
		}
	case f.drains:
		refuse(503, "shutting_down")
	case strings.HasPrefix(r.URL.Path, "/v1/namespaces/"):
		f.asked++
		switch {
		case f.denies:
			refuse(403, "forbidden")
		case f.kind == "":
			refuse(404, "unknown_namespace")
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"namespace":"x","kind":%q%s}`, f.kind, f.more)
		}
	default:
		f.ids++
		count, err := strconv.Atoi(r.URL.Query().Get("count"))
		f.counts = append(f.counts, count)
		switch {
		case f.past != "" && r.URL.Path == "/v1/ids/"+f.past:
			f.refused++
			refuse(503, "fence_reached")
		case err != nil || r.Method != http.MethodPost || r.Header.Get("Accept") != "text/plain":
			refuse(400, "bad_request")
		case f.status != 0:
			refuse(f.status, f.code)
		case f.batch > 0 && count > f.batch:
			refuse(413, "batch_too_large")
		default:
			if f.kind == "" {
				f.kind = f.made
			}
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Firn-Once", r.URL.Query().Get("once"))
			var b strings.Builder
			for range count {
				b.WriteString(f.text)
				b.WriteString(strconv.FormatInt(f.next, 10))
				b.WriteByte('\n')
				f.next++
			}
			w.Write([]byte(b.String()))
		}
	}
}

// A network is servers by host, without sockets, so that virtual time passes while a
// client waits for them.
type network map[string]*fake

var errRefused = errors.New("connection refused")

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	f := n[r.URL.Host]
	f.mu.Lock()
	down, hangs, held, delay := f.down, f.hangs, f.held, f.delay
	f.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
		}
	}
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}
	switch {
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case down:
		return nil, errRefused
	case hangs:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Result(), nil
}

// config returns settings of a client that asks a first, then b, then c.
func (n network) config() client.Config {
	cfg := client.Config{HTTP: &http.Client{Transport: n}, Random: rand.New(rand.NewPCG(1, 1)).Uint64}
	var mu sync.Mutex
	random, calls := cfg.Random, 0
	for _, host := range []string{"a", "b", "c"} {
		if n[host] != nil {
			cfg.Servers = append(cfg.Servers, "http://"+host)
		}
	}
	cfg.Random = func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls <= len(cfg.Servers) {
			return uint64(calls - 1) // leaves the order as it is
		}
		return random()
	}
	return cfg
}

func newClient(t testing.TB, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func ids(t testing.TB, c *client.Client, name string) *client.Namespace[firn.ID] {
	t.Helper()
	n, err := c.IDs(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// nextIs takes count ids, which must begin with first and have no gaps.
func nextIs(t testing.TB, n *client.Namespace[firn.ID], first firn.ID, count int) {
	t.Helper()
	for i := range count {
		id, err := n.Next(context.Background())
		if want := first + firn.ID(i); err != nil || id != want {
			t.Fatalf("next: %d, %v, want %d", id, err, want)
		}
	}
}

// fetchOne fetches one id from a server.
func fetchOne[T firn.ID | string](ctx context.Context, n *client.Namespace[T]) (id T, err error) {
	ids, err := n.Fetch(ctx, 1)
	if err != nil {
		return id, err
	}
	return ids[0], nil
}

// stateOf returns the state of one namespace.
func stateOf(c *client.Client, name string) client.NamespaceState {
	for _, n := range c.State().Namespaces {
		if n.Namespace == name {
			return n
		}
	}
	return client.NamespaceState{}
}
