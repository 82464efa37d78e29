package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// Token is one entry of tokens: a caller, known by a secret or a certificate.
type Token struct {
	Name        string   `yaml:"name" required:"true" unset:"required" help:"the token's name, in logs and errors"`
	SHA256      string   `yaml:"sha256" help:"SHA-256 of the secret, in hex. firn token creates a secret of 32 random bytes and prints it once; firn token --hash reads an existing one"`
	Certificate string   `yaml:"certificate" help:"a common name, DNS name or URI of a client certificate that was verified against tls.client_ca. A client with that certificate needs no secret. If several entries match, the first in the file counts"`
	Namespaces  []string `yaml:"namespaces" example:"[orders, \"user-*\"]" help:"names, and patterns in which * stands for zero or more characters"`
	Admin       bool     `yaml:"admin" default:"false" help:"allows the pools and the metrics; allows ids only in the token's namespaces and those in anonymous"`
	Unveil      bool     `yaml:"unveil" default:"false" help:"allows reading back the ids of veiled namespaces that the token may use: [security.md](security.md#veiled-ids)"`
	Rate        string   `yaml:"rate" unset:"no limit" example:"1000/s" help:"ids of the token, over all namespaces: [limits.md](limits.md#rates)"`
	Leases      []string `yaml:"leases" unset:"none" example:"[default]" help:"pools, by name or pattern, of which the token may lease workers, to make ids itself: [leases.md](leases.md)"`
	MaxLeases   *int     `yaml:"max_leases" default:"64" allowed:"1 to 65536" help:"how many workers of a pool the token may lease from one server"`
}

// Audit configures the audit log.
type Audit struct {
	File string `yaml:"file" unset:"the log" help:"a file of its own, as JSON lines"`
}

// reporter receives a mistake and the keys that lead to it.
type reporter func(err error, keys ...string)

// Access returns the part of the checked configuration that package access needs.
func (c Config) Access() access.Config {
	out := access.Config{Anonymous: c.Anonymous, OpenMetrics: c.AnonymousMetrics}
	for _, t := range c.Tokens {
		token := access.Token{Name: t.Name, Certificate: t.Certificate, Namespaces: t.Namespaces, Admin: t.Admin, Unveil: t.Unveil}
		token.Leases, token.MaxLeases = t.Leases, given(t.MaxLeases, access.DefaultLeases)
		token.SHA256, _ = t.sum()         // checked
		token.Rate, _ = parseRate(t.Rate) // checked
		out.Tokens = append(out.Tokens, token)
	}
	return out
}

func parseRate(text string) (access.Rate, error) {
	if text == "" {
		return access.Rate{}, nil
	}
	return access.ParseRate(text)
}

// sum returns the hash of the secret; nil without one.
func (t Token) sum() (*[sha256.Size]byte, error) {
	if t.SHA256 == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(t.SHA256)
	if err != nil || len(b) != sha256.Size {
		// The value may be the secret itself, so the error does not repeat it.
		return nil, errors.New("this is not a SHA-256: write the 64 hex digits that firn token prints, or firn token --hash for a secret that you have")
	}
	sum := [sha256.Size]byte(b)
	if sum == sha256.Sum256(nil) {
		return nil, errors.New("this is the SHA-256 of nothing: the secret was empty when it was made")
	}
	return &sum, nil
}

// Check returns the mistakes of a token outside of a configuration. Each begins with its key.
func (t Token) Check() error {
	var errs []error
	Config{Tokens: []Token{t}}.checkAccess(func(err error, keys ...string) {
		if err != nil && len(keys) > 1 {
			err = fmt.Errorf("%s: %w", strings.Join(keys[1:], "."), err)
		}
		if err != nil {
			errs = append(errs, err)
		}
	})
	return errors.Join(errs...)
}

// checkAccess reports the mistakes in tokens and anonymous.
func (c Config) checkAccess(report reporter) {
	for i, pattern := range c.Anonymous {
		report(access.CheckPattern(pattern), fmt.Sprintf("anonymous[%d]", i))
	}
	names, sums, certificates := map[string]bool{}, map[[sha256.Size]byte]string{}, map[string]string{}
	for i, t := range c.Tokens {
		at := fmt.Sprintf("tokens[%d]", i)
		report(checkTokenName(t.Name), at, "name")
		if t.Name != "" && names[t.Name] {
			report(fmt.Errorf("there is another token of the name %q", t.Name), at, "name")
		}
		names[t.Name] = true
		sum, err := t.sum()
		report(err, at, "sha256")
		if sum != nil {
			if other := sums[*sum]; other != "" {
				report(fmt.Errorf("this is the secret of token %s too: one secret, one token", other), at, "sha256")
			}
			sums[*sum] = t.Name
		}
		if t.Certificate != "" {
			if other := certificates[t.Certificate]; other != "" {
				report(fmt.Errorf("%q stands for token %s too", t.Certificate, other), at, "certificate")
			}
			certificates[t.Certificate] = t.Name
			if c.TLS == nil || c.TLS.ClientCA == "" {
				report(errors.New("certificates of clients are looked at only with tls.client_ca"), at, "certificate")
			}
		}
		if t.SHA256 == "" && t.Certificate == "" {
			report(errors.New("a token has sha256 (firn token makes one), or certificate"), at)
		}
		if len(t.Namespaces) == 0 && len(t.Leases) == 0 && !t.Admin {
			report(errors.New("a token needs namespaces: write namespaces: [\"*\"] for all of them, or admin: true for pools and metrics"), at)
		}
		for j, pattern := range t.Namespaces {
			report(access.CheckPattern(pattern), at, fmt.Sprintf("namespaces[%d]", j))
		}
		for j, pattern := range t.Leases {
			report(access.CheckPattern(pattern), at, fmt.Sprintf("leases[%d]", j))
		}
		reportOutside(t, func(err error, key string) { report(err, at, key) })
		_, err = parseRate(t.Rate)
		report(err, at, "rate")
	}
}

// checkTokenName refuses names that are not safe in a log, and those that the log uses for callers without a token.
func checkTokenName(name string) error {
	err := CheckName(name)
	if syntax, ok := errors.AsType[*firn.SyntaxError](err); ok {
		syntax.What = "token name"
	}
	if err == nil && (name == "anonymous" || name == "local") {
		err = firn.NewSyntaxError("token name", name, "it is what callers without a token are called")
	}
	return err
}
