package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// secretBytes is the length of new secrets. Such secrets cannot be guessed, so the
// configuration can keep a plain hash.
const secretBytes = 32

// prefix lets scanners for leaked secrets find them.
const prefix = "firn_"

// NewSecret returns a new secret of a token. Its characters need no escaping in a
// URL, a header or YAML.
func NewSecret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// Hash returns the hash of a secret, as in the configuration.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
