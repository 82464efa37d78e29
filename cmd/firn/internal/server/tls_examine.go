package server

import (
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/firn-id/firn/store"
)

// forServers returns an error if a certificate says that it is not for servers. Every client refuses such a one.
func forServers(file string, leaf *x509.Certificate) error {
	if len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) == 0 || slices.ContainsFunc(leaf.ExtKeyUsage, func(u x509.ExtKeyUsage) bool {
		return u == x509.ExtKeyUsageServerAuth || u == x509.ExtKeyUsageAny
	}) {
		return nil
	}
	return fmt.Errorf("%s is not for servers, so clients refuse it: its extendedKeyUsage needs serverAuth", file)
}

// doubtful is a finding about a file of certificates.
func doubtful(advice, says string, args ...any) store.Finding {
	return store.Finding{Subject: "tls", Verdict: store.Doubtful, Says: fmt.Sprintf(says, args...), Advice: advice}
}

// examineChain returns why some clients may refuse a server with these certificates, of which the first is its own.
func examineChain(file string, chain []*x509.Certificate, now time.Time) (found []store.Finding) {
	leaf, last := chain[0], chain[len(chain)-1]
	if len(leaf.DNSNames)+len(leaf.IPAddresses) == 0 {
		found = append(found, doubtful("issue one whose subjectAltName has the names and addresses that clients use",
			"%s has no name in its subjectAltName: most clients refuse it", file))
	}
	if key, ok := leaf.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < 2048 {
		found = append(found, doubtful("issue one with a key of 2048 bits or more, or an ECDSA key",
			"the RSA key of %s has %d bits: many clients refuse it", file, key.N.BitLen()))
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(last)
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now}); err != nil {
		found = append(found, doubtful("put the certificate of its issuer behind the first one, then that of the issuer's issuer, and so on",
			"the certificates of %s do not lead from the first to the last (%v): clients may refuse it", file, err))
	}
	return found
}

// examineAuthorities returns which certificates in client_ca are of little use.
func examineAuthorities(file string, all []*x509.Certificate, now time.Time) (found []store.Finding) {
	for i, c := range all {
		if c.Version >= 3 && !c.IsCA {
			found = append(found, doubtful("put the certificate of its issuer in its place, unless you mean that",
				"certificate %d of %s, of %q, is not an authority's: only a client with this very certificate is let in", i+1, file, c.Subject.CommonName))
		}
		if now.After(c.NotAfter) {
			found = append(found, doubtful("replace it, or remove it",
				"certificate %d of %s, of %q, ended on %s: the certificates that it issued are refused", i+1, file, c.Subject.CommonName, c.NotAfter.UTC().Format(time.RFC3339)))
		}
	}
	return found
}
