package settings

import (
	"errors"

	"github.com/firn-id/firn"
)

// TLS configures encryption.
type TLS struct {
	Cert string `yaml:"cert" required:"true" unset:"required" help:"file with the certificate and those between it and the authority, in PEM; a relative path is one from the working directory, here and below"`
	Key  string `yaml:"key" required:"true" unset:"required" help:"file with its key, in PEM"`

	ClientCA   string `yaml:"client_ca" unset:"clients need no certificate" help:"file with the certificates of the authorities that clients' certificates are verified against"`
	ClientAuth string `yaml:"client_auth" unset:"require, with client_ca" allowed:"require, optional" help:"whether clients without a certificate are refused"`
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
