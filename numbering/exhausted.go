package numbering

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/sequence"
)

// An exhaustedError states in terms of the template what the counter reports of a block.
type exhaustedError struct {
	text  string
	cause error // matches sequence.ErrExhausted
}

func (e *exhaustedError) Error() string   { return ErrExhausted.Error() + ": " + e.text }
func (e *exhaustedError) Unwrap() []error { return []error{ErrExhausted, e.cause} }

// exhausted returns an error that the period has too few numbers left, and names
// what helps. The counter does not know templates, so its own advice would be wrong.
func (f *Format) exhausted(cause error) error {
	has := fmt.Sprintf("%q has %d numbers in %s", f.cfg.Template, f.PerPeriod(), f.period.each())
	var of *sequence.ExhaustedError
	if !errors.As(cause, &of) || of.Block == 0 { // the counter itself is exhausted
		return fmt.Errorf("%w: %s: %w", ErrExhausted, has, cause)
	}
	way := fmt.Sprintf("use a wider {n:…} than {n:%d} under another name", f.width)
	if f.width == maxWidth {
		way = "use another template under another name"
	}
	if f.period != ever {
		way = fmt.Sprintf("wait for the next %s, or %s", f.period, way)
	}
	if of.Left > 0 {
		way = "ask for fewer, or " + way
	}
	return &exhaustedError{fmt.Sprintf("%s: sequence %q has %d of them left, not %d: %s", has, of.Name, of.Left, of.Want, way), cause}
}
