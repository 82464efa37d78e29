package veil

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// errKey begins every error about keys: malformed text, a wrong length, versions that
// conflict. No such error contains any part of a key.
var errKey = errors.New("unusable key")

// maxMistakes bounds how many lines an error names.
const maxMistakes = 10

// maxVersion is the greatest version of a key.
const maxVersion = 999_999_999

// A Key is an AES key with a version. It prints and logs as its version and length; the
// key itself cannot be read from it. A Key is immutable and may be used concurrently. The
// zero Key is not valid.
type Key struct {
	version int
	bits    int // 0 in the zero Key
	// The key is in a function, since fmt does not print the contents of functions. A
	// String method does not suffice: fmt cannot call it on a Key in an unexported field,
	// and with a wrong verb fmt even follows pointers.
	material func() []byte
}

// NewKey returns a key with 16, 24 or 32 bytes (AES-128, AES-192, AES-256), which it
// copies, and a version from 0 to 999,999,999. Keys must be random:
// make them with crypto/rand or "openssl rand -hex 32", never from a password.
func NewKey(version int, key []byte) (Key, error) {
	k, err := newKey(version, key)
	if err != nil {
		return Key{}, fmt.Errorf("veil: %w", err)
	}
	return k, nil
}

func newKey(version int, key []byte) (Key, error) {
	if version < 0 || version > maxVersion {
		return Key{}, keyError("version %d is out of range: 0 to %d are allowed", version, maxVersion)
	}
	switch len(key) {
	case 16, 24, 32:
		key = bytes.Clone(key)
		return Key{version: version, bits: 8 * len(key), material: func() []byte { return key }}, nil
	}
	return Key{}, keyError("the key of version %d has %d bytes: 16, 24 and 32 are allowed", version, len(key))
}

// ParseKeys reads keys from the content of a file or an environment variable and returns
// them in the same order. Each line has one key:
//
//	# since 2026-11
//	2:3f1d…  (VERSION:KEY)
//	1:9ab0…
//
// VERSION is a whole number from 0 to 999,999,999. KEY is the 16, 24 or 32 bytes in hex (in
// either case) or base64 (either alphabet, padded or not). A KEY of hex digits only is
// read as hex. Empty lines, comments from # to the end of a line, and a byte order
// mark at the beginning are skipped. The error names the first ten
// wrong lines; it repeats only versions, never keys.
func ParseKeys(text string) ([]Key, error) {
	var (
		keys []Key
		errs []error
	)
	seen := map[int]int{} // line by version
	number, mistakes := 0, 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		number++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, err := parseKey(line)
		if earlier := seen[key.version]; err == nil && earlier > 0 {
			err = keyError("version %d is already in line %d", key.version, earlier)
		}
		if err != nil {
			if mistakes++; mistakes <= maxMistakes {
				errs = append(errs, fmt.Errorf("line %d: %w", number, err))
			}
			continue
		}
		seen[key.version] = number
		keys = append(keys, key)
	}
	if len(keys) == 0 && len(errs) == 0 {
		errs = append(errs, keyError("there is no key: add a line VERSION:HEX, such as 1: and 64 hex digits"))
	}
	if mistakes > maxMistakes {
		errs = append(errs, keyError("and %d more lines: this is not a file of keys", mistakes-maxMistakes))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("veil: %w", errors.Join(errs...))
	}
	return keys, nil
}

// parseKey reads VERSION:KEY. A text in place of the version may be a misplaced key, so
// errors name the position, not the text.
func parseKey(line string) (Key, error) {
	digits, text, found := strings.Cut(line, ":")
	if !found {
		return Key{}, keyError("it has no colon: write VERSION:HEX")
	}
	digits, text = strings.TrimSpace(digits), strings.TrimSpace(text)
	version, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || version > maxVersion || len(digits) > len("999999999") {
		return Key{}, keyError("there is no version before the colon: write a whole number from 0 to %d", maxVersion)
	}
	key, err := decodeKey(text)
	if err != nil {
		return Key{}, keyError("the key of version %d %w", version, err)
	}
	return newKey(int(version), key)
}

// decodeKey returns the bytes of a key in hex or base64. Its error continues "the key of
// version 2".
func decodeKey(text string) ([]byte, error) {
	const wanted = "write 32, 48 or 64 hex digits (AES-128, 192, 256), or the same bytes in base64"
	if text == "" {
		return nil, errors.New("is missing: " + wanted)
	}
	if strings.Trim(text, "0123456789abcdefABCDEF") == "" {
		key, err := hex.DecodeString(text)
		if n := len(key); err != nil || n != 16 && n != 24 && n != 32 {
			return nil, fmt.Errorf("has %d hex digits: %s", len(text), wanted)
		}
		return key, nil
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	key, err := encoding.Strict().DecodeString(strings.TrimRight(text, "="))
	var corrupt base64.CorruptInputError
	switch {
	case errors.As(err, &corrupt):
		return nil, fmt.Errorf("is neither hex nor base64, see its character %d: %s", int64(corrupt)+1, wanted)
	case err != nil:
		return nil, errors.New("is neither hex nor base64: " + wanted)
	}
	if n := len(key); n != 16 && n != 24 && n != 32 {
		return nil, fmt.Errorf("is base64 of %d bytes: %s", n, wanted)
	}
	return key, nil
}

// String returns the version and the length of the key, such as "key 2 (AES-256)", and no
// part of the key itself.
func (k Key) String() string {
	if k.bits == 0 {
		return "no key"
	}
	return fmt.Sprintf("key %d (AES-%d)", k.version, k.bits)
}

// GoString implements [fmt.GoStringer]: what String returns, for %#v.
func (k Key) GoString() string { return "veil.Key(" + k.String() + ")" }

// LogValue implements [slog.LogValuer]: what String returns.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

func keyError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errKey}, args...)...)
}
