package cli

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/cmd/firn/internal/takeover"
	"github.com/firn-id/firn/segment/leaf"
	"github.com/firn-id/firn/segment/tinyid"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A system is what counters can be taken over from.
type system struct {
	word, name string // as in a command, and as its makers write it
	tables     string
	read       func(context.Context, *sql.DB) ([]takeover.Foreign, []takeover.Token, error)
}

var (
	leafSystem   = system{"leaf", "Leaf", leaf.Table, takeover.FromLeaf}
	tinyidSystem = system{"tinyid", "TinyId", tinyid.Table + " and " + tinyid.TokenTable, takeover.FromTinyID}
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import leaf|tinyid",
		Short: "Take over the counters of Leaf or TinyId as segments",
		Example: `  firn import leaf --from mysql://leaf:PASSWORD@db.example:3306/leaf --store redis://127.0.0.1:6379/0 --dry-run
  firn import tinyid --from mysql://tiny:PASSWORD@db.example:3306/tinyid --config firn.yaml`,
	}
	cmd.AddCommand(newImportOf(leafSystem), newImportOf(tinyidSystem))
	onlyItsCommands(cmd)
	return cmd
}

// importFlags are those of either system.
type importFlags struct {
	storeFlags
	from, config   string
	margin         int64
	rename         []string
	dryRun, asJSON bool
}

func newImportOf(from system) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   from.word,
		Short: "Take over the counters in " + from.tables,
		Long: fmt.Sprintf(`import %s reads %s and has a segment of each
name go on above its counter: at max_id and a margin, which is one step of its row
unless --margin says otherwise. A counter that is there is never lowered, so that
import may run twice. All is checked before anything is written, and nothing is
written to the tables. What firn serve needs to serve the names is printed as YAML,
or written to a new file by --config.

Stop %[3]s first: a node of it that goes on fetching passes the margin, and then
ids are issued twice. To have both issue at once, use the live source instead: see
docs/segments.md.

Give a URL with a password in FIRN_FROM: others on the machine see command lines.`, from.word, from.tables, from.name),
		Example: fmt.Sprintf(`  firn import %s --from mysql://USER:PASSWORD@HOST:3306/DATABASE --dry-run
  firn import %[1]s --from mysql://USER:PASSWORD@HOST:3306/DATABASE --rename 'shop:orders=orders' --config firn.yaml`, from.word),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, from) },
	}
	f.addStore(cmd, "store that the segments are kept in, as redis://HOST or sqlite:PATH (see docs/stores.md)")
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "database of "+from.name+", as mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	flags.Int64Var(&f.margin, "margin", -1, "how far above max_id to go on")
	flags.Lookup("margin").DefValue = "the step of each row"
	flags.StringArrayVar(&f.rename, "rename", nil, "another name for one, as OLD=NEW; may be given again")
	flags.StringVar(&f.config, "config", "", "write the YAML to this file, which must be new")
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing, and show what would be")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func (f *importFlags) run(cmd *cobra.Command, from system) (err error) {
	options, err := f.options()
	if err != nil {
		return usage(err)
	}
	db, err := f.database()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, end := patient(cmd.Context())
	defer end()
	s, err := f.openFor(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	counters, tokens, err := from.read(ctx, db)
	if err != nil {
		return fmt.Errorf("%s: %w", storeurl.Redact(f.from), err)
	}
	looking := newProgress(cmd, "looked at")
	options.Progress = looking.at
	plan, err := takeover.Make(cmd.Context(), s, counters, tokens, options)
	looking.end()
	if err != nil {
		return fmt.Errorf("nothing was taken over:\n%w", err)
	}
	url := f.store
	if storeurl.Redact(url) != url {
		url = ""
	}
	report := importReport{From: from.word, DryRun: f.dryRun, Rows: plan.Rows, YAML: string(plan.YAML(from.word, url)), Skipped: plan.Skipped()}
	if !f.dryRun {
		if err := f.keepYAML(report.YAML); err != nil {
			return err
		}
		writing := newProgress(cmd, "took over")
		err := plan.Apply(cmd.Context(), s, writing.at)
		writing.end()
		if err != nil {
			return err
		}
	}
	if f.asJSON {
		return report.writeJSON(cmd.OutOrStdout())
	}
	return report.write(cmd.OutOrStdout(), from, f.config)
}

// options reads what stands on the command line, all mistakes at once.
func (f *importFlags) options() (takeover.Options, error) {
	o := takeover.Options{Margin: f.margin, Rename: map[string]string{}}
	var errs []error
	if f.flags.Changed("margin") && f.margin < 0 {
		errs = append(errs, firn.NewRangeError(origin(f.flags, "margin"), f.margin, 0, int64(firn.MaxID), ""))
	}
	for _, text := range f.rename {
		before, after, ok := strings.Cut(text, "=")
		_, twice := o.Rename[before]
		switch {
		case !ok || before == "" || after == "":
			errs = append(errs, firn.NewSyntaxError("renaming", text, "write --rename OLD=NEW"))
		case twice:
			errs = append(errs, fmt.Errorf("--rename %q is given twice", before))
		}
		o.Rename[before] = after
	}
	if f.flags.Changed("config") && f.config == "" {
		errs = append(errs, fmt.Errorf("%s is empty: name a file", origin(f.flags, "config")))
	}
	if f.from == "" {
		errs = append(errs, errors.New("no database: give --from mysql://USER:PASSWORD@HOST:PORT/DATABASE, or FIRN_FROM in the environment"))
	}
	return o, errors.Join(errs...)
}

