package cli

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What stores, tables and servers say is text of others: it must not control a terminal, nor look like output of firn.

// printable quotes a name if it could do so, or looks like several words.
func printable(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.ContainsAny(name, " \t") || name == "" {
		return q
	}
	return name
}

// plain returns a sentence that may have text of others, with \x1b and the like in place of what does not print.
func plain(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			q := strconv.Quote(text[:size])
			b.WriteString(q[1 : len(q)-1])
		}
		text = text[size:]
	}
	return b.String()
}

// plainLines is plain for errors, of which each that was joined has a line.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = plain(line)
	}
	return strings.Join(lines, "\n")
}
