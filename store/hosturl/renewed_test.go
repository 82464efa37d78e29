package hosturl_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/firn-id/firn/store/hosturl"
)

// pair writes a certificate with a serial number, and its key.
func pair(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A process may connect for years, while certificates last for months.
func TestRenewedCertificatesAreUsed(t *testing.T) {
	dir := t.TempDir()
	ca, cert, key := dir+"/ca.pem", dir+"/cert.pem", dir+"/key.pem"
	pair(t, ca, dir+"/other.pem", 1)
	pair(t, cert, key, 1)
	u := hosturl.Parse("x://h?tls_server_name=n&tls_ca="+ca+"&tls_cert="+cert+"&tls_key="+key, "1", "x")
	configure := u.TLS(true, "")
	if err := u.Err(); err != nil {
		t.Fatal(err)
	}
	trusted := func() *x509.CertPool {
		pem, err := os.ReadFile(ca)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		return pool
	}
	uses := func(trusted *x509.CertPool, shown int64) {
		t.Helper()
		config := configure()
		// A server may accept more than the authorities that it names.
		shows, err := config.GetClientCertificate(&tls.CertificateRequestInfo{AcceptableCAs: [][]byte{[]byte("another")}})
		if err != nil {
			t.Fatal(err)
		}
		if is := shows.Leaf.SerialNumber.Int64(); is != shown {
			t.Errorf("it shows %d, want %d", is, shown)
		}
		if !config.RootCAs.Equal(trusted) {
			t.Error("it trusts others")
		}
		if config.ServerName != "n" {
			t.Error(config.ServerName)
		}
	}
	first := trusted()
	uses(first, 1)
	pair(t, cert, key, 2)
	uses(first, 2)
	pair(t, ca, dir+"/other.pem", 3)
	next := trusted()
	uses(next, 2)
	for _, file := range []string{ca, cert} { // they are being written
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uses(next, 2)
	pair(t, cert, key, 4)
	uses(next, 4)
}
