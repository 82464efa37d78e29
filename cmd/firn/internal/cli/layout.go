package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// layoutInfo has the limits of a layout, as --json prints them.
type layoutInfo struct {
	Name         string    `json:"name,omitempty"`
	Layout       string    `json:"layout"`
	Bits         string    `json:"bits"`
	Unit         string    `json:"unit"`
	Epoch        time.Time `json:"epoch"`
	Order        string    `json:"order"`
	First        time.Time `json:"first"`
	Last         time.Time `json:"last,omitzero"` // see [decode.Shown]
	Note         string    `json:"note,omitempty"`
	RanOut       bool      `json:"ran_out"`
	NotBegun     bool      `json:"not_begun"`
	Datacenters  uint64    `json:"datacenters"`
	Workers      uint64    `json:"workers"`
	IDsPerTick   uint64    `json:"ids_per_tick"`
	IDsPerSecond float64   `json:"ids_per_second"` // of one worker
	MaxID        firn.ID   `json:"max_id"`
	Span         *idSpan   `json:"span,omitempty"`

	Formula map[string]string `json:"formula,omitempty"` // by the names of the parts
}

// idSpan has the smallest and largest id of a moment or a span of time.
type idSpan struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"` // exclusive
	Smallest firn.ID   `json:"smallest"`
	Largest  firn.ID   `json:"largest"`
}

