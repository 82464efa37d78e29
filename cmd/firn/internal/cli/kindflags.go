package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// someHave are flags that only some kinds have.
type someHave struct{ kinds, flags []string }

// flagsOf lists them for next.
var flagsOf = []someHave{
	{[]string{"serial"}, []string{"width", "check"}},
	{[]string{"serial", "number"}, []string{"zone"}},
	{[]string{"snowflake", "segment", "sequence"}, []string{"format"}},
	{[]string{"snowflake", "serial"}, []string{
		"pool", "layout", "unit", "epoch", "worker", "worker-ahead", "datacenter", "clock", "rollback", "ahead", "start", "window", "strict",
	}},
	{[]string{"snowflake", "serial", "segment", "sequence", "number"}, []string{"store"}},
	{[]string{"segment", "sequence", "number"}, []string{"name"}},
	{[]string{"segment", "sequence"}, []string{"first"}},
	{[]string{"segment"}, []string{"step", "stride", "offset"}},
	{[]string{"number"}, []string{"template"}},
}

// unused refuses flags that say nothing about the kind: a typing error, or a
// misunderstanding.
func (f *kindFlags) unused(cmd *cobra.Command, k kind) error {
	errs := misplaced(cmd, flagsOf, k.name)
	if k.name == "number" && given(cmd.Flags(), "prefix") {
		errs = append(errs, errors.New("--prefix: write it into the --template"))
	}
	if f.prefix != "" && given(cmd.Flags(), "format") && len(errs) == 0 {
		errs = append(errs, errors.New("--prefix has an encoding of its own: leave out --format"))
	}
	return errors.Join(errs...)
}

// decodeFlagsOf lists them for decode.
var decodeFlagsOf = []someHave{
	{[]string{"serial"}, []string{"prefix", "width", "check", "zone"}},
	{[]string{"snowflake"}, []string{"format"}},
	{[]string{"snowflake", "serial"}, []string{"layout", "unit", "epoch"}},
}

// undecodable is unused for decode. Without a kind there may be ids of all kinds.
func (f *kindFlags) undecodable(cmd *cobra.Command) error {
	switch {
	case f.kind != "":
		return errors.Join(misplaced(cmd, decodeFlagsOf, f.kind)...)
	case given(cmd.Flags(), "prefix"):
		return errors.New("--prefix is for --kind serial; other prefixes are found by themselves")
	default:
		return nil
	}
}

// misplaced returns an error for each flag on the command line that the kind does not
// have. What the environment sets may be for another command.
func misplaced(cmd *cobra.Command, table []someHave, kind string) (errs []error) {
	for _, row := range table {
		if slices.Contains(row.kinds, kind) {
			continue
		}
		where, last := row.kinds[:len(row.kinds)-1], row.kinds[len(row.kinds)-1]
		if len(where) > 0 {
			last = strings.Join(where, ", ") + " and " + last
		}
		for _, name := range row.flags {
			if given(cmd.Flags(), name) {
				errs = append(errs, fmt.Errorf("--%s goes with --kind %s, not with --kind %s", name, last, kind))
			}
		}
	}
	return errs
}
