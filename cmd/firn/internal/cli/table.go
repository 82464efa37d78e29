package cli

import (
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// writeTable writes rows in columns, two spaces apart. Unlike text/tabwriter it knows that a terminal shows the
// characters of some scripts two columns wide, and some marks in none.
func writeTable(out io.Writer, rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], shownWidth(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-shownWidth(cell)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// shownWidth returns how many columns of a terminal a text takes.
func shownWidth(text string) (columns int) {
	colouring := false
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case colouring, r == '\x1b': // of a palette
			colouring = r != 'm'
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
			columns += 2
		default:
			columns++
		}
	}
	return columns
}
