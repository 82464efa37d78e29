package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// raw answers requests for ids with the given bytes, and everything else like a server.
func raw(t *testing.T, answer string) *httptest.Server {
	t.Helper()
	behind := &fake{kind: "snowflake", next: 1}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/ids/") {
			behind.ServeHTTP(w, r)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		once := "Firn-Once: " + r.URL.Query().Get("once") + "\r\n"
		if _, err := io.WriteString(conn, strings.Replace(answer, "Firn-Once: ONCE\r\n", once, 1)); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Logf("the client does not read on: %v", err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// impatient returns a client, and a context that ends when the client asks for ids a
// second time.
func impatient(t *testing.T, cfg client.Config) (*client.Client, context.Context) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var asked atomic.Int64
	cfg.Wait = time.Minute
	cfg.Hooks.Request = func(r client.Request) {
		if r.Count > 0 && asked.Add(1) == 2 {
			cancel()
		}
	}
	return newClient(t, cfg), ctx
}

func TestAnAnswerWithoutExactlyTheIDsAskedForIssuesNoID(t *testing.T) {
	const text = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nFirn-Once: ONCE\r\nConnection: close\r\n"
	whole := func(body string) string { return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", text, len(body), body) }
	for name, test := range map[string]struct {
		answer, want string
		unusable     bool
	}{
		"cut off by its length":   {text + "Content-Length: 18\r\n\r\n11111\n22222\n333", "unexpected EOF", false},
		"cut off within a chunk":  {text + "Transfer-Encoding: chunked\r\n\r\n12\r\n11111\n22222\n333", "unexpected EOF", false},
		"cut off between chunks":  {text + "Transfer-Encoding: chunked\r\n\r\n6\r\n11111\n\r\n", "EOF", false},
		"cut off within a number": {text + "\r\n11111\n22222\n333", "ends after 2 of the 3", true},
		"too few":                 {whole("1\n2\n"), "ends after 2 of the 3", true},
		"too many":                {whole("1\n2\n3\n4\n"), "goes on after the 3", true},
		"an empty line":           {whole("1\n\n3\n"), "an id of 0 bytes", true},
		"nothing":                 {whole(""), "ends after 0 of the 3", true},
		"garbage":                 {whole("1\n2\n\xff\x00 3\n"), "is not an id", true},
		"html":                    {strings.Replace(whole("1\n2\n3\n"), "text/plain", "text/html", 1), `it is "text/html; charset=utf-8", not text/plain`, true},
		"no type":                 {"HTTP/1.1 200 OK\r\nFirn-Once: ONCE\r\nContent-Length: 6\r\n\r\n1\n2\n3\n", "not text/plain", true},
		"too big":                 {whole(strings.Repeat("1", 10_000)), "longer than 771 bytes", true},
		"from a cache":            {strings.Replace(whole("1\n2\n3\n"), "Connection", "Age: 7\r\nConnection", 1), "it is 7 seconds old, from a cache", true},
		"of another request":      {strings.Replace(whole("1\n2\n3\n"), "ONCE", "X7", 1), "it is that of another request (Firn-Once: X7)", true},
		"not of Firn":             {strings.Replace(whole("1\n2\n3\n"), "Firn-Once: ONCE\r\n", "", 1), "it has no header Firn-Once: it is not Firn's, or a proxy removes the header", true},
		"no answer":               {"", "EOF", false},
		"no HTTP":                 {"SSH-2.0-OpenSSH_9.2\r\n", "malformed HTTP", false},
		"an error of a proxy":     {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 9\r\n\r\n<h1>502\n\x07", "502 Bad Gateway: <h1>502", false},
		"an error of the server":  {"HTTP/1.1 500 X\r\nContent-Length: 48\r\n\r\n{\"error\":{\"code\":\"internal\",\"message\":\"broken\"}}", "500 internal: broken", false},
		"no content":              {"HTTP/1.1 204 No Content\r\n\r\n", "204 No Content", false},
		"a redirect to elsewhere": {"HTTP/1.1 307 X\r\nLocation: http://elsewhere/v1/ids/orders\r\nContent-Length: 0\r\n\r\n", `this one leads to "http://elsewhere/v1/ids/orders"`, true},
		"a redirect to nowhere":   {"HTTP/1.1 301 X\r\nContent-Length: 0\r\n\r\n", "redirects are not followed", true},
	} {
		t.Run(name, func(t *testing.T) {
			broken, good := raw(t, test.answer), httptest.NewServer(&fake{kind: "snowflake", next: 70})
			t.Cleanup(good.Close)
			alone, ctx := impatient(t, client.Config{Servers: []string{broken.URL}})
			got, err := ids(t, alone, "orders").Fetch(ctx, 3)
			if len(got) > 0 || !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), broken.URL) {
				t.Errorf("%v, %v", got, err)
			}
			if strings.Contains(err.Error(), "unusable answer") != test.unusable {
				t.Errorf("an answer is unusable: %t, but the error is %v", test.unusable, err)
			}
			if strings.ContainsAny(err.Error(), "\n\x07") {
				t.Errorf("foreign text spoils a log: %q", err)
			}
			alone, ctx = impatient(t, client.Config{Servers: []string{broken.URL}})
			if _, err := ids(t, alone, "orders").Next(ctx); !errors.Is(err, client.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			both := newClient(t, client.Config{
				Servers: []string{broken.URL, good.URL}, Random: func() uint64 { return 1 }, // that order: 1%1, 1%2
			})
			nextIs(t, ids(t, both, "orders"), 70, 20)
		})
	}
}

// A proxy may cache every request, whatever its method and headers are, without adding an Age
// header. nginx adds no Age.
func TestAHiddenCacheNeverCausesADuplicate(t *testing.T) {
	behind := &fake{kind: "snowflake", next: 1}
	var kept sync.Map // of *httptest.ResponseRecorder
	cache := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made := httptest.NewRecorder()
		behind.ServeHTTP(made, r)
		answer, _ := kept.LoadOrStore(r.Method+r.URL.String(), made)
		made, _ = answer.(*httptest.ResponseRecorder)
		maps.Copy(w.Header(), made.Header())
		w.WriteHeader(made.Code)
		if _, err := w.Write(made.Body.Bytes()); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(cache.Close)
	seen := map[firn.ID]bool{}
	for range 2 {
		orders := ids(t, newClient(t, client.Config{Servers: []string{cache.URL}}), "orders")
		for range 2 {
			got, err := orders.Fetch(t.Context(), 3)
			if err != nil {
				t.Fatal(err)
			}
			one, err := orders.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range append(got, one) {
				if seen[id] {
					t.Errorf("%d twice", id)
				}
				seen[id] = true
			}
		}
	}
}

// As long as its servers start. Any text might be an id.
func TestASentenceOfAProxyIsNoID(t *testing.T) {
	behind := &fake{kind: "serial", next: 1, text: "ORD"}
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/ids/") && asked.Add(1)%2 == 1 {
			fmt.Fprintln(w, "upstream is warming up")
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	c := newClient(t, client.Config{Servers: []string{proxy.URL}})
	numbers, err := c.Texts("numbers")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ORD1", "ORD2"} {
		if got, err := numbers.Fetch(t.Context(), 1); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%q, %v, want %s", got, err, want)
		}
	}
	behind.set(func(f *fake) { f.kind, f.text, f.next = "snowflake", "", 7 })
	if got, err := ids(t, c, "orders").Fetch(t.Context(), 1); err != nil || got[0] != 7 {
		t.Errorf("%v, %v", got, err)
	}
}

