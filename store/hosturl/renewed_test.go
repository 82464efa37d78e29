package hosturl_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

func TestARenewedCertificateIsShown(t *testing.T) {
	cert, key := t.TempDir()+"/cert.pem", t.TempDir()+"/key.pem"
	pair(t, cert, key, 1)
	u := hosturl.Parse("x://h?tls_cert="+cert+"&tls_key="+key, "1", "x")
	config := u.TLS(true, "")
	if err := u.Err(); err != nil {
		t.Fatal(err)
	}
	shows := func(want int64) {
		t.Helper()
		shown, err := config.Clone().GetClientCertificate(nil)
		if err != nil || shown.Leaf.SerialNumber.Int64() != want {
			t.Errorf("it shows %v, %v, want %d", shown.Leaf.SerialNumber, err, want)
		}
	}
	shows(1)
	pair(t, cert, key, 2)
	shows(2)
	if err := os.WriteFile(cert, nil, 0o600); err != nil { // it is being written
		t.Fatal(err)
	}
	shows(2)
	pair(t, cert, key, 3)
	shows(3)
}
