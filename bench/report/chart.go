package main

import (
	"fmt"
	"html"
	"os"
	"strings"
)

// chart writes the figures of one goroutine as bars into an SVG file.
func chart(file string, table []measured) error {
	const (
		row, left, width = 22, 250, 470
		style            = `text{font:13px system-ui,sans-serif;fill:#333}.f{fill:#b8bec6}.o{fill:#1f77b4}.p{fill:#e39d48}` +
			`@media(prefers-color-scheme:dark){text{fill:#ddd}.f{fill:#6b737d}}`
	)
	most, rows := 0.0, 0
	for _, m := range table {
		if m.group != texts {
			most, rows = max(most, m.one.median()), rows+1
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Nanoseconds an id, of one goroutine">`,
		left+width+70, rows*row+50)
	fmt.Fprintf(&b, "<style>%s</style>\n<text x=\"8\" y=\"20\">Nanoseconds an id, one goroutine: the least that any generator costs, Firn, others</text>\n", style)
	y := 36
	for _, m := range table {
		if m.group == texts {
			continue
		}
		one := m.one.median()
		name := html.EscapeString(strings.ReplaceAll(m.name, "`", ""))
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect class="%c" x="%d" y="%d" width="%.1f" height="%d"/><text x="%.1f" y="%d">%.1f</text>`+"\n",
			left-8, y+14, name, "fop"[m.group], left, y+2, max(one/most*width, 1), row-6, left+max(one/most*width, 1)+6, y+14, one)
		y += row
	}
	b.WriteString("</svg>\n")
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
