package settings

import (
	"errors"
	"maps"
	"slices"

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
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		for _, each := range several.Unwrap() {
			m.place(k, each)
		}
		return
	}
	var (
		outside *firn.RangeError
		syntax  *firn.SyntaxError
		key     string
	)
	for _, s := range k.Settings() {
		if errors.As(err, &outside) && outside.Field == s.config || errors.As(err, &syntax) && syntax.Field == s.config {
			key = s.Key
		}
	}
	if m[key] == nil {
		m[key] = err
	}
}
