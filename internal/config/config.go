// Package config fills in defaults of settings and checks them. The logs that it fills in hold no caller up.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"

	"github.com/firn-id/firn"
)

// Fill sets the defaults of unset fields: the system's time, math/rand/v2, a log that discards all. Another log is
// replaced by one that writes to it, and never makes its caller wait for long.
func Fill(time *firn.TimeSource, random *func() uint64, log **slog.Logger) {
	*time = cmp.Or(*time, firn.SystemTime())
	*log = unblocked(cmp.Or(*log, slog.New(slog.DiscardHandler)))
	if *random == nil {
		*random = rand.Uint64
	}
}

// Mistake returns the error for a field of a package's Config. The reason continues the field's name,
// such as "is required".
func Mistake(pkg, field, reason string) error {
	return &firn.SyntaxError{Field: field, Reason: pkg + ": Config." + field + " " + reason}
}

// Required returns the error for a field that must have a value, and has none, or a nil pointer or function: that of a call whose error
// was ignored.
func Required(pkg, field string, value any) error {
	if reason := missing(value); reason != "" {
		return Mistake(pkg, field, reason)
	}
	return nil
}

// RequiredArgument is [Required] for an argument of a function, with its name.
func RequiredArgument(pkg, name string, value any) error {
	if reason := missing(value); reason != "" {
		return &firn.SyntaxError{Reason: pkg + ": " + name + " " + reason}
	}
	return nil
}

// missing says what is wrong with a value that must be there; "" if nothing is.
func missing(value any) string {
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
		return "is required"
	case (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil():
		return fmt.Sprintf("is a nil %v: look at the error of the call that returned it", v.Type())
	}
	return ""
}

// In returns err, a *[firn.RangeError] or *[firn.SyntaxError], with the name of the field of a Config.
func In(field string, err error) error {
	var (
		outside *firn.RangeError
		syntax  *firn.SyntaxError
	)
	switch {
	case errors.As(err, &outside):
		outside.Field = field
	case errors.As(err, &syntax):
		syntax.Field = field
	}
	return err
}

// Of returns err, mistakes in a Config of type C, each with the package and the field, as those of [Mistake] have
// them. Only what opens something says so: a program that asks Config.Check has its own names for the fields.
func Of[C any](pkg string, err error) error {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		var errs []error
		for _, each := range several.Unwrap() {
			errs = append(errs, Of[C](pkg, each))
		}
		return errors.Join(errs...)
	}
	var (
		outside *firn.RangeError
		syntax  *firn.SyntaxError
		field   string
	)
	switch {
	case errors.As(err, &outside):
		field = outside.Field
	case errors.As(err, &syntax) && syntax.What != "": // a Mistake has both
		field = syntax.Field
	}
	if field == "" {
		return err
	}
	return fmt.Errorf("%s: Config.%s: %w", pkg, path(reflect.TypeFor[C](), field), err)
}

// path returns where a field of a Config is, or of a struct in it: Generator.Ahead.
func path(cfg reflect.Type, field string) string {
	if _, direct := cfg.FieldByName(field); !direct {
		for _, part := range reflect.VisibleFields(cfg) {
			if part.Type.Kind() == reflect.Struct {
				if _, ok := part.Type.FieldByName(field); ok {
					return part.Name + "." + field
				}
			}
		}
	}
	return field
}

// Check returns a *[firn.RangeError] unless value is from least to most. Where says what sets these
// limits; it may be empty.
func Check[T cmp.Ordered](what string, value, least, most T, where string) error {
	if least <= value && value <= most {
		return nil
	}
	return &firn.RangeError{What: what, Value: fmt.Sprint(value), Min: fmt.Sprint(least), Max: fmt.Sprint(most), Where: where}
}
