package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

func tlsKeys(folder, more string) string {
	return fmt.Sprintf("tls: {cert: %s, key: %s%s}\n", filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"), more)
}

func TestHTTPSWithHTTP2(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 7)
	into(t, folder, cert, key)
	v := serve(t, "namespaces: {orders: {}}\n"+tlsKeys(folder, "")+"tokens:\n  - {name: shop, sha256: "+access.Hash("s3cret")+", namespaces: [orders]}\n")
	client, url := ca.client("", ""), "https://"+v.addr+"/v1/ids/orders"
	if status, body := get(t, client, url, "s3cret"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := get(t, client, url, ""); status != 401 {
		t.Error(status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+v.addr+"/livez", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.ProtoMajor != 2 || answer.TLS.Version != tls.VersionTLS13 {
		t.Errorf("%s over %s", answer.Proto, tls.VersionName(answer.TLS.Version))
	}
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true} {
		c := ca.client("", "")
		transport, ok := c.Transport.(*http.Transport)
		if !ok {
			t.Fatal("no transport")
		}
		transport.TLSClientConfig.MaxVersion = version
		if _, _, err := try(t, c, "https://"+v.addr+"/livez", ""); (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
	if status, body := get(t, fresh(t), "http://"+v.addr+"/livez", ""); status != 400 || !strings.Contains(body, "HTTPS") {
		t.Errorf("without encryption: %d %s", status, body)
	}
}

func TestEachTLSListenerNegotiatesItsOwnProtocols(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 7)
	into(t, folder, cert, key)
	v := serve(t, "namespaces: {orders: {}}\n"+tlsKeys(folder, ""))
	for addr, want := range map[string]string{v.addr: "h2", v.redis: "", v.grpc: "h2"} {
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: ca.roots(), NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if got := c.ConnectionState().NegotiatedProtocol; got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
		_ = c.Close()
	}
}

func TestClientCertificatesIdentifyTokens(t *testing.T) {
	ca, other, folder := newAuthority(t, "ca"), newAuthority(t, "other"), t.TempDir()
	cert, key := ca.valid("server", 7)
	into(t, folder, cert, key)
	write(t, filepath.Join(folder, "ca.pem"), ca.pem)
	good, goodKey := ca.valid("shop.example.org", 8)
	unknown, unknownKey := ca.valid("mallory", 9)
	foreign, foreignKey := other.valid("shop.example.org", 10)
	ended, endedKey := ca.issue("shop.example.org", 11, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	for auth, bare := range map[string]int{"require": 0, "optional": 200} {
		v := serve(t, "namespaces: {orders: {}, users: {}}\n"+
			tlsKeys(folder, ", client_ca: "+filepath.Join(folder, "ca.pem")+", client_auth: "+auth)+
			"tokens:\n  - {name: shop, certificate: shop.example.org, namespaces: [orders]}\n"+
			"  - {name: pay, sha256: "+access.Hash("p")+", namespaces: ['*']}\n")
		url := "https://" + v.addr + "/v1/ids/"
		with := ca.client(good, goodKey)
		if status, body := get(t, with, url+"orders", ""); status != 200 {
			t.Errorf("%s: %d %s", auth, status, body)
		}
		if status, body := get(t, with, url+"users", ""); status != 403 || !strings.Contains(body, "shop") {
			t.Errorf("%s: %d %s", auth, status, body)
		}
		if status, body := get(t, with, url+"users", "p"); status != 200 {
			t.Errorf("%s, a token beside it: %d %s", auth, status, body)
		}
		if status, body := get(t, ca.client(unknown, unknownKey), url+"orders", ""); status != 401 || !strings.Contains(body, "mallory") {
			t.Errorf("%s: %d %s", auth, status, body)
		}
		if status, _, err := try(t, ca.client("", ""), url+"orders", "p"); status != bare || (err == nil) != (bare == 200) {
			t.Errorf("%s, none: %d %v", auth, status, err)
		}
		for what, c := range map[string]*http.Client{"of another authority": ca.client(foreign, foreignKey), "ended": ca.client(ended, endedKey)} {
			if status, _, err := try(t, c, url+"orders", "p"); err == nil {
				t.Errorf("%s, %s: %d %v", auth, what, status, err)
			}
		}
		v.stop()
		v.log.has(t, "msg=denied log=audit who=\"\" from=127.0.0.1 what=tls", "expired", "unknown authority")
	}
}

// The audit log has the denials of every protocol.
func TestRefusedClientCertificatesAreDenials(t *testing.T) {
	ca, other, folder := newAuthority(t, "ca"), newAuthority(t, "other"), t.TempDir()
	cert, key := ca.valid("server", 7)
	into(t, folder, cert, key)
	write(t, filepath.Join(folder, "ca.pem"), ca.pem)
	pair := func(cert, key string) []tls.Certificate {
		p, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{p}
	}
	foreign := pair(other.valid("shop.example.org", 10))
	ended := pair(ca.issue("shop.example.org", 11, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)))
	good := pair(ca.valid("shop.example.org", 8))
	text := "namespaces: {orders: {}}\n" + tlsKeys(folder, ", client_ca: "+filepath.Join(folder, "ca.pem")) +
		"tokens:\n  - {name: shop, certificate: shop.example.org, namespaces: [orders]}\n"
	for name, on := range map[string]func(*serving) string{
		"http":  func(v *serving) string { return v.addr },
		"redis": func(v *serving) string { return v.redis },
		"grpc":  func(v *serving) string { return v.grpc },
	} {
		for _, c := range []struct {
			what    string
			certs   []tls.Certificate
			trust   *authority
			version uint16
			want    string // empty: no denial
		}{
			{"none", nil, ca, tls.VersionTLS13, "tls: client didn't provide a certificate"},
			{"none", nil, ca, tls.VersionTLS12, "tls: client didn't provide a certificate"},
			{"ended", ended, ca, tls.VersionTLS13, "tls: failed to verify certificate: x509: certificate has expired"},
			{"of another authority", foreign, ca, tls.VersionTLS12, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
			{"good", good, ca, tls.VersionTLS13, ""},
			{"good, but does not trust the server", good, other, tls.VersionTLS13, ""},
			{"good, but does not trust the server", good, other, tls.VersionTLS12, ""},
		} {
			v := serve(t, text)
			dialed, err := tls.Dial("tcp", on(v), &tls.Config{
				NextProtos: []string{"h2"},
				RootCAs:    c.trust.roots(), ServerName: "127.0.0.1", MinVersion: c.version, MaxVersion: c.version,
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if len(c.certs) == 0 {
						return new(tls.Certificate), nil
					}
					return &c.certs[0], nil
				},
			})
			if err == nil {
				if c.want != "" {
					_, _ = dialed.Read(make([]byte, 1)) // until the server refuses
				}
				_ = dialed.Close()
			}
			plain, err := net.Dial("tcp", on(v))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := plain.Write([]byte("no handshake, whatever certificate\r\n")); err != nil {
				t.Fatal(err)
			}
			_, _ = plain.Read(make([]byte, 1)) // it is refused too
			_ = plain.Close()
			v.stop()
			want := "msg=denied log=audit who=\"\" from=127.0.0.1 what=tls why=\"" + c.want
			switch n := strings.Count(v.log.String(), "msg=denied"); {
			case c.want == "" && n > 0:
				t.Errorf("%s, %s: a denial was recorded:\n%s", name, c.what, v.log)
			case c.want != "" && (n != 1 || !strings.Contains(v.log.String(), want)):
				t.Errorf("%s, %s: %d denials, want one as %s:\n%s", name, c.what, n, want, v.log)
			}
		}
	}
}

// serial returns the serial number of the certificate that the server presents on a new
// connection.
func serial(t *testing.T, ca *authority, addr string) int64 {
	t.Helper()
	answer, err := ca.client("", "").Get("https://" + addr + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.TLS.PeerCertificates[0].SerialNumber.Int64()
}

func TestCertificatesAreReadAgainWithoutLosingConnections(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 1)
	into(t, folder, cert, key)
	v := serve(t, "namespaces: {orders: {}}\n"+tlsKeys(folder, "")+"anonymous: ['*']\nanonymous_metrics: true\n")
	kept := ca.client("", "")
	var used []int64
	ask := func() {
		t.Helper()
		answer, err := kept.Get("https://" + v.addr + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		used = append(used, answer.TLS.PeerCertificates[0].SerialNumber.Int64())
	}
	ask()
	v.turn()
	now := func(want int64) {
		t.Helper()
		v.turn()
		ask()
		if got := serial(t, ca, v.addr); got != want {
			t.Errorf("certificate %d, want %d", got, want)
		}
	}
	// First only half of a new pair, as a look between two writes finds it.
	second, secondKey := ca.valid("server", 2)
	write(t, filepath.Join(folder, "cert.pem"), second)
	now(1)
	v.log.has(t, "private key does not match public key", "stays in force")
	write(t, filepath.Join(folder, "key.pem"), secondKey)
	now(2)
	for text, want := range map[string]string{"": "failed to find any PEM data", "nonsense": "failed to find any PEM data", second[:len(second)/2]: "block 1 is damaged or cut off"} {
		write(t, filepath.Join(folder, "cert.pem"), text)
		now(2)
		v.log.has(t, want)
	}
	ended, endedKey := ca.issue("server", 3, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	into(t, folder, ended, endedKey)
	now(2)
	v.log.has(t, "ended on")
	early, earlyKey := ca.issue("server", 4, time.Now().Add(time.Hour), time.Now().Add(2*time.Hour))
	into(t, folder, early, earlyKey)
	now(2)
	v.log.has(t, "begins on")
	if err := os.Remove(filepath.Join(folder, "key.pem")); err != nil {
		t.Fatal(err)
	}
	now(2)
	v.log.has(t, "no such file")
	said := strings.Count(v.log.String(), "not in force: certificates")
	v.turn()
	if again := strings.Count(v.log.String(), "not in force: certificates"); again != said {
		t.Errorf("the same fault was said %d times more", again-said)
	}
	soon, soonKey := ca.issue("server", 5, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	into(t, folder, soon, soonKey)
	now(5)
	v.log.has(t, "the certificate expires soon")
	_, metrics := get(t, kept, "https://"+v.addr+"/metrics", "")
	for _, want := range []string{`firn_tls_reloads_total{result="ok"} 2`, `firn_tls_reloads_total{result="failed"} `, "firn_tls_certificate_not_after_timestamp_seconds 1."} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, s := range used {
		if s != 1 {
			t.Errorf("the connection that was there was not kept: certificates %v", used)
			break
		}
	}
}

func TestCertificateErrorsNameTheConfigurationInForce(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 1)
	into(t, folder, cert, key)
	v := serve(t, tlsKeys(folder, "")+"namespaces: {orders: {}}\n")
	v.turn()
	write(t, v.file, "# Two lines\n# more.\n"+tlsKeys(folder, "")+"namespaces: {orders: {}}\n")
	v.turn()
	write(t, filepath.Join(folder, "cert.pem"), "nonsense")
	v.turn()
	v.log.has(t, "line 3: tls: cert")
}

// The authority's clock may be ahead of the server's.
func TestACertificateIsUsedOnceItIsValid(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 1)
	into(t, folder, cert, key)
	clock := make(chan time.Time, 1)
	clock <- time.Now().Add(-time.Hour)
	v := serve(t, "namespaces: {orders: {}}\n"+tlsKeys(folder, "")+"anonymous: ['*']\nanonymous_metrics: true\n", func(s *server.Server) {
		s.SetWall(func() time.Time { at := <-clock; clock <- at; return at })
	})
	shows := func(want string) {
		t.Helper()
		if _, body := get(t, ca.client("", ""), "https://"+v.addr+"/metrics", ""); !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	looks := func(n int) {
		for range n {
			v.once(func() {})
		}
	}
	shows("firn_tls_last_reload_successful 1")
	early, earlyKey := ca.issue("server", 2, time.Now().Add(-time.Minute), time.Now().Add(90*24*time.Hour))
	into(t, folder, early, earlyKey)
	looks(2 + 20*15)
	if n := strings.Count(v.log.String(), `msg="not in force: certificates"`); n != 1 {
		t.Errorf("the same fault was said %d times", n)
	}
	v.log.has(t, "line 2: tls.cert: ", "begins on")
	shows("firn_tls_last_reload_successful 0")
	shows(`firn_tls_reloads_total{result="failed"} 21`)
	// Half of another pair is not mistaken for the refused one.
	_, otherKey := ca.valid("server", 3)
	looks(14)
	write(t, filepath.Join(folder, "key.pem"), otherKey)
	looks(1)
	write(t, filepath.Join(folder, "key.pem"), earlyKey)
	looks(1)
	if n := strings.Count(v.log.String(), `msg="not in force: certificates"`); n != 1 {
		t.Errorf("half of a pair was read:\n%s", v.log)
	}
	clock <- (<-clock).Add(time.Hour)
	looks(15)
	v.log.has(t, `msg="in force: certificates" cause="tried again"`)
	if got := serial(t, ca, v.addr); got != 2 {
		t.Errorf("certificate %d", got)
	}
	shows("firn_tls_last_reload_successful 1")
	// A different error is logged.
	ended, endedKey := ca.issue("server", 4, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	into(t, folder, ended, endedKey)
	looks(40)
	write(t, filepath.Join(folder, "key.pem"), otherKey)
	looks(40)
	if n := strings.Count(v.log.String(), `msg="not in force: certificates"`); n != 3 {
		t.Errorf("three faults were said %d times", n)
	}
}

func TestACertificateThatExpiresInForceIsLogged(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 1)
	into(t, folder, cert, key)
	now := make(chan time.Time, 1)
	now <- time.Now()
	v := serve(t, "namespaces: {orders: {}}\n"+tlsKeys(folder, ""), func(s *server.Server) {
		s.SetWall(func() time.Time { at := <-now; now <- at; return at })
	})
	for _, c := range []struct {
		pass time.Duration
		soon int
		over int
	}{{0, 0, 0}, {80 * 24 * time.Hour, 1, 0}, {time.Hour, 1, 0}, {24 * time.Hour, 2, 0}, {9*24*time.Hour - 2*time.Hour, 3, 0}, {2 * time.Hour, 3, 1}, {time.Hour, 3, 1}} {
		now <- (<-now).Add(c.pass)
		v.turn()
		soon, over := strings.Count(v.log.String(), "the certificate expires soon"), strings.Count(v.log.String(), "the certificate has expired")
		if soon != c.soon || over != c.over {
			t.Errorf("after %v more: said %d and %d times, want %d and %d", c.pass, soon, over, c.soon, c.over)
		}
	}
}

func TestAServerDoesNotStartWithCertificatesThatNoClientAccepts(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	ended, endedKey := ca.issue("server", 3, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	early, earlyKey := ca.issue("server", 3, time.Now().Add(time.Hour), time.Now().Add(2*time.Hour))
	good, goodKey := ca.valid("server", 4)
	for what, c := range map[string]struct{ cert, key, more, want string }{
		"ended":     {ended, endedKey, "", "line 2: tls.cert: " + filepath.Join(folder, "cert.pem") + " ended on"},
		"early":     {early, earlyKey, "", "line 2: tls.cert: " + filepath.Join(folder, "cert.pem") + " begins on"},
		"other key": {good, endedKey, "", "line 2: tls: cert " + filepath.Join(folder, "cert.pem") + ", key " + filepath.Join(folder, "key.pem") + ": tls: private key does not match"},
		"no key":    {good, "", "", "failed to find any PEM data"},
		"no CA":     {good, goodKey, ", client_ca: " + filepath.Join(folder, "none"), "line 2: tls.client_ca: open"},
		"no PEM":    {good, goodKey, ", client_ca: " + filepath.Join(folder, "key.pem"), "line 2: tls.client_ca: " + filepath.Join(folder, "key.pem") + ": there is no certificate in it"},
		"no folder": {good, goodKey, ", client_ca: " + folder, "is not a regular file"},
		"no audit":  {good, goodKey, "}\naudit: {file: " + filepath.Join(folder, "none", "audit.log"), "line 3: audit.file: audit: open"},
	} {
		into(t, folder, c.cert, c.key)
		cfg, err := settings.Parse("firn.yaml", []byte("# hello\n"+tlsKeys(folder, c.more)))
		if err != nil {
			t.Fatal(err)
		}
		mem := memstore.New(nil)
		s, err := server.New(t.Context(), server.Config{Settings: cfg, Base: lease.Config{}, Store: mem, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.HasPrefix(err.Error(), "configuration firn.yaml: line ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
		if err == nil {
			_ = s.Close()
		}
		if all, err := mem.List(t.Context(), ""); err != nil || len(all) != 0 {
			t.Errorf("%s: a worker was taken first: %v, %v", what, all, err)
		}
	}
}

// What doctor says about certificates, the log says at start. A damaged block is refused: crypto/x509 alone skips it.
func TestFilesThatFewClientsAcceptAreInTheLogAndDamagedOnesRefused(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	into(t, folder, ca.pem, "")
	secret, err := x509.MarshalECPrivateKey(ca.key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
	authorities := filepath.Join(folder, "ca.pem")
	write(t, authorities, ca.pem)
	text := "namespaces: {orders: {}}\n" + tlsKeys(folder, ", client_ca: "+authorities)
	if v := serve(t, text); !strings.Contains(v.log.String(), "level=WARN") || !strings.Contains(v.log.String(), "has no name in its subjectAltName") {
		t.Errorf("%s", v.log)
	}
	der := []byte("no certificate")
	for name, damaged := range map[string]string{
		"block 2 is damaged or cut off":    ca.pem + ca.pem[:len(ca.pem)/2],
		"block 1 is damaged or cut off":    strings.Replace(ca.pem, "M", "!", 1) + ca.pem,
		"block 2: x509: malformed":         ca.pem + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		"block 2 is a TRUSTED CERTIFICATE": ca.pem + string(pem.EncodeToMemory(&pem.Block{Type: "TRUSTED CERTIFICATE", Bytes: ca.cert.Raw})),
	} {
		write(t, authorities, damaged)
		cfg, err := settings.Parse("firn.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.CheckFiles(cfg); err == nil || !strings.Contains(err.Error(), "tls.client_ca: "+authorities+": "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
