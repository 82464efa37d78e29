package access_test

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"net"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

func sum(secret string) *[sha256.Size]byte {
	s := sha256.Sum256([]byte(secret))
	return &s
}

func still() time.Duration { return 0 }

func book(cfg access.Config) *access.Book { return access.NewBook(cfg, nil, still) }

func status(err error) int {
	if err == nil {
		return 0
	}
	return failure.Of(err).Status
}

func TestATokenAllowsItsNamespacesAndNoOthers(t *testing.T) {
	b := book(access.Config{Tokens: []access.Token{
		{Name: "shop", SHA256: sum("s3cret"), Namespaces: []string{"orders", "user-*"}},
		{Name: "ops", SHA256: sum("other"), Admin: true},
		{Name: "all", SHA256: sum("third"), Namespaces: []string{"*"}},
	}})
	shop, err := b.Identify(access.Credentials{Token: "s3cret", From: "10.0.0.1:5"})
	if err != nil || shop.Name() != "shop" || shop.From() != "10.0.0.1:5" || shop.Admin() {
		t.Fatalf("%+v, %v", shop, err)
	}
	for name, want := range map[string]bool{"orders": true, "user-1": true, "user-": true, "orders2": false, "users": false, "": false} {
		if shop.May(name) != want {
			t.Errorf("shop, %q: %v", name, !want)
		}
	}
	if err := shop.CheckAdmin("metrics"); status(err) != 403 {
		t.Errorf("shop as admin: %v", err)
	}
	ops, err := b.Identify(access.Credentials{Token: "other"})
	if err != nil || ops.May("orders") || ops.CheckAdmin("metrics") != nil {
		t.Errorf("%+v, %v: an admin may look, not issue", ops, err)
	}
	all, err := b.Identify(access.Credentials{Token: "third"})
	if err != nil || !all.May("anything") {
		t.Errorf("%+v, %v", all, err)
	}
	for _, wrong := range []string{"s3cre", "s3cret ", "S3CRET", hex.EncodeToString(sum("s3cret")[:]), "third\x00"} {
		if _, err := b.Identify(access.Credentials{Token: wrong, Local: true}); status(err) != 401 || strings.Contains(err.Error(), wrong) {
			t.Errorf("token %q: %v", wrong, err)
		}
	}
	if _, err := b.Identify(access.Credentials{Local: true}); status(err) != 401 || !strings.Contains(err.Error(), "Bearer") {
		t.Errorf("no token, on loopback, where tokens are configured: %v", err)
	}
}

func TestWithoutConfigurationOnlyThisMachineIsServed(t *testing.T) {
	b := book(access.Config{})
	local, err := b.Identify(access.Credentials{Local: true})
	if err != nil || !local.May("x") || !local.Admin() {
		t.Errorf("%+v, %v", local, err)
	}
	// Without configured tokens any token is ignored: some clients always send one.
	if _, err := b.Identify(access.Credentials{Local: true, Token: "any"}); err != nil {
		t.Error(err)
	}
	for _, c := range []access.Credentials{{}, {Token: "any"}} {
		if _, err := b.Identify(c); status(err) != 401 || !strings.Contains(err.Error(), "firn token") {
			t.Errorf("%+v from elsewhere: %v", c, err)
		}
	}
}