func newLayout() *cobra.Command {
	var (
		flags     layoutFlags
		at, until string
		formula   string
	)
	cmd := &cobra.Command{
		Use:       "layout [LAYOUT]",
		ValidArgs: decode.Presets(),
		Short:     "Show the limits of a layout, or list the presets",
		Long: `layout shows the limits of a layout: its first and last time, its workers, its ids
per second. --at prints the smallest and the largest id of a moment, --at and --until
those of a span, for queries by time. --formula prints how to decode ids in SQL or
JavaScript. Without LAYOUT it lists the presets.`,
		Example: `  firn layout
  firn layout uid-generator
  firn layout 39/4/8/12 --unit 10ms --epoch 2026-01-01
  firn layout firn --at 2026-11-20T22:15:03Z --until 2026-11-21T00:00:00Z
  firn layout twitter --formula postgres`,
		Args: func(cmd *cobra.Command, args []string) error { return atMostOne(cmd, args, "LAYOUT") },
		RunE: func(cmd *cobra.Command, args []string) error {
			named := len(args) == 1
			if named && given(cmd.Flags(), "layout") {
				return usage(errors.New("name the layout once: as the argument or with --layout"))
			}
			if named {
				flags.set.Layout = args[0]
			}
			named = named || cmd.Flags().Changed("layout") || flags.set.Unit != "" || flags.set.Epoch != "" || at != "" || until != "" || cmd.Flags().Changed("formula")
			if !named {
				return listPresets(cmd)
			}
			l, err := flags.parse()
			if err != nil {
				return usage(err)
			}
			info := inform(l, time.Now())
			if info.Span, err = span(l, at, until); err != nil {
				return usage(err)
			}
			if cmd.Flags().Changed("formula") {
				in, f, err := formulaOf(l, formula)
				if err != nil {
					return usage(err)
				}
				if !asJSON(cmd) {
					t, err := moment(cmp.Or(at, "now"))
					if err != nil {
						return usage(err)
					}
					if last := l.Time(l.MaxTick()); at == "" && t.After(last) {
						t = last // the layout has ended
					}
					in.print(cmd.OutOrStdout(), "Layout "+describe(l)+".", f, t)
					return nil
				}
				info.Formula = f.byName()
			}
			if asJSON(cmd) {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetEscapeHTML(false) // formulas have & and >
				return out.Encode(info)
			}
			showLayout(cmd.OutOrStdout(), paletteOf(cmd), l, info)
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&at, "at", "", "show the smallest and largest id of this moment: RFC 3339, a date, Unix milliseconds, or now")
	cmd.Flags().StringVar(&until, "until", "", "with --at: also the largest id before this moment")
	cmd.Flags().StringVar(&formula, "formula", "", "print how to decode ids, and how to find ids by time, in "+failure.List(languageNames(), "or"))
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

func inform(l firn.Layout, now time.Time) layoutInfo {
	order := "worker-sequence"
	if l.Config().SequenceFirst {
		order = "sequence-worker"
	}
	last, note := decode.Shown(l.Time(l.MaxTick()))
	if note != "" {
		note = "the last " + strings.TrimPrefix(note, "the ")
	}
	return layoutInfo{
		Name: l.Name(), Layout: l.String(), Bits: l.Bits(), Unit: l.Unit().String(), Epoch: l.Epoch(),
		Order: order, First: l.Epoch(), Last: last, Note: note,
		RanOut: !now.Before(l.End()), NotBegun: now.Before(l.Epoch()),
		Datacenters: uint64(l.MaxDatacenter()) + 1, Workers: uint64(l.MaxWorker()) + 1,
		IDsPerTick: uint64(l.MaxSequence()) + 1, IDsPerSecond: (float64(l.MaxSequence()) + 1) * float64(time.Second) / float64(l.Unit()), MaxID: l.MaxID(),
	}
}

func listPresets(cmd *cobra.Command) error {
	var all []layoutInfo
	table := [][]string{{"PRESET", "BITS", "UNIT", "EPOCH (UTC)", "UNTIL", "WORKERS", "IDS/S EACH", "REMARK"}}
	for _, p := range firn.Presets() {
		l, info := p.Layout, inform(p.Layout, time.Now())
		info.Name = p.Name
		all = append(all, info)
		until := l.Time(l.MaxTick()).Format("2006")
		if info.RanOut {
			until = "ran out " + l.End().Format(time.DateOnly)
		}
		table = append(table, []string{
			p.Name, l.Bits(), info.Unit, epochText(l.Epoch()), until, thousands((l.MaxDatacenter() + 1) * (l.MaxWorker() + 1)), perSecond(info.IDsPerSecond), p.Remark,
		})
	}
	return answer(cmd, all, func(out io.Writer) error {
		if err := writeTable(out, table); err != nil {
			return err
		}
		_, err := fmt.Fprintln(out, "\nBits are time/datacenter/worker/sequence. More about one: firn layout NAME")
		return err
	})
}

// moment parses a time as ParseEpoch does, or "now".
func moment(text string) (time.Time, error) {
	if text == "now" {
		return time.Now(), nil
	}
	t, err := firn.ParseEpoch(text)
	if syntax, ok := errors.AsType[*firn.SyntaxError](err); ok {
		syntax.What = "time"
	}
	return t, err
}

// span returns the ids of the moment at, or of the time from it until another.
func span(l firn.Layout, at, until string) (*idSpan, error) {
	if at == "" && until == "" {
		return nil, nil
	}
	if at == "" {
		return nil, errors.New("--until needs --at, where the span begins")
	}
	from, err := moment(at)
	if err != nil {
		return nil, err
	}
	var to time.Time
	if until == "" {
		tick, err := l.Tick(from)
		if err != nil {
			return nil, err
		}
		from = l.Time(tick)
		to = from.Add(l.Unit())
	} else if to, err = moment(until); err != nil {
		return nil, err
	}
	lo, hi, err := l.Span(from, to)
	if err != nil {
		return nil, err
	}
	return &idSpan{From: from.UTC(), To: to.UTC(), Smallest: lo, Largest: hi}, nil
}

func showLayout(out io.Writer, p palette, l firn.Layout, info layoutInfo) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(out, "%s\n\n%s\n", describe(l), draw(l, decode.Result{}, p))
	switch {
	case info.RanOut:
		fmt.Fprintf(out, "This layout ran out on %s: its time field is used up since %s, and no id can be\n"+
			"made with it any more. Use more time bits, a longer unit or a later epoch.\n\n",
			l.End().Format(time.DateOnly), l.End().Format(time.RFC3339Nano))
	case info.NotBegun:
		fmt.Fprintf(out, "This layout begins in the future: no id can be made with it before %s.\n\n",
			l.Epoch().Format(time.RFC3339Nano))
	}
	line("first", "%s", l.Epoch().Format(time.RFC3339Nano))
	last := tooLate
	if info.Note == "" {
		last = info.Last.Format(time.RFC3339Nano)
	}
	line("last", "%s  (%s)", last, age(l))
	line("unit", "%v", l.Unit())
	if l.Config().DatacenterBits > 0 {
		line("datacenters", "%s", thousands(l.MaxDatacenter()+1))
	}
	line("workers", "%s", thousands(l.MaxWorker()+1))
	line("ids", "%s a tick, %s a second, of each worker", thousands(l.MaxSequence()+1), perSecond(info.IDsPerSecond))
	line("largest id", "%d", l.MaxID())
	if l.MaxID() < 1<<53 {
		line("", "below 2^53: exact as a JavaScript number")
	}
	if s := info.Span; s != nil {
		fmt.Fprintf(out, "\nids from %s until %s\n", s.From.Format(time.RFC3339Nano), s.To.Format(time.RFC3339Nano))
		line("smallest", "%d", s.Smallest)
		line("largest", "%d", s.Largest)
		line("in SQL", "WHERE id BETWEEN %d AND %d", s.Smallest, s.Largest)
	}
}

// age returns how long a layout lasts.
func age(l firn.Layout) string {
	years := float64(l.MaxTick()) * l.Unit().Hours() / 24 / 365.2425
	switch {
	case years < 2:
		return fmt.Sprintf("%.1f days", years*365.2425)
	case years < 100:
		return fmt.Sprintf("%.1f years", years)
	}
	return decode.Grouped(fmt.Sprintf("%.0f", years)) + " years"
}

// thousands writes a count for people.
func thousands(n int64) string { return decode.Grouped(fmt.Sprint(n)) }

// count writes a number of things, as in "1 id" and "2 ids".
func count(n int64, thing string) string { return plural(n, thing, thing+"s") }

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// perSecond formats a rate, which an int64 may not hold.
func perSecond(n float64) string { return decode.Grouped(fmt.Sprintf("%.0f", math.Trunc(n))) }

// epochText returns an epoch in UTC, with its time of day if that is not midnight: the date alone would be a day
// early for an epoch at midnight in +08:00.
func epochText(epoch time.Time) string {
	if epoch.Equal(epoch.Truncate(24 * time.Hour)) {
		return epoch.Format(time.DateOnly)
	}
	return epoch.Format("2006-01-02 15:04")
}
