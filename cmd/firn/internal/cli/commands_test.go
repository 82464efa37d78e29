package cli

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// Making the other commands would take longer than most commands run.
func TestACommandLineMakesOnlyItsCommand(t *testing.T) {
	var all []string
	for _, c := range commands {
		all = append(all, c.name)
		if made := namesOf(newRoot([]string{c.name, "--json"})); !slices.Equal(made, []string{c.name}) {
			t.Errorf("firn %s makes %v", c.name, made)
		}
	}
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"completion", "bash"}, {"__complete", "next", ""}, {"nxt"}} {
		made := namesOf(newRoot(args))
		for _, name := range all {
			if !slices.Contains(made, name) {
				t.Errorf("firn %v makes %v, without %s", args, made, name)
			}
		}
	}
}

func namesOf(root *cobra.Command) (names []string) {
	for _, cmd := range root.Commands() {
		names = append(names, cmd.Name())
	}
	return names
}
