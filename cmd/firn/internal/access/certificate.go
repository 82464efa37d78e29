package access

import "strings"

// DeniedTLS records a handshake that failed because the client's certificate was refused. It ignores other errors.
func (l *Audit) DeniedTLS(from, why string) {
	if refusesCertificate(why) {
		l.Denied("", from, "tls", why)
	}
}

// refusesCertificate reports whether a TLS handshake failed because the client's certificate
// was refused or missing. That is a denial. A client that refuses the server's certificate, or
// breaks off the handshake, is not denied. It compares texts of crypto/tls because net/http
// only logs the error's text.
func refusesCertificate(why string) bool {
	return strings.HasPrefix(why, "tls: failed to verify certificate: ") ||
		strings.HasPrefix(why, "tls: failed to parse client certificate: ") ||
		strings.HasPrefix(why, "tls: invalid signature by the client certificate: ") ||
		strings.HasPrefix(why, "tls: client ") && strings.Contains(why, "certificate")
}
