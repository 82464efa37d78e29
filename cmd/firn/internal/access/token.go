package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// secretBytes is the length of new secrets: they cannot be guessed, so that a plain hash
// is enough to keep it by.
const secretBytes = 32

// prefix lets those who look for leaked secrets find them.
const prefix = "firn_"

// NewSecret returns a new secret of a token, of characters that need no escaping in a
// URL, a header or YAML.
func NewSecret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// Hash returns what the configuration keeps of a secret.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
