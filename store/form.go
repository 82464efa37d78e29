package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/firn-id/firn"
)

// A Form is what programs make of the ids of a counter before they show them: texts of a template, veils. Two
// forms of one counter can repeat each other's ids. So the store keeps the form with the counter, and
// refuses a process with another with [ErrTaken]. The zero Form is unknown and agrees with each.
type Form struct {
	// Name of the form: up to 256 bytes of printable text.
	Name string `json:"form,omitempty"`
	// Keys may become more and never change: the fingerprint of a veil's key under each of its version bits. Up
	// to 256, of up to 64 printable bytes, as are their values.
	Keys map[string]string `json:"keys,omitempty"`
}

// Plain is the form of ids that are shown as they are, in any notation of numbers.
const Plain = "plain"

const (
	maxFormBytes = 256
	maxFormKeys  = 256
	maxKeyBytes  = 64 // of a Form's key, and of its value
)

// Check returns a *[firn.RangeError] for a form out of these bounds, or a *[firn.SyntaxError] for one with unprintable
// characters.
func (f Form) Check() error {
	errs := []error{checkText("form", f.Name, maxFormBytes)}
	if len(f.Keys) > maxFormKeys {
		errs = append(errs, firn.NewRangeError("number of a form's keys", int64(len(f.Keys)), 0, maxFormKeys, ""))
	}
	for key, value := range f.Keys {
		what := "key " + strconv.Quote(key) + " of a form"
		errs = append(errs, cmp.Or(checkText("key of a form", key, maxKeyBytes), checkText(what, value, maxKeyBytes)))
	}
	return errors.Join(errs...)
}

func checkText(what, text string, most int) error {
	switch {
	case len(text) > most:
		return firn.NewRangeError("length of the "+what, int64(len(text)), 0, int64(most), "in bytes")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return firn.NewSyntaxError(what, text, "printable text is allowed")
	}
	return nil
}

// With returns what both forms of a counter say. The error is a *[TakenError] if they differ.
func (f Form) With(counter string, other Form) (Form, error) {
	if f.Name != "" && other.Name != "" && f.Name != other.Name {
		return Form{}, &TakenError{Counter: counter, What: "form", Have: other.Name, Want: f.Name}
	}
	f.Name = cmp.Or(f.Name, other.Name)
	for key, have := range other.Keys {
		if want, ok := f.Keys[key]; ok && want != have {
			return Form{}, &TakenError{Counter: counter, What: "key", Key: key, Have: have, Want: want}
		}
	}
	all := map[string]string{}
	maps.Copy(all, f.Keys)
	maps.Copy(all, other.Keys)
	f.Keys = all
	return f, f.Check()
}

// ErrTaken is matched by *[TakenError]: the counter of that name is something else.
var ErrTaken = errors.New("name taken")

// A TakenError reports that the counter of a name is of another kind, or that its ids are shown in another form. No
// id was issued.
type TakenError struct {
	Counter    string // the name
	What       string // in what they differ: "kind", "form", or "key"
	Key        string // the version of a key that differs, see [Form.Keys]
	Have, Want string // what the store has, or this process had before, and what was asked for
}

func (e *TakenError) Error() string {
	what := e.What
	if e.Key != "" {
		what += " " + e.Key
	}
	return fmt.Sprintf("the counter %q has the %s %q, not %q, and ids could repeat: use another name, or the settings of those who use it",
		e.Counter, what, e.Have, e.Want)
}

// Is reports whether target is [ErrTaken].
func (e *TakenError) Is(target error) bool { return target == ErrTaken }

// ErrSetBack is matched by *[SetBackError]: the store has forgotten ids of a counter that must exist.
var ErrSetBack = errors.New("counter set back")

// A SetBackError reports that a counter that must exist is missing, or lies below what this process has had of it: the
// store was wiped or set back, or is another one. No id was issued, and nothing was written.
type SetBackError struct {
	Counter string  // the name
	Missing bool    // the store has no such counter
	Found   firn.ID // the last id used, according to the store; 0 if it is missing
	Known   firn.ID // the last id used, as far as this process knows; 0 if it has had none
}

func (e *SetBackError) Error() string {
	var what string
	least := ", and at least to that"
	switch {
	case e.Missing && e.Known == 0:
		what, least = fmt.Sprintf("the store has no counter %q, which must exist", e.Counter), ", or to 0 if it is new"
	case e.Missing:
		what = fmt.Sprintf("the store has lost the counter %q, of which this process has had ids up to %d", e.Counter, int64(e.Known))
	default:
		what = fmt.Sprintf("the counter %q was set back: the store says that %d was the last id used, and this process has had ids up to %d",
			e.Counter, int64(e.Found), int64(e.Known))
	}
	return what + ": find the greatest id that anybody received, and raise the counter to it" + least + " (firn raise; in Go: Raise)"
}

// Is reports whether target is [ErrSetBack].
func (e *SetBackError) Is(target error) bool { return target == ErrSetBack }