func TestAnonymousCallersMayUseTheConfiguredNamespaces(t *testing.T) {
	for name, cfg := range map[string]access.Config{
		"alone":       {Anonymous: []string{"public-*"}},
		"with tokens": {Anonymous: []string{"public-*"}, Tokens: []access.Token{{Name: "shop", SHA256: sum("s"), Namespaces: []string{"*"}}}},
	} {
		b := book(cfg)
		for _, local := range []bool{true, false} {
			c, err := b.Identify(access.Credentials{Local: local})
			if err != nil || !c.May("public-1") || c.May("orders") || c.Admin() {
				t.Fatalf("%s: %+v, %v", name, c, err)
			}
			if err := c.Denied("orders"); status(err) != 401 {
				t.Errorf("%s: %v: a caller without a token is asked for one", name, err)
			}
			if err := c.CheckAdmin("metrics"); status(err) != 401 {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := b.Identify(access.Credentials{Token: "wrong"}); (status(err) == 401) != (len(cfg.Tokens) > 0) {
			t.Errorf("%s: a wrong token: %v", name, err)
		}
	}
}

func TestATokenMayUseTheNamespacesOpenToAll(t *testing.T) {
	b := book(access.Config{Anonymous: []string{"public-*", "news"}, Tokens: []access.Token{
		{Name: "shop", SHA256: sum("s"), Namespaces: []string{"orders"}},
		{Name: "ops", Certificate: "ops", Admin: true},
	}})
	shop, err := b.Identify(access.Credentials{Token: "s"})
	if err != nil {
		t.Fatal(err)
	}
	ops, err := b.Identify(access.Credentials{Certificate: &x509.Certificate{NotAfter: time.Now().Add(time.Hour), Subject: pkix.Name{CommonName: "ops"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ shop, ops bool }{
		"public-1": {true, true}, "news": {true, true}, "orders": {true, false}, "users": {false, false},
	} {
		if shop.May(name) != want.shop || ops.May(name) != want.ops {
			t.Errorf("%s: shop %v, ops %v", name, shop.May(name), ops.May(name))
		}
	}
	if err := shop.Denied("users"); status(err) != 403 || !strings.Contains(err.Error(), "add it to the token's namespaces") || shop.Admin() || !ops.Admin() {
		t.Errorf("nothing else has changed: %v", err)
	}
	if _, err := b.Identify(access.Credentials{Token: "wrong"}); status(err) != 401 {
		t.Errorf("a wrong token: %v", err)
	}
}

func TestLeasingIsAPermissionOfItsOwn(t *testing.T) {
	b := book(access.Config{Anonymous: []string{"*"}, Tokens: []access.Token{
		{Name: "shop", SHA256: sum("s"), Leases: []string{"shop-*"}, MaxLeases: 7}, {Name: "ops", SHA256: sum("o"), Namespaces: []string{"*"}, Admin: true},
	}})
	for secret, want := range map[string]int{"s": 0, "o": 403, "": 401} {
		c, err := b.Identify(access.Credentials{Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		most, err := c.Leases("shop-1")
		if want == 0 && (err != nil || most != 7) || want != 0 && (status(err) != want || !strings.Contains(err.Error(), `leases: ["shop-1"]`)) {
			t.Errorf("token %q: %d, %v", secret, most, err)
		}
		if _, err := c.Leases("default"); err == nil {
			t.Errorf("token %q leases of another pool", secret)
		}
	}
}

func TestUnveilingIsAPermissionOfItsOwn(t *testing.T) {
	b := book(access.Config{Anonymous: []string{"*"}, Tokens: []access.Token{
		{Name: "shop", SHA256: sum("s"), Namespaces: []string{"*"}},
		{Name: "ops", SHA256: sum("o"), Namespaces: []string{"*"}, Admin: true},
		{Name: "support", SHA256: sum("u"), Namespaces: []string{"*"}, Unveil: true},
	}})
	for token, want := range map[string]int{"": 401, "s": 403, "o": 403, "u": 0} {
		c, err := b.Identify(access.Credentials{Token: token, Local: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CheckUnveil("orders"); status(err) != want || err != nil && !strings.Contains(err.Error(), "unveil: true") {
			t.Errorf("token %q: %v, want %d", token, err, want)
		}
	}
	local, err := book(access.Config{}).Identify(access.Credentials{Local: true})
	if err != nil || local.CheckUnveil("orders") != nil {
		t.Errorf("without tokens callers on this machine may do everything: %+v, %v", local, err)
	}
}

func TestACertificateIdentifiesAToken(t *testing.T) {
	spiffe, err := url.Parse("spiffe://example.org/shop")
	if err != nil {
		t.Fatal(err)
	}
	b := book(access.Config{Tokens: []access.Token{
		{Name: "shop", Certificate: "shop.example.org", Namespaces: []string{"orders"}},
		{Name: "pay", Certificate: "spiffe://example.org/shop", Namespaces: []string{"pays"}},
		{Name: "both", Certificate: "Both", SHA256: sum("both"), Namespaces: []string{"x"}},
	}})
	later := time.Now().Add(time.Hour)
	for want, c := range map[string]*x509.Certificate{
		"shop": {NotAfter: later, Subject: pkix.Name{CommonName: "shop.example.org"}},
		"pay":  {NotAfter: later, URIs: []*url.URL{spiffe}},
		"both": {NotAfter: later, Subject: pkix.Name{CommonName: "Both"}},
	} {
		if caller, err := b.Identify(access.Credentials{Certificate: c}); err != nil || caller.Name() != want {
			t.Errorf("%s: %+v, %v", want, caller, err)
		}
	}
	two := &x509.Certificate{NotAfter: later, URIs: []*url.URL{spiffe}, DNSNames: []string{"other", "shop.example.org"}}
	if caller, err := b.Identify(access.Credentials{Certificate: two}); err != nil || caller.Name() != "shop" {
		t.Errorf("of two the first in the configuration: %+v, %v", caller, err)
	}
	if caller, err := b.Identify(access.Credentials{Certificate: two, Token: "both"}); err != nil || caller.Name() != "both" {
		t.Errorf("a token goes before a certificate: %+v, %v", caller, err)
	}
	if _, err := b.Identify(access.Credentials{Certificate: two, Token: "wrong"}); status(err) != 401 {
		t.Errorf("a wrong token beside a right certificate: %v", err)
	}
	unknown := &x509.Certificate{NotAfter: later, Subject: pkix.Name{CommonName: "mallory"}}
	if _, err := b.Identify(access.Credentials{Certificate: unknown}); status(err) != 401 || !strings.Contains(err.Error(), "mallory") {
		t.Errorf("%v", err)
	}
	kept := &x509.Certificate{NotAfter: later, Subject: pkix.Name{CommonName: "Both"}}
	caller, err := b.Identify(access.Credentials{Certificate: kept})
	if err != nil {
		t.Fatal(err)
	}
	kept.NotAfter = time.Now().Add(-time.Second) // it expires while the connection is open
	if _, err := b.Current(caller); status(err) != 401 {
		t.Errorf("a caller that is kept for longer than its certificate: %v", err)
	}
	ended := &x509.Certificate{NotAfter: time.Now().Add(-time.Second), Subject: pkix.Name{CommonName: "Both"}}
	if _, err := b.Identify(access.Credentials{Certificate: ended}); status(err) != 401 || !strings.Contains(err.Error(), "ended on") {
		t.Errorf("on a connection that outlives it: %v", err)
	}
}

func TestANewBookRevokesTokensOnOpenConnections(t *testing.T) {
	tokens := []access.Token{
		{Name: "shop", SHA256: sum("s"), Namespaces: []string{"orders"}, Rate: access.Rate{Count: 5, Per: time.Second}},
		{Name: "gone", SHA256: sum("g"), Namespaces: []string{"orders"}},
	}
	before := book(access.Config{Tokens: tokens})
	shop, err := before.Identify(access.Credentials{Token: "s", From: "here"})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := before.Identify(access.Credentials{Token: "g"})
	if err != nil {
		t.Fatal(err)
	}
	if same, err := before.Current(shop); err != nil || same != shop {
		t.Errorf("%v, %v", same, err)
	}
	if err := shop.Bucket().Charge(5); err != nil {
		t.Fatal(err)
	}
	changed := tokens[0]
	changed.Namespaces = []string{"users"}
	after := access.NewBook(access.Config{Tokens: []access.Token{changed}}, before, still)
	if _, err := after.Current(gone); status(err) != 401 {
		t.Errorf("a token that was taken out: %v", err)
	}
	now, err := after.Current(shop)
	if err != nil || now.May("orders") || !now.May("users") || now.From() != "here" {
		t.Errorf("%+v, %v", now, err)
	}
	if err := now.Bucket().Charge(1); status(err) != 429 || failure.Of(err).Retry != 200*time.Millisecond || !strings.Contains(err.Error(), "5/s") {
		t.Errorf("a reload is no new allowance: %v", err)
	}
	now.Bucket().Return(1)
	if err := now.Bucket().Charge(1); err != nil {
		t.Errorf("what was returned: %v", err)
	}
}

// matches is Match by another way.
func matches(pattern, name string) bool {
	return regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(name)
}

func TestAStarMatchesAnyCharacters(t *testing.T) {
	for _, pattern := range []string{"*", "a*", "*a", "a*b*c", "**", "abc", "*b*", "a.b-*_c", "a**b"} {
		if err := access.CheckPattern(pattern); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"", "a", "b", "ab", "abc", "aXbYc", "aXbYcZ", "ca", "a.b-_c", "a.b-x_c", "aabb", "abcbc"} {
			if got := access.Match(pattern, name); got != matches(pattern, name) {
				t.Errorf("%s, %q: %v", pattern, name, got)
			}
		}
	}
	for _, bad := range []string{"", "a b", "a/b", "[a]", "a?", "ä", strings.Repeat("a", 65)} {
		if access.CheckPattern(bad) == nil {
			t.Errorf("%q is allowed", bad)
		}
	}
	if slow := "*a*a*a*a*a*a*a*a*a*a*a*a*b"; access.Match(slow, strings.Repeat("a", 64)) {
		t.Error("there is no b")
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b", "aXb")
	f.Add("**a", "ba")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if access.CheckPattern(pattern) != nil || strings.Contains(name, "/") {
			return
		}
		if got := access.Match(pattern, name); got != matches(pattern, name) {
			t.Errorf("%q, %q: %v", pattern, name, got)
		}
	})
}

func TestAConnectionIsLocalIfBothEndsAreOnLoopback(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.ParseIP("127.0.0.1")}, &net.TCPAddr{IP: net.ParseIP("10.1.2.3")}
	six := &net.TCPAddr{IP: net.IPv6loopback}
	for _, c := range []struct {
		local, remote net.Addr
		want          bool
	}{{here, here, true}, {six, six, true}, {here, there, false}, {there, here, false}, {there, there, false}, {nil, here, false}} {
		if access.Local(c.local, c.remote) != c.want {
			t.Errorf("%v, %v", c.local, c.remote)
		}
	}
}

func TestSecretsAreLongAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		s := access.NewSecret()
		if len(s) != 48 || seen[s] || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Fatalf("%q", s)
		}
		seen[s] = true
	}
	if got := access.Hash("abc"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error(got)
	}
}

func BenchmarkIdentify(b *testing.B) {
	book := book(access.Config{Tokens: []access.Token{{Name: "shop", SHA256: sum("s3cret"), Namespaces: []string{"*"}}}})
	for b.Loop() {
		if _, err := book.Identify(access.Credentials{Token: "s3cret"}); err != nil {
			b.Fatal(err)
		}
	}
}

// A name may be as long as a request; matching it against patterns would waste time.
func TestATooLongNameIsNotMatchedAgainstPatterns(t *testing.T) {
	b := book(access.Config{Tokens: []access.Token{{Name: "shop", SHA256: sum("s3cret"), Namespaces: []string{"a*a"}}}})
	c, err := b.Identify(access.Credentials{Token: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]bool{64: true, 65: false, 60_000: false} {
		if c.May(strings.Repeat("a", length)) != want {
			t.Errorf("%d letters", length)
		}
	}
}
