package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// flagsOf lists the flags that only some kinds have.
var flagsOf = []struct{ kinds, flags []string }{
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
	var errs []error
	for _, row := range flagsOf {
		if slices.Contains(row.kinds, k.name) {
			continue
		}
		where, last := row.kinds[:len(row.kinds)-1], row.kinds[len(row.kinds)-1]
		if len(where) > 0 {
			last = strings.Join(where, ", ") + " and " + last
		}
		for _, name := range row.flags {
			if given(cmd.Flags(), name) {
				errs = append(errs, fmt.Errorf("--%s goes with --kind %s, not with --kind %s", name, last, k.name))
			}
		}
	}
	if k.name == "number" && given(cmd.Flags(), "prefix") {
		errs = append(errs, errors.New("--prefix: write it into the --template"))
	}
	if f.prefix != "" && given(cmd.Flags(), "format") && len(errs) == 0 {
		errs = append(errs, errors.New("--prefix has an encoding of its own: leave out --format"))
	}
	return errors.Join(errs...)
}
