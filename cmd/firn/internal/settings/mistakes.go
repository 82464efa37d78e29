package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn"
)

// Mistakes maps the key of a setting to its mistake; "" has those of several settings together.
type Mistakes map[string]error

// Join returns the mistakes as one error, or nil.
func (m Mistakes) Join() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(m)) {
		errs = append(errs, m[key])
	}
	return errors.Join(errs...)
}

// place adds errors of the library under the keys of settings: they name the field of a Config.
func (m Mistakes) place(k *Kind, err error) {
	if several, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		for _, each := range several.Unwrap() {
			m.place(k, each)
		}
		return
	}
	outside, isOutside := errors.AsType[*firn.RangeError](err)
	syntax, isSyntax := errors.AsType[*firn.SyntaxError](err)
	key := ""
	for _, s := range k.Settings() {
		if isOutside && outside.Field == s.config || isSyntax && syntax.Field == s.config {
			key = s.Key
		}
	}
	if m[key] == nil {
		m[key] = err
	}
}

// maxShown bounds the mistakes that are shown of a file. The others are most likely the same ones again.
const maxShown = 50

// found collects the mistakes of a file.
type found struct {
	cfg     *Config
	shown   []*PlaceError
	more    int             // that are not shown
	misread map[string]bool // the places of values that cannot be read, and those around them
}

// report adds a mistake, unless what is there could not be read: then the mistake follows from that.
func (f *found) report(err error, keys ...string) {
	switch {
	case err == nil || f.misread[strings.Join(keys, ".")]:
	case len(f.shown) < maxShown:
		f.shown = append(f.shown, f.cfg.at(err, keys))
	default:
		f.more++
	}
}

// unread reports a value that cannot be read.
func (f *found) unread(err error, keys ...string) {
	f.report(err, keys...)
	place := strings.Join(keys, ".")
	for i, c := range place {
		if c == '.' || c == '[' {
			f.misread[place[:i]] = true
		}
	}
	f.misread[place] = true
}

// join returns the mistakes in the order of their lines.
func (f *found) join() error {
	slices.SortStableFunc(f.shown, func(a, b *PlaceError) int { return a.Line - b.Line })
	var errs []error
	for _, m := range f.shown {
		errs = append(errs, m)
	}
	if f.more > 0 {
		errs = append(errs, fmt.Errorf("configuration %s: there are %d more mistakes: correct these first", f.cfg.path, f.more))
	}
	return errors.Join(errs...)
}

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
