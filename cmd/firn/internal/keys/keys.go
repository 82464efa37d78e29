// Package keys reads the keys that ids are veiled with from where they may stand: a
// file or the environment, and never a command line or a configuration.
package keys

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/firn-id/firn/veil"
)

// ErrNone says that there is neither a file nor a variable with keys.
var ErrNone = errors.New("no key")

// Read reads keys from a file if one is named, else from an environment variable.
// Errors name the place and nothing of what stands there: [ErrNone] for no file and
// a variable that is not set, and those of [veil.ParseKeys].
func Read(file, variable string) ([]veil.Key, error) {
	text, place := os.Getenv(variable), "environment variable "+variable
	switch {
	case file != "":
		b, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("key file: %w", err)
		}
		text, place = string(b), "key file "+file
	case text == "":
		return nil, fmt.Errorf("%w in the %s", ErrNone, place)
	}
	all, err := veil.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	return all, nil
}

// maxBytes is room for hundreds of keys. What is larger is another file.
const maxBytes = 64 << 10

func read(file string) (text []byte, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && len(text) > maxBytes {
		return nil, fmt.Errorf("%s is larger than %d bytes: it is no file of keys", file, maxBytes)
	}
	return text, err
}
