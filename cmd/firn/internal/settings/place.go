package settings

import (
	"fmt"
	"slices"
	"strings"
)

// A PlaceError is a mistake in a configuration with its place, as far as it is known: file, line and keys.
type PlaceError struct {
	Path string // of the file; empty if there is no file
	Line int    // 0 if it is not known
	Keys []string
	Err  error
}

// maxKey is longer than every key and name.
const maxKey = 100

func (e *PlaceError) Error() string {
	keys := make([]string, len(e.Keys))
	for i, key := range e.Keys {
		if keys[i] = key; len(key) > maxKey || strings.Contains(key, "://") { // a store's URL at a wrong place, with its password
			keys[i] = "…"
		}
	}
	text := fmt.Sprintf("%s: %v", strings.Join(keys, "."), e.Err)
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	if e.Path != "" {
		text = "configuration " + e.Path + ": " + text
	}
	return text
}

// Unwrap returns the mistake.
func (e *PlaceError) Unwrap() error { return e.Err }

// At returns err as a *[PlaceError] about the setting with these keys.
func (c Config) At(err error, keys ...string) error { return c.at(err, keys) }

func (c Config) at(err error, keys []string) *PlaceError {
	return &PlaceError{Path: c.path, Line: c.lines.find(keys), Keys: keys, Err: err}
}

// AtKeyFile is At for a file with veil keys. It names the first namespace that uses the file.
func (c Config) AtKeyFile(err error, file string) error {
	var names []string
	for name, ns := range c.Namespaces {
		if ns.Veil != nil && ns.Veil.KeyFile == file {
			names = append(names, name)
		}
	}
	return c.At(err, "namespaces", slices.Min(names), "veil", "key_file")
}
