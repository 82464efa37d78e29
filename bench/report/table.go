package main

import (
	"fmt"
	"io"
)

// find returns the figures of a subject.
func find(table []measured, name string) measured {
	for _, m := range table {
		if m.name == name {
			return m
		}
	}
	panic("no subject " + name)
}

// write writes the figures as Markdown.
func write(w io.Writer, table []measured) {
	since, add := find(table, "time.Since"), find(table, "atomic add")
	group := group(-1)
	for _, m := range table {
		if m.group != group {
			if group = m.group; group == texts {
				_, _ = fmt.Fprintf(w, "\n| as a string | ns | allocations |\n| --- | --: | --: |\n")
			} else if group == floor {
				_, _ = fmt.Fprintf(w, "| | ns an id | × time.Since | × atomic add | two in parallel | two ÷ one | allocations |\n| --- | --: | --: | --: | --: | --: | --: |\n")
			}
		}
		one, two := m.one.median(), m.two.median()
		name := m.name
		if group == ours {
			name = "**" + name + "**"
		}
		if group == texts {
			_, _ = fmt.Fprintf(w, "| %s | %.1f | %.0f |\n", name, one, m.allocs)
			continue
		}
		both, ratio := "–", "–" // they never run in parallel
		if two > 0 {
			both, ratio = fmt.Sprintf("%.2f", two), fmt.Sprintf("%.2f", two/one)
		}
		_, _ = fmt.Fprintf(w, "| %s | %.2f | %.2f | %.2f | %s | %s | %.0f |\n",
			name, one, one/since.one.median(), one/add.one.median(), both, ratio, m.allocs)
	}
}
