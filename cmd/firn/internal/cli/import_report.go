package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/firn-id/firn/cmd/firn/internal/migrate"
)

// importReport is what import prints.
type importReport struct {
	From    string         `json:"from"`
	DryRun  bool           `json:"dry_run"`
	Names   []importedName `json:"names"`
	Skipped int            `json:"tokens_left_out"` // permissions for names that were not imported
	YAML    string         `json:"configuration"`

	beside bool // the other system may go on, below the margin that was given
}

type importedName struct {
	Name    string `json:"name"`
	Foreign string `json:"foreign_name"`
	MaxID   string `json:"max_id"` // ids in quotes, as everywhere
	Step    int64  `json:"step"`
	Offset  int64  `json:"offset"`
	Stride  int64  `json:"stride"`
	Was     string `json:"was,omitempty"`
	Now     string `json:"now"`
	Outcome string `json:"outcome"`
}

func importedNames(rows []migrate.Row) []importedName {
	names := []importedName{}
	for _, row := range rows {
		n := importedName{
			Name: row.Here, Foreign: row.Name, MaxID: row.MaxID.String(), Step: row.Step, Offset: row.Stripe.Offset,
			Stride: row.Stripe.Stride, Now: strconv.FormatUint(row.Now, 10), Outcome: row.Outcome,
		}
		if row.Was != nil {
			n.Was = strconv.FormatUint(row.Was.Next, 10)
		}
		names = append(names, n)
	}
	return names
}

func (r importReport) write(out io.Writer, from system, config string) error {
	table := [][]string{{"NAME", "IN " + strings.ToUpper(from.word), "MAX_ID", "STEP", "STRIPE", "WAS", "NOW", "OUTCOME"}}
	counts := map[string]int{}
	for _, n := range r.Names {
		stripe, outcome := "-", n.Outcome
		if n.Stride > 1 {
			stripe = fmt.Sprintf("%d of %d", n.Offset, n.Stride)
		}
		if outcome == migrate.Raised {
			outcome += " to " + n.Now
		}
		table = append(table, []string{n.Name, printable(n.Foreign), n.MaxID, fmt.Sprint(n.Step), stripe, cmp.Or(n.Was, "-"), n.Now, outcome})
		counts[n.Outcome]++
	}
	if err := writeTable(out, table); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nNames: %s %s, %s %s, %s %s.\n",
		thousands(int64(counts[migrate.Created])), migrate.Created, thousands(int64(counts[migrate.Raised])), migrate.Raised,
		thousands(int64(counts[migrate.Unchanged])), migrate.Unchanged)
	if r.DryRun {
		fmt.Fprintln(out, "This was a dry run: nothing was written.")
	}
	if r.Skipped > 0 {
		fmt.Fprintf(out, "Left out: %s of the tokens in tiny_id_token, for a biz_type that was not imported.\n", thousands(int64(r.Skipped)))
	}
	if r.beside {
		fmt.Fprintf(out, "%s may go on only while its max_id stays below the number under NOW, for each name: from there on\nids are issued twice. Watch max_id until it has stopped: see docs/import.md.\n", from.name)
	} else {
		fmt.Fprintf(out, "%s must be stopped before ids are issued here: a node that continues to fetch passes the\nmargin of one step. To run both, import with --margin, or use the live source: see docs/import.md.\n", from.name)
	}
	if config != "" && !r.DryRun {
		_, err := fmt.Fprintf(out, "The configuration for firn serve is in %s.\n", config)
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s", r.YAML)
	return err
}
