package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
)

// withoutMax has errors about counters that are used up give advice that the command
// can follow: it has no flag for Config.Max, which is the greatest there is.
func withoutMax(err error) error {
	var (
		fetched *segment.ExhaustedError
		taken   *sequence.ExhaustedError
	)
	switch {
	case errors.As(err, &fetched):
		return rephrase(err, fetched.Error(), fmt.Sprintf("segment: ids of %q are exhausted: the next would be %d, %d is the last allowed; use another name",
			fetched.Name, fetched.Next, int64(fetched.Max)))
	case errors.As(err, &taken):
		advice := "ask for fewer, or use another name"
		if taken.Left == 0 {
			advice = "use another name"
		}
		return rephrase(err, taken.Error(), fmt.Sprintf("sequence %q has %d ids left up to %d, not %d: %s",
			taken.Name, taken.Left, int64(taken.Max), taken.Want, advice))
	default:
		return err
	}
}

// rephrase returns err with part of its text replaced.
func rephrase(err error, part, by string) error {
	return rephrased{err, strings.Replace(err.Error(), part, by, 1)}
}

type rephrased struct {
	error
	text string
}

func (r rephrased) Error() string { return r.text }
func (r rephrased) Unwrap() error { return r.error }
