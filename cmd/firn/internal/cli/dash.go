package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
)

// notAFlag is put before an id that begins with a dash: no argument of a command line has this byte.
const notAFlag = "\x00"

// dashedIDs lets the ids of a command begin with a dash, as nearly all in base64 do: it marks them, so that they are not
// taken for flags. [eachID] removes the mark.
func dashedIDs(root *cobra.Command, args []string) []string {
	if len(args) == 0 || !slices.Contains([]string{"decode", "veil", "unveil"}, args[0]) {
		return args
	}
	cmd, _, err := root.Find(args[:1])
	if err != nil {
		return args
	}
	args = slices.Clone(args)
	for i := 1; i < len(args) && args[i] != "--"; i++ { // after --, nothing is taken for a flag
		switch {
		case isDashedID(cmd, args[i]):
			args[i] = notAFlag + args[i]
		case takesValue(cmd, args[i]):
			i++
		}
	}
	return args
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
	return strings.HasPrefix(arg, "-") && f != nil && f.NoOptDefVal == ""
}
