package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
)

// dashedIDs lets the ids of a command begin with a dash, as nearly all in base64 do: it puts -- before all ids, so that
// they are not taken for flags.
func dashedIDs(root *cobra.Command, args []string) []string {
	if len(args) == 0 || !slices.Contains([]string{"decode", "veil", "unveil"}, args[0]) {
		return args
	}
	cmd, _, err := root.Find(args[:1])
	if err != nil {
		return args
	}
	flags, ids, dashed := args[:1:1], []string{}, false
	for rest := args[1:]; len(rest) > 0; rest = rest[1:] {
		arg := rest[0]
		switch {
		case arg == "--": // only ids follow
			ids = append(ids, rest[1:]...)
			rest = rest[:1]
		case isDashedID(cmd, arg):
			dashed = true
			ids = append(ids, arg)
		case len(arg) < 2 || arg[0] != '-':
			ids = append(ids, arg)
		case takesValue(cmd, arg) && len(rest) > 1:
			flags = append(flags, arg, rest[1])
			rest = rest[1:]
		default:
			flags = append(flags, arg)
		}
	}
	if !dashed {
		return args
	}
	return slices.Concat(flags, []string{"--"}, ids)
}

// isDashedID reports whether an argument is an id in base64 rather than a flag, also a mistyped one.
func isDashedID(cmd *cobra.Command, arg string) bool {
	if len(arg) != len(firn.Base64.Fixed(0)) || arg[0] != '-' {
		return false
	}
	name, long := strings.CutPrefix(arg, "--")
	if long && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") == "" {
		return false
	}
	_, err := firn.Base64.Parse(arg)
	return err == nil && cmd.Flags().Lookup(name) == nil
}

// takesValue reports whether the argument after a flag is its value.
func takesValue(cmd *cobra.Command, arg string) bool {
	f := cmd.Flag(strings.TrimLeft(arg, "-"))
	return f != nil && f.NoOptDefVal == ""
}