// A proxy sends an answer a second time, in the place of the answer to a later request. The client asks again.
func TestAnAnswerThatIsSentTwiceIsNotUsedTwice(t *testing.T) {
	behind := &fake{kind: "sequence", next: 1}
	var before *httptest.ResponseRecorder // guarded by the order of requests
	twice := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made := httptest.NewRecorder()
		behind.ServeHTTP(made, r)
		if seen := behind.seen(); seen.ids%3 == 0 && strings.HasPrefix(r.URL.Path, "/v1/ids/") {
			made = before
			twice++
		}
		before = made
		maps.Copy(w.Header(), made.Header())
		if _, err := w.Write(made.Body.Bytes()); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(proxy.Close)
	orders := ids(t, newClient(t, client.Config{Servers: []string{proxy.URL}}), "orders")
	last := firn.ID(0)
	for range 10 {
		got, err := orders.Fetch(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range got {
			if id <= last {
				t.Errorf("%d after %d", id, last)
			}
			last = id
		}
	}
	if twice == 0 {
		t.Error("no answer was sent twice: this test shows nothing")
	}
}

func TestAnAnswerThatStallsIsGivenUpAndTheServerLeft(t *testing.T) {
	behind, good := &fake{kind: "snowflake", next: 1}, httptest.NewServer(&fake{kind: "snowflake", next: 70})
	t.Cleanup(good.Close)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			behind.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Firn-Once", r.URL.Query().Get("once"))
		fmt.Fprint(w, "1\n2\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done() // until the client has gone
	}))
	t.Cleanup(slow.Close)
	left := make(chan error, 10)
	c := newClient(t, client.Config{
		Servers: []string{slow.URL, good.URL}, Random: func() uint64 { return 1 }, Timeout: 300 * time.Millisecond, Wait: time.Minute,
		Hooks: client.Hooks{Server: func(_ string, err error) { left <- err }},
	})
	nextIs(t, ids(t, c, "orders"), 70, 5)
	if err := <-left; err == nil || !strings.Contains(err.Error(), "no answer within 300ms") {
		t.Errorf("%v", err)
	}
}

