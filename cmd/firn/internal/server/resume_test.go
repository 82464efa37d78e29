package server_test

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// A resumed session is a new connection: its certificate is verified again.
func TestARemovedAuthorityIsNotTrustedByResumedSessions(t *testing.T) {
	for _, auth := range []string{"require", "optional"} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			ca, other, folder := newAuthority(t, "ca"), newAuthority(t, "other"), t.TempDir()
			cert, key := ca.valid("server", 7)
			into(t, folder, cert, key)
			authorities := filepath.Join(folder, "ca.pem")
			write(t, authorities, ca.pem+other.pem)
			v := serve(t, "namespaces: {orders: {}}\n"+tlsKeys(folder, ", client_ca: "+authorities+", client_auth: "+auth)+
				"tokens:\n  - {name: shop, certificate: shop.example.org, namespaces: [orders]}\n"+
				"  - {name: pay, sha256: "+access.Hash("p")+", namespaces: ['*']}\n")
			url := "https://" + v.addr + "/v1/ids/orders"
			c := ca.client(other.valid("shop.example.org", 8))
			transport, ok := c.Transport.(*http.Transport)
			if !ok {
				t.Fatal("no transport")
			}
			transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(8)
			transport.TLSClientConfig.MaxVersion = version
			for range 2 {
				if status, body := get(t, c, url, ""); status != 200 {
					t.Fatalf("%s: %d %s", auth, status, body)
				}
				c.CloseIdleConnections()
			}
			write(t, authorities, ca.pem)
			v.turn()
			v.turn()
			v.log.has(t, "in force: certificates")
			if status, body, err := try(t, c, url, ""); status == 200 {
				t.Errorf("%s, %s: %d %s %v", auth, tls.VersionName(version), status, body, err)
			}
			v.stop()
		}
	}
}
