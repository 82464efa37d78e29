package storeurl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// certified writes a self-signed certificate for 127.0.0.1, and its key, into a folder of the user of a server.
func certified(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = dir+"/cert.pem", dir+"/key.pem"
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: encoded}} {
		err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600)
		if owner, unknown := user.Lookup(name); err == nil && unknown == nil && os.Getuid() == 0 {
			uid, _ := strconv.Atoi(owner.Uid)
			err = os.Chown(file, uid, -1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Otherwise no connection succeeds once the old authority's certificate is gone, until the process restarts.
func TestARenewedAuthorityIsTrusted(t *testing.T) {
	t.Parallel()
	for kind, is := range map[string]struct {
		start  func(t *testing.T, args ...string) database
		user   string
		args   []string // with CERT and KEY
		tls    string   // with CERT
		reload string
	}{
		"mariadb":  {mariadb, "mysql", []string{"--ssl-cert=CERT", "--ssl-key=KEY"}, "?tls=true&tls_ca=CERT", "FLUSH SSL"},
		"postgres": {postgres, "postgres", []string{"-c", "ssl=on", "-c", "ssl_cert_file=CERT", "-c", "ssl_key_file=KEY"}, "?sslmode=verify-full&sslrootcert=CERT", "SELECT pg_reload_conf()"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "firn-tls") // t.TempDir is not readable for the server's user
			if err == nil {
				t.Cleanup(func() { _ = os.RemoveAll(dir) })
				err = os.Chmod(dir, 0o755) //nolint:gosec // the server's user reads it
			}
			if err != nil {
				t.Fatal(err)
			}
			cert, key := certified(t, dir, is.user)
			named := strings.NewReplacer("CERT", cert, "KEY", key)
			var args []string
			for _, arg := range is.args {
				args = append(args, named.Replace(arg))
			}
			d := is.start(t, args...)
			d.fresh(t, "shop")
			s := opened(t, d.url(d.admin, "shop")+named.Replace(is.tls))
			read := func() error {
				if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
					return err
				}
				return nil
			}
			if err := read(); err != nil {
				t.Fatal(err)
			}
			certified(t, dir, is.user)
			d.raw(t, "shop", is.reload)
			for begun := time.Now(); time.Since(begun) < 2*backend.ConnectionLife; time.Sleep(50 * time.Millisecond) {
				if err := read(); err != nil {
					t.Fatalf("after %v: %v", time.Since(begun), err)
				}
			}
		})
	}
}