func TestNumbersThatDoNotFitAreRefused(t *testing.T) {
	for _, number := range []string{"-1", "+1", "9223372036854775808", "18446744073709551617", "1e3", "0x1", "00000000000000000001"} {
		s := raw(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nFirn-Once: ONCE\r\nContent-Length: %d\r\n\r\n%s\n", len(number)+1, number))
		c := newClient(t, client.Config{Servers: []string{s.URL}})
		if id, err := fetchOne(t.Context(), ids(t, c, "orders")); id != 0 || !errors.Is(err, client.ErrKind) {
			t.Errorf("%s: %d, %v", number, id, err)
		}
	}
	for number, want := range map[string]int64{"0": 0, "9223372036854775807": 1<<63 - 1, "0000000000000000007": 7} {
		s := raw(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nFirn-Once: ONCE\r\nContent-Length: %d\r\n\r\n%s\n", len(number)+1, number))
		c := newClient(t, client.Config{Servers: []string{s.URL}})
		if id, err := fetchOne(t.Context(), ids(t, c, "orders")); int64(id) != want || err != nil {
			t.Errorf("%s: %d, %v", number, id, err)
		}
	}
}

func TestTheTokenGoesOnlyToTheServersAndNotWithARedirect(t *testing.T) {
	good := &fake{kind: "snowflake", next: 1}
	server := httptest.NewServer(good)
	t.Cleanup(server.Close)
	var strayed atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(elsewhere.Close)
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(redirecting.Close)

	follows := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	for _, own := range []*http.Client{nil, follows} {
		c, ctx := impatient(t, client.Config{Servers: []string{redirecting.URL}, Token: "geheim", HTTP: own})
		_, err := fetchOne(ctx, ids(t, c, "orders"))
		if !strings.Contains(fmt.Sprint(err), "unusable answer") || strings.Contains(err.Error(), "geheim") || strayed.Load() > 0 {
			t.Errorf("%v; %d requests strayed", err, strayed.Load())
		}
	}
	c := newClient(t, client.Config{Servers: []string{server.URL + "/"}, Token: "geheim"})
	nextIs(t, ids(t, c, "orders"), 1, 5)
	good.set(func(f *fake) {
		for _, token := range f.tokens {
			if token != "Bearer geheim" {
				t.Errorf("token %q", token)
			}
		}
	})
}

func TestTLSIsCheckedAgainstTheAuthoritiesGiven(t *testing.T) {
	server := httptest.NewTLSServer(&fake{kind: "snowflake", next: 1})
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	c := newClient(t, client.Config{Servers: []string{server.URL}, TLS: &tls.Config{RootCAs: pool}})
	nextIs(t, ids(t, c, "orders"), 1, 500)
	c = newClient(t, client.Config{Servers: []string{server.URL}, Wait: time.Second})
	var unknown x509.UnknownAuthorityError
	if _, err := ids(t, c, "orders").Next(t.Context()); !errors.Is(err, client.ErrUnavailable) || !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
}

func TestTheCallersProxyIsUsedAndItsErrorsAreNotIDs(t *testing.T) {
	server := httptest.NewServer(&fake{kind: "snowflake", next: 1})
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		proxy http.Handler
		want  string
	}{
		"good":            {httputil.NewSingleHostReverseProxy(target), ""},
		"asks for a name": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }), "407 Proxy Authentication Required"},
		"down behind":     {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no upstream", http.StatusBadGateway) }), "502 Bad Gateway: no upstream"},
		"its own page":    {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>blocked</html>") }), "text/html; charset=utf-8\", not application/json"},
	} {
		t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // not asked: only what the caller gives
		proxy := httptest.NewServer(test.proxy)
		t.Cleanup(proxy.Close)
		via, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{Proxy: http.ProxyURL(via)}
		t.Cleanup(transport.CloseIdleConnections)
		c := newClient(t, client.Config{
			Servers: []string{"http://ids.invalid"}, HTTP: &http.Client{Transport: transport}, Wait: time.Second,
		})
		_, err = ids(t, c, "orders").Next(t.Context())
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (!errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
