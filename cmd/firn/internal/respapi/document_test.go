package respapi

import (
	"os"
	"strings"
	"testing"
)

// TestTheDocumentHasEachCommand compares redis.md with the table of commands.
func TestTheDocumentHasEachCommand(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Commands\n")
	commands, rest, _ := strings.Cut(rest, "### Refused commands\n")
	refused, _, _ := strings.Cut(rest, "\n## ")
	table := newTable()
	for _, name := range table.sorted {
		if upper := strings.ToUpper(name); !strings.Contains(commands, "`"+upper+"`") && !strings.Contains(commands, "`"+upper+" ") {
			t.Errorf("the commands of redis.md lack %s", upper)
		}
		if table.refusals[name] != "" {
			t.Errorf("%s is answered and refused", name)
		}
	}
	for _, k := range clientCommands {
		if !strings.Contains(commands, "`"+strings.ToUpper(k.name)) {
			t.Errorf("the commands of redis.md lack CLIENT %s", strings.ToUpper(k.name))
		}
	}
	for _, r := range refusals {
		row := "| `" + strings.ReplaceAll(strings.ToUpper(r.commands), " ", "`, `") + "` | " + strings.ReplaceAll(r.why, "NAME", "name") + " |"
		if !strings.Contains(refused, row) {
			t.Errorf("redis.md lacks the row\n%s", row)
		}
	}
}
