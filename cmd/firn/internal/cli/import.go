package cli

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/migrate"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A system is another system whose counters can be imported.
type system struct {
	word, name string // of the subcommand, and as the system is spelled
	tables     string
	read       func(ctx context.Context, db *sql.DB, except ...string) ([]migrate.Foreign, []migrate.Token, error)
}

var (
	leafSystem   = system{"leaf", "Leaf", "leaf_alloc", migrate.FromLeaf}
	tinyidSystem = system{"tinyid", "TinyId", "tiny_id_info and tiny_id_token", migrate.FromTinyID}
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import leaf|tinyid",
		Short: "Import the counters of Leaf or TinyId as segments",
		Example: `  firn import leaf --from mysql://leaf:PASSWORD@db.example:3306/leaf --store redis://127.0.0.1:6379/0 --dry-run
  firn import tinyid --from mysql://tiny:PASSWORD@db.example:3306/tinyid --config firn.yaml`,
	}
	cmd.AddCommand(newImportOf(leafSystem), newImportOf(tinyidSystem))
	onlyItsCommands(cmd)
	return cmd
}

// importFlags are the flags of firn import, for both systems.
type importFlags struct {
	storeFlags
	from, config string
	margin       int64
	rename, skip []string
	dryRun       bool
}

func newImportOf(from system) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   from.word,
		Short: "Import the counters in " + from.tables,
		Long: fmt.Sprintf(`import %s reads %s and creates a segment for each name,
which continues above max_id plus a margin: one step of its row, or --margin. It never
lowers an existing counter, so it can be repeated. It checks everything before it
writes, and never writes to the tables of %[3]s. It prints the configuration for
firn serve as YAML, or writes it to a new file with --config.

Stop %[3]s first: a node that continues to fetch passes a margin of one step, and then
ids are issued twice. To run both for a time, give a --margin that it does not reach, or
use the live source: see docs/import.md.

Put a URL with a password in FIRN_FROM: other users of the machine can see command lines.`, from.word, from.tables, from.name),
		Example: fmt.Sprintf(`  firn import %s --from mysql://USER:PASSWORD@HOST:3306/DATABASE --dry-run
  firn import %[1]s --from mysql://USER:PASSWORD@HOST:3306/DATABASE --rename 'shop:orders=orders' --config firn.yaml`, from.word),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, from) },
	}
	f.addStore(cmd, "store for the segments, such as redis://HOST or file:FOLDER (see docs/stores.md)")
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "database of "+from.name+", such as mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	flags.Int64Var(&f.margin, "margin", -1, "ids to leave unused above max_id")
	flags.Lookup("margin").DefValue = "the step of each row"
	flags.StringArrayVar(&f.rename, "rename", nil, "rename a counter: OLD=NEW; repeatable")
	flags.StringArrayVar(&f.skip, "skip", nil, "do not import this name, whatever its row holds; repeatable")
	flags.StringVar(&f.config, "config", "", "write the YAML to this file, which must be new")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be written, and write nothing")
	flags.Bool("json", false, "print JSON")
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
	ctx, end := context.WithTimeout(cmd.Context(), storeTimeout)
	defer end()
	s, err := f.openFor(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	counters, tokens, err := from.read(ctx, db, f.skip...)
	if err != nil {
		if hint := storeurl.MySQLHint(err, from.tables); hint != "" {
			err = fmt.Errorf("%w (%s)", err, hint)
		}
		return fmt.Errorf("%s: %w", storeurl.Redact(f.from), err)
	}
	looking := newProgress(cmd.ErrOrStderr(), "checked", "names", 0, 0)
	options.Progress = looking.reach
	plan, err := migrate.MakePlan(cmd.Context(), s, counters, tokens, options)
	looking.end()
	if err != nil {
		return fmt.Errorf("nothing was imported:\n%w", err)
	}
	url := f.store
	if storeurl.Redact(url) != url {
		url = ""
	}
	var moved error
	report := importReport{From: from.word, DryRun: f.dryRun, YAML: string(plan.YAML(from.word, url)), Skipped: plan.Skipped(), beside: f.margin >= 0}
	if f.config != "" {
		if _, err := settings.Parse(f.config, []byte(report.YAML)); err != nil {
			return fmt.Errorf("nothing was imported: firn serve would refuse this file: %w; leave names out with --skip, or divide the configuration that is printed without --config", err)
		}
	}
	if !f.dryRun {
		if err := f.keepYAML(report.YAML); err != nil {
			return err
		}
		writing := newProgress(cmd.ErrOrStderr(), "imported", "names", 0, 0)
		err := plan.Apply(cmd.Context(), s, writing.reach)
		writing.end()
		if err != nil {
			return err
		}
		moved = f.moved(cmd.Context(), db, from, plan)
	}
	report.Names = importedNames(plan.Rows) // after Apply, which another process may have been ahead of
	return errors.Join(answer(cmd, report, func(out io.Writer) error { return report.write(out, from, f.config) }), moved)
}

