// Command keys compares kinds of ids as primary keys: it inserts rows into a MariaDB and a PostgreSQL,
// and prints how long that took, how large table and index became, and what was written. Run it in
// the root of the repository; it needs both servers and five to ten minutes.
//
//	go run ./bench/keys
//
// Several connections insert at once, each in transactions of many rows and with its own generator, like
// several servers of an application.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/program"
)

// settings are those of a run.
type settings struct {
	rows    int // of each table
	batch   int // rows of a transaction
	writers int // connections
	rounds  int
	only    string // databases and schemes with these words
}

func main() {
	var s settings
	flag.IntVar(&s.rows, "rows", 1_000_000, "rows of each table")
	flag.IntVar(&s.batch, "batch", 500, "rows of a statement, which is a transaction")
	flag.IntVar(&s.writers, "writers", 4, "connections that insert at once")
	flag.IntVar(&s.rounds, "rounds", 1, "how often everything is measured; prints medians")
	flag.StringVar(&s.only, "only", "", "only rows with these words, such as MariaDB or \"UUID v4\"")
	flag.Parse()
	if s.rows < s.batch*s.writers || s.batch < 1 || s.writers < 1 || s.rounds < 1 {
		fmt.Fprintln(os.Stderr, "keys: -rounds, -batch and -writers must be at least 1, and -rows a batch for each writer")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := host.Run(func(h *host.Host) error { return run(ctx, h, os.Stdout, s) }); err != nil {
		fmt.Fprintln(os.Stderr, "keys:", err)
		os.Exit(1)
	}
}

// run starts the servers in t.
func run(ctx context.Context, t testing.TB, out io.Writer, s settings) error {
	for _, start := range []func(context.Context, testing.TB) (*database, error){mariaDB, postgres} {
		if err := compare(ctx, t, out, s, start); err != nil {
			return err
		}
	}
	return nil
}

// compare measures all schemes in a database and prints a table.
func compare(ctx context.Context, t testing.TB, out io.Writer, s settings, start func(context.Context, testing.TB) (*database, error)) (err error) {
	d, err := start(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	found := map[string][]result{}
	for range s.rounds {
		for _, k := range schemes {
			if !strings.Contains(d.name+" "+k.name, s.only) {
				continue
			}
			r, err := d.measure(ctx, s, k)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", d.name, k.name, err)
			}
			found[k.name] = append(found[k.name], r)
			fmt.Fprintf(os.Stderr, "%s, %s: %.1fs %v\n", d.name, k.name, r.took.Seconds(), r.figures)
		}
	}
	if len(found) == 0 {
		return nil
	}
	fmt.Fprintf(out, "%s, %d rows by %d connections, %d in a transaction; medians of %d\n\n", d.version, s.rows, s.writers, s.batch, s.rounds)
	fmt.Fprintf(out, "| key | column | seconds | %s |\n| --- | --- | ---: |%s\n", strings.Join(d.figures, " | "), strings.Repeat(" ---: |", len(d.figures)))
	for _, k := range schemes {
		rs := found[k.name]
		if len(rs) == 0 {
			continue
		}
		fmt.Fprintf(out, "| %s | `%s` | %.1f |", k.name, d.column(k), program.Median(rs, func(r result) float64 { return r.took.Seconds() }))
		for i := range d.figures {
			fmt.Fprintf(out, " %s |", plain(program.Median(rs, func(r result) float64 { return r.figures[i] })))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	return nil
}

// A result is one measurement.
type result struct {
	took    time.Duration
	figures []float64 // as in database.figures
}

// plain writes large figures without decimals.
func plain(f float64) string {
	if f >= 100 || f == float64(int(f)) {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.1f", f)
}
