package access_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// request returns a request that arrived over loopback.
func request(t *testing.T, change func(*http.Request)) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:7070/v1/ids/x", nil)
	r.RemoteAddr = "127.0.0.1:5555"
	ctx := r.Context()
	r = r.WithContext(contextWith(ctx, &net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 7070}))
	change(r)
	return r
}

func TestARequestIsLocalOnlyWithoutAProxy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   bool
	}{
		"plain":          {func(*http.Request) {}, true},
		"localhost":      {func(r *http.Request) { r.Host = "localhost:7070" }, true},
		"IPv6":           {func(r *http.Request) { r.Host, r.RemoteAddr = "[::1]", "[::1]:9" }, true},
		"IPv4 in IPv6":   {func(r *http.Request) { r.RemoteAddr = "[::ffff:127.0.0.1]:9" }, true},
		"from elsewhere": {func(r *http.Request) { r.RemoteAddr = "10.0.0.9:1234" }, false},
		"to elsewhere": {func(r *http.Request) {
			*r = *r.WithContext(contextWith(r.Context(), &net.TCPAddr{IP: net.ParseIP("10.0.0.9")}))
		}, false},
		"no addresses":    {func(r *http.Request) { r.RemoteAddr = "" }, false},
		"a proxy":         {func(r *http.Request) { r.Header.Set("X-Forwarded-For", "10.0.0.9") }, false},
		"another proxy":   {func(r *http.Request) { r.Header.Set("Forwarded", "for=10.0.0.9") }, false},
		"a third":         {func(r *http.Request) { r.Header.Set("x-real-ip", "10.0.0.9") }, false},
		"a page's name":   {func(r *http.Request) { r.Host = "evil.example:7070" }, false},
		"a name like it":  {func(r *http.Request) { r.Host = "127.0.0.1.example" }, false},
		"no name":         {func(r *http.Request) { r.Host = "" }, false},
		"a public number": {func(r *http.Request) { r.Host = "10.0.0.1:7070" }, false},
		"a page's form":   {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, false},
		"a page's image":  {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, false},
		"of this site":    {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, false},
		"a frame's form":  {func(r *http.Request) { r.Header.Set("Origin", "null") }, false},
		"another port":    {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8080") }, false},
		"typed":           {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, true},
		"its own page": {func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set("Origin", "http://127.0.0.1:7070")
		}, true},
		"an old browser's own page": {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:7070") }, true},
	} {
		got, err := access.OfRequest(request(t, c.change))
		if err != nil || got.Local != c.want {
			t.Errorf("%s: %v, %v", name, got.Local, err)
		}
	}
}

// A page of any origin could use up the ids that its visitors may have: they open the page inside of the network, and
// their browsers show certificates by themselves. Only a token is nothing that a page has.
func TestAForeignPageNeedsAToken(t *testing.T) {
	leaf := &x509.Certificate{NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"pay.example.org"}}
	sum := sha256.Sum256([]byte("s"))
	tokens := []access.Token{{Name: "shop", SHA256: &sum, Namespaces: []string{"orders"}}, {Name: "pay", Certificate: "pay.example.org", Namespaces: []string{"orders"}}}
	for _, cfg := range []access.Config{{}, {Anonymous: []string{"*"}}, {Tokens: tokens}, {Tokens: tokens, Anonymous: []string{"*"}}} {
		b := access.NewBook(cfg, nil, func() time.Duration { return 0 })
		for _, c := range []struct {
			token       string
			certificate bool
		}{{"", false}, {"", true}, {"s", false}, {"s", true}} {
			of := func(site string) string {
				caller, err := b.CallerOf(request(t, func(r *http.Request) {
					r.Header.Set("Sec-Fetch-Site", site)
					if c.token != "" {
						r.Header.Set("Authorization", "Bearer "+c.token)
					}
					if c.certificate {
						r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
					}
				}))
				if err != nil {
					return ""
				}
				return caller.Name()
			}
			own, foreign := of("same-origin"), of("cross-site")
			switch {
			case c.token != "" && len(cfg.Tokens) > 0:
				if own != "shop" || foreign != "shop" {
					t.Errorf("%+v of %+v: %q and %q", c, cfg, own, foreign)
				}
			case foreign != "":
				t.Errorf("%+v of %+v: a foreign page is %q", c, cfg, foreign)
			case own == "" && (len(cfg.Tokens) == 0 || len(cfg.Anonymous) > 0 || c.certificate):
				t.Errorf("%+v of %+v: its own page is refused", c, cfg)
			}
		}
	}
}

func TestTheTokenOfARequest(t *testing.T) {
	leaf := &x509.Certificate{}
	c, err := access.OfRequest(request(t, func(r *http.Request) {
		r.Header.Set("Authorization", "bearer  firn_x ")
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
	}))
	if err != nil || c.Token != "firn_x" || c.Certificate != leaf || c.From != "127.0.0.1:5555" {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = access.OfRequest(request(t, func(r *http.Request) {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	}))
	if err != nil || c.Certificate != nil {
		t.Errorf("a certificate that was not verified is taken: %v, %v", c, err)
	}
	for _, header := range []string{"Basic dXNlcjpw", "Bearer", "Bearer ", "x", ""} {
		_, err := access.OfRequest(request(t, func(r *http.Request) { r.Header.Set("Authorization", header) }))
		if status(err) != 401 || strings.Contains(err.Error(), "dXNl") {
			t.Errorf("%q: %v", header, err)
		}
	}
	_, err = access.OfRequest(request(t, func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer a", "Bearer b"} }))
	if status(err) != 401 {
		t.Errorf("two tokens: %v", err)
	}
}

// contextWith returns a context with the local address of a request.
func contextWith(ctx context.Context, here net.Addr) context.Context {
	return context.WithValue(ctx, http.LocalAddrContextKey, here)
}
