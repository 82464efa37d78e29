package cli

import (
	"errors"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
)

// colourModes are the values of --color.
var colourModes = []string{"auto", "always", "never"}

func parseColour(text string) (string, error) {
	if !slices.Contains(colourModes, text) {
		return "", errors.New("no such mode")
	}
	return text, nil
}

// A colour is a parameter of the escape sequence that selects it.
type colour string

// The colours of results, and of the fields of ids.
const (
	green   colour = "32"
	yellow  colour = "33"
	red     colour = "31"
	cyan    colour = "36"
	magenta colour = "35"
	faint   colour = "2"
)

// A palette colours texts, or leaves them as they are. All colours of the commands come from it: what stores and servers
// say passes plain or printable first, so it has no escape sequences of its own.
type palette bool

// paletteOf returns the palette of a command's output. Windows needs a call for each console before it shows colours, so
// there --color always is for those that do.
func paletteOf(cmd *cobra.Command) palette {
	switch cmd.Flag("color").Value.String() {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows" && palette(isTerminal(cmd.OutOrStdout()))
}

// paint returns the text in a colour; without a colour, unchanged.
func (p palette) paint(c colour, text string) string {
	if !p || c == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
