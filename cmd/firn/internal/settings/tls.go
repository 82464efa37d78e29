package settings

import (
	"errors"

	"github.com/firn-id/firn"
)

// TLS says with what connections are encrypted.
type TLS struct {
	Cert string `yaml:"cert"` // file with the certificate and those between it and the authority, in PEM
	Key  string `yaml:"key"`  // file with its key, in PEM
	// ClientCA is a file with the certificates of the authorities that client
	// certificates are verified against.
	ClientCA string `yaml:"client_ca"`
	// ClientAuth is require (default with ClientCA) or optional.
	ClientAuth string `yaml:"client_auth"`
}

// RequireClient reports whether clients without a certificate are refused.
func (t TLS) RequireClient() bool { return t.ClientCA != "" && t.ClientAuth != "optional" }

func (t *TLS) check(report reporter) {
	switch {
	case t == nil:
		return
	case t.Cert == "" || t.Key == "":
		report(errors.New("both are needed: cert: FILE and key: FILE, in PEM"), "tls")
	case t.ClientAuth != "" && t.ClientCA == "":
		report(errors.New("certificates of clients are verified against client_ca: FILE, which is missing"), "tls", "client_auth")
	case t.ClientAuth != "" && t.ClientAuth != "require" && t.ClientAuth != "optional":
		report(firn.NewSyntaxError("client_auth", t.ClientAuth, "require and optional are allowed"), "tls", "client_auth")
	}
}
