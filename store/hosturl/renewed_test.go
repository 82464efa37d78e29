//go:build unix

package hosturl_test

import (
	"crypto/x509"
	"os"
	"testing"

	"github.com/firn-id/firn/store/hosturl"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A process may connect for years, while certificates last for months.
func TestRenewedCertificatesAreUsed(t *testing.T) {
	own, authority := t.TempDir(), t.TempDir()
	cert, key := servers.Certificate(t, own)
	ca, _ := servers.Certificate(t, authority)
	u := hosturl.Parse("x://h?tls_server_name=n&tls_ca="+ca+"&tls_cert="+cert+"&tls_key="+key, "1", "x")
	configure := u.TLS(true, "")
	if err := u.Err(); err != nil {
		t.Fatal(err)
	}
	in := func(file string) *x509.CertPool {
		pem, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		return pool
	}
	uses := func(trusted, shown *x509.CertPool) {
		t.Helper()
		config := configure()
		shows := x509.NewCertPool()
		shows.AddCert(config.Certificates[0].Leaf)
		if !config.RootCAs.Equal(trusted) || !shows.Equal(shown) || config.ServerName != "n" {
			t.Errorf("trusts the same %t, shows the same %t, as %q", config.RootCAs.Equal(trusted), shows.Equal(shown), config.ServerName)
		}
	}
	uses(in(ca), in(cert))
	servers.Certificate(t, own)
	uses(in(ca), in(cert))
	servers.Certificate(t, authority)
	uses(in(ca), in(cert))
	trusted, shown := in(ca), in(cert)
	for _, file := range []string{ca, cert} { // they are being written
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uses(trusted, shown)
	servers.Certificate(t, own)
	uses(trusted, in(cert))
}