func (f *importFlags) database() (*sql.DB, error) {
	db, err := storeurl.OpenMySQL(f.from)
	if errors.Is(err, storeurl.ErrURL) {
		return nil, usage(fmt.Errorf("%s: %w", origin(f.flags, "from"), err))
	}
	return db, err
}

// openFor opens the store. What a dry run would have to make, it takes for empty.
func (f *importFlags) openFor(ctx context.Context) (store.Store, error) {
	if err := f.resolve(""); err != nil {
		return nil, err
	}
	if f.store == "memory:" {
		return nil, usage(fmt.Errorf("%s: memory: forgets with this process what it takes over: name another store", origin(f.flags, "store")))
	}
	if path, ok := strings.CutPrefix(f.store, "sqlite:"); ok && f.dryRun && path != "" {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return memstore.New(nil), nil
		}
	}
	return f.open(ctx, "")
}

// keepYAML writes the file of --config, if one is wanted. It stands before the
// counters are written, so that a file in the way is told of before that; one with
// this very content is left by an earlier run.
func (f *importFlags) keepYAML(text string) (err error) {
	if f.config == "" {
		return nil
	}
	file, err := os.OpenFile(f.config, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if have, readErr := os.ReadFile(f.config); readErr == nil && bytes.Equal(have, []byte(text)) {
			return nil
		}
		return fmt.Errorf("%s: %s is there already and is not overwritten; nothing was taken over: name another file", origin(f.flags, "config"), f.config)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; nothing was taken over", origin(f.flags, "config"), err)
	}
	_, err = io.WriteString(file, text)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w; nothing was taken over", origin(f.flags, "config"), errors.Join(err, os.Remove(f.config)))
	}
	return nil
}

// importReport is what import prints.
type importReport struct {
	From    string
	DryRun  bool
	Rows    []takeover.Row
	YAML    string
	Skipped int // openings of tokens for names without a counter
}

func (r importReport) write(out io.Writer, from system, config string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "NAME\tIN %s\tMAX_ID\tSTEP\tSTRIPE\tWAS\tNOW\tOUTCOME\n", strings.ToUpper(from.word))
	counts := map[string]int{}
	for _, row := range r.Rows {
		was := "-"
		if row.Was != nil {
			was = strconv.FormatUint(row.Was.Next, 10)
		}
		stripe := "-"
		if row.Stripe.Stride > 1 {
			stripe = fmt.Sprintf("%d of %d", row.Stripe.Offset, row.Stripe.Stride)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%d\t%s\n",
			row.Here, printable(row.Name), int64(row.MaxID), row.Step, stripe, was, row.Now, row.Outcome)
		counts[row.Outcome]++
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nNames: %s %s, %s %s, %s %s.\n",
		thousands(int64(counts[takeover.Taken])), takeover.Taken, thousands(int64(counts[takeover.Raised])), takeover.Raised,
		thousands(int64(counts[takeover.Above])), takeover.Above)
	if r.DryRun {
		fmt.Fprintln(out, "This was a dry run: nothing was written.")
	}
	if r.Skipped > 0 {
		fmt.Fprintf(out, "Left out: %s of the tokens in %s, for a biz_type that %s does not have.\n", thousands(int64(r.Skipped)), tinyid.TokenTable, tinyid.Table)
	}
	fmt.Fprintf(out, "%s must be stopped before ids are issued here: a node of it that goes on fetching passes the\nmargin. For both at once there is the live source, see docs/segments.md.\n", from.name)
	if config != "" && !r.DryRun {
		_, err := fmt.Fprintf(out, "The configuration for firn serve is in %s.\n", config)
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s", r.YAML)
	return err
}

// printable keeps what a foreign table has from steering a terminal.
func printable(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` || strings.ContainsAny(name, " \t") || name == "" {
		return q
	}
	return name
}

type importRowShown struct {
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

func (r importReport) writeJSON(out io.Writer) error {
	shown := struct {
		From    string           `json:"from"`
		DryRun  bool             `json:"dry_run"`
		Names   []importRowShown `json:"names"`
		Skipped int              `json:"tokens_left_out"`
		YAML    string           `json:"configuration"`
	}{r.From, r.DryRun, []importRowShown{}, r.Skipped, r.YAML}
	for _, row := range r.Rows {
		s := importRowShown{
			Name: row.Here, Foreign: row.Name, MaxID: row.MaxID.String(), Step: row.Step, Offset: row.Stripe.Offset,
			Stride: row.Stripe.Stride, Now: strconv.FormatUint(row.Now, 10), Outcome: row.Outcome,
		}
		if row.Was != nil {
			s.Was = strconv.FormatUint(row.Was.Next, 10)
		}
		shown.Names = append(shown.Names, s)
	}
	return json.NewEncoder(out).Encode(shown)
}

const (
	// progressAfter is how long a person waits without a word.
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// A progress tells a person at a terminal how far a long command is.
type progress struct {
	out   io.Writer
	does  string
	begun time.Time
	last  time.Time
	shown bool
}

func newProgress(cmd *cobra.Command, does string) *progress {
	out := cmd.ErrOrStderr()
	return &progress{out: out, does: does, begun: time.Now(), shown: isTerminal(out)}
}

func (p *progress) at(done, all int) {
	now := time.Now()
	if !p.shown || now.Sub(p.begun) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.last = now
	fmt.Fprintf(p.out, "\r%s %s of %s names", p.does, thousands(int64(done)), thousands(int64(all)))
}

// end makes place for what follows.
func (p *progress) end() {
	if !p.last.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
