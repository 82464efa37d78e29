package access

import "strings"

// RefusesCertificate reports whether a handshake of TLS failed, by what crypto/tls says of
// it, since the client's certificate was refused or there was none. That is a denial; what
// clients do not like about the server's, and handshakes that are broken off, are none. It
// goes by the text since that is all that net/http hands on.
func RefusesCertificate(why string) bool {
	return strings.HasPrefix(why, "tls: failed to verify certificate: ") ||
		strings.HasPrefix(why, "tls: failed to parse client certificate: ") ||
		strings.HasPrefix(why, "tls: invalid signature by the client certificate: ") ||
		strings.HasPrefix(why, "tls: client ") && strings.Contains(why, "certificate")
}