// moved reads the other system's counters once more. It returns an error if one has changed since:
// then the system is still running.
func (f *importFlags) moved(ctx context.Context, db *sql.DB, from system, plan *migrate.Plan) error {
	now, _, err := from.read(ctx, db, f.skip...)
	if err != nil {
		return fmt.Errorf("all names were imported; whether %s is still running could not be checked: %s: %w", from.name, storeurl.Redact(f.from), err)
	}
	if err := plan.Moved(now); err != nil && f.margin >= 0 {
		return fmt.Errorf("%s is still running. All names were imported: go on, and watch its max_id:\n%w", from.name, err)
	} else if err != nil {
		return fmt.Errorf("%s is still running: stop it, and do this again before ids are issued here:\n%w", from.name, err)
	}
	return nil
}

// options parses the flags, and reports all mistakes at once.
func (f *importFlags) options() (migrate.Options, error) {
	o := migrate.Options{Margin: f.margin, Rename: map[string]string{}}
	var errs []error
	if f.flags.Changed("margin") && f.margin < 0 {
		errs = append(errs, firn.NewRangeError(origin(f.flags, "margin"), f.margin, 0, int64(firn.MaxID), ""))
	}
	for _, text := range f.rename {
		at := strings.LastIndexByte(text, '=') // an old name may have one, or be empty
		if at < 0 || at == len(text)-1 {
			errs = append(errs, fmt.Errorf("--rename %q: write OLD=NEW", text))
			continue
		}
		before, after := text[:at], text[at+1:]
		_, twice := o.Rename[before]
		if twice {
			errs = append(errs, fmt.Errorf("--rename %q is given twice", before))
		}
		o.Rename[before] = after
	}
	if f.flags.Changed("config") && f.config == "" {
		errs = append(errs, fmt.Errorf("%s is empty: name a file", origin(f.flags, "config")))
	}
	if f.from == "" {
		errs = append(errs, errors.New("--from is missing: write mysql://USER:PASSWORD@HOST:PORT/DATABASE, or set FIRN_FROM"))
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

// openFor opens the store. In a dry run, a default store that does not exist counts as an empty one.
func (f *importFlags) openFor(ctx context.Context) (store.Store, error) {
	if err := f.resolve(""); err != nil {
		return nil, err
	}
	if f.store == "memory:" {
		return nil, usage(fmt.Errorf("%s: memory: ends with this process: name another store", origin(f.flags, "store")))
	}
	f.makes = !f.dryRun
	s, err := f.open(ctx, "")
	if f.dryRun && f.byDefault && errors.Is(err, store.ErrNotFound) {
		return memstore.New(nil), nil
	}
	return s, err
}

// keepYAML writes the file of --config, if it is given. Call it before counters are written: it fails if firn serve
// would refuse the file, or if it exists with other content. A file with the same content comes from an earlier run.
func (f *importFlags) keepYAML(text string) (err error) {
	if f.config == "" {
		return nil
	}
	file, err := os.OpenFile(f.config, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if have, readErr := os.ReadFile(f.config); readErr == nil && bytes.Equal(have, []byte(text)) {
			return nil
		}
		return fmt.Errorf("%s: %s already exists and is not overwritten; nothing was imported: name another file", origin(f.flags, "config"), f.config)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; nothing was imported", origin(f.flags, "config"), err)
	}
	_, err = io.WriteString(file, text)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w; nothing was imported", origin(f.flags, "config"), errors.Join(err, os.Remove(f.config)))
	}
	return nil
}
