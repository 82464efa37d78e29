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

// ErrKey is matched by every error about keys: text that is no key, a wrong
// length, versions that clash. No such error repeats any of the key.
var ErrKey = errors.New("unusable key")

// maxMistakes bounds how many lines an error names.
const maxMistakes = 10

// maxVersion is the greatest version of a key.
const maxVersion = 999_999_999

// A Key is an AES key with the version it is known by. It prints and logs as its
// version and length; there is no way to get the key itself out of it.
// A Key is immutable and may be used concurrently. The zero Key is none.
type Key struct {
	version int
	bits    int // 0 in the zero Key
	// A function, into which fmt does not look. Methods are no guard: fmt cannot
	// call them on a Key in an unexported field of what somebody prints, and it
	// follows even a pointer when the verb is wrong for it.
	material func() []byte
}

// NewKey returns the key of 16, 24 or 32 bytes (AES-128, AES-192, AES-256),
// which it copies, with a version from 0 to 999,999,999. Errors match [ErrKey].
// Keys have to be random: take them from crypto/rand or
// "openssl rand -hex 32", never from a password.
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

// ParseKeys reads keys from the content of a file or an environment variable,
// and returns them as they stand there. Each line holds one:
//
//	# since 2026-11
//	2:3f1d…  (VERSION:KEY)
//	1:9ab0…
//
// VERSION is a whole number from 0 to 999,999,999, KEY the 16, 24 or 32 bytes
// in hex, in either case, or base64, either alphabet, padded or not. What
// consists of hex digits only is read as hex. Empty lines are skipped, and so
// is all from a # to the end of a line, and a byte order mark at the beginning. The
// error matches [ErrKey] and names the lines that are wrong, the first ten of them; it
// repeats nothing of what stands there but a version.
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
			err = keyError("version %d stands in line %d already", key.version, earlier)
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
		errs = append(errs, keyError("there is none: a line VERSION:HEX is wanted, such as 1: and 64 hex digits"))
	}
	if mistakes > maxMistakes {
		errs = append(errs, keyError("and %d more lines: it is no file of keys", mistakes-maxMistakes))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("veil: %w", errors.Join(errs...))
	}
	return keys, nil
}

// parseKey reads VERSION:KEY. What is not clearly a version may be the key,
// put in the wrong place, so errors say where they are and not what is there.
func parseKey(line string) (Key, error) {
	digits, text, found := strings.Cut(line, ":")
	if !found {
		return Key{}, keyError("it has no colon: VERSION:HEX is wanted")
	}
	digits, text = strings.TrimSpace(digits), strings.TrimSpace(text)
	version, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || version > maxVersion || len(digits) > len("999999999") {
		return Key{}, keyError("before the colon stands no version: a whole number from 0 to %d is wanted", maxVersion)
	}
	key, err := decodeKey(text)
	if err != nil {
		return Key{}, keyError("the key of version %d %w", version, err)
	}
	return newKey(int(version), key)
}

// decodeKey returns the bytes of a key in hex or base64; its error goes on
// from "the key of version 2".
func decodeKey(text string) ([]byte, error) {
	const wanted = "32, 48 or 64 hex digits (AES-128, 192, 256) are wanted, or the same bytes in base64"
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

// String returns the version and the kind of key, such as "key 2 (AES-256)",
// and nothing of the key itself.
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
	return fmt.Errorf("%w: "+format, append([]any{ErrKey}, args...)...)
}
