package main

import (
	"errors"
	"fmt"
)

// find returns the figures of a subject.
func find(table []measured, name string) (measured, error) {
	for _, m := range table {
		if m.name == name {
			return m, nil
		}
	}
	return measured{}, fmt.Errorf("there is no subject %s", name)
}

// show prints the figures as Markdown.
func show(table []measured) error {
	since, sinceErr := find(table, "time.Since")
	add, addErr := find(table, "atomic add")
	if err := errors.Join(sinceErr, addErr); err != nil {
		return err
	}
	group := group(-1)
	for _, m := range table {
		if m.group != group {
			if group = m.group; group == texts {
				fmt.Printf("\n| as a string | ns | allocations |\n| --- | --: | --: |\n")
			} else if group == floor {
				fmt.Printf("| | ns an id | × time.Since | × atomic add | two in parallel | two ÷ one | allocations |\n| --- | --: | --: | --: | --: | --: | --: |\n")
			}
		}
		one, two := m.one.median(), m.two.median()
		name := m.name
		if group == ours {
			name = "**" + name + "**"
		}
		if group == texts {
			fmt.Printf("| %s | %.1f | %.0f |\n", name, one, m.allocs)
			continue
		}
		both, ratio := "–", "–" // they never run in parallel
		if two > 0 {
			both, ratio = fmt.Sprintf("%.2f", two), fmt.Sprintf("%.2f", two/one)
		}
		fmt.Printf("| %s | %.2f | %.2f | %.2f | %s | %s | %.0f |\n",
			name, one, one/since.one.median(), one/add.one.median(), both, ratio, m.allocs)
	}
	return nil
}
