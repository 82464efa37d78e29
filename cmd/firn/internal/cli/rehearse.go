package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

const (
	defaultScript = "run 2s, back 1h, run 3s, forward 1h, run 1s"
	defaultChain  = "wait 500ms,history 2000,switch,refuse"
)

func newRehearse() *cobra.Command {
	var (
		flags   layoutFlags
		script  string
		pace    string
		workers int
	)
	cmd := &cobra.Command{
		Use:   "rehearse",
		Short: "Play a clock that goes back, and show what each call gets",
		Long: `rehearse plays a script of what the clock does, and shows what calls for ids get from
the rollback policies meanwhile. It takes no time, whatever the script, and touches no
store: the process has several workers, from 0 on, all free. The script has commands
with commas between them:

  run D       the clock is right for D        back D      it is set back by D
  stop D      it stands still for D           forward D   it is set forward by D
  drift P%    from now on it is faster by P percent, or slower by -P`,
		Example: `  firn rehearse
  firn rehearse --rollback 'wait 500ms, switch' --script 'run 1s, back 300ms, run 1s, back 1h, run 1s'
  firn rehearse --clock steady --script 'run 5s, back 1m, run 5s'
  firn rehearse --rollback 'ahead 1000' --rate 5000/s --script 'run 1s, stop 2s, run 1s' --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.set.Clock != "wall" && !cmd.Flags().Changed("rollback") {
				flags.set.Rollback = nil
			}
			cfg, err := rehearsalOf(cmd, flags.set, script, pace)
			if err != nil {
				return usage(err)
			}
			if cfg.Workers = workers; !cmd.Flags().Changed("workers") {
				cfg.Workers = int(min(int64(workers), cfg.Generator.Layout.MaxWorker()+1))
			}
			result, err := rehearse(cmd.Context(), cfg)
			switch {
			case err != nil:
				return misuse(err)
			case result.Duplicates > 0:
				return fmt.Errorf("%d ids were issued twice: this is a bug of Firn", result.Duplicates)
			}
			return answer(cmd, rehearsed(result), func(out io.Writer) error { return showRehearsal(out, cfg, result) })
		},
	}
	addSettings(cmd.Flags(), &flags.set, flagged("layout", "unit", "epoch", "clock", "rollback", "ahead", "start"))
	setDefault(cmd.Flags(), "clock", "wall")
	setDefault(cmd.Flags(), "rollback", defaultChain)
	cmd.Flags().Lookup("rollback").Usage = "with clock wall: the policies, in order, such as \"wait 500ms, history 2000, switch, refuse\""
	cmd.Flags().StringVar(&script, "script", defaultScript, "what the clock does")
	cmd.Flags().StringVar(&pace, "rate", "10/s", "rate of calls, such as 10/s; each waits for the one before")
	cmd.Flags().IntVar(&workers, "workers", 4, "how many workers the policy switch can choose from, with the one in use")
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

// rehearsalOf returns what the flags describe, with every mistake in them.
func rehearsalOf(cmd *cobra.Command, set settings.Namespace, script, pace string) (rehearsal, error) {
	leased, leaseErr := set.Lease()
	acts, scriptErr := parseScript(script)
	rate, rateErr := access.ParseRate(pace)
	if err := errors.Join(leaseErr, at(cmd, "script", scriptErr), at(cmd, "rate", rateErr)); err != nil {
		return rehearsal{}, err
	}
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	return rehearsal{Generator: leased.Generator, Script: acts, Every: max(rate.Per/time.Duration(rate.Count), 1), Start: noon}, nil
}

// at puts the place of a flag's value before its error.
func at(cmd *cobra.Command, flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", origin(cmd.Flags(), flag), err)
}

// marks are the signs of the drawing.
var marks = map[string]string{
	"": " ", gotIssued: "·", gotBehind: "-", gotAhead: "+", gotHistory: "h",
	gotWaited: "w", gotSwitched: "s", gotRefused: "x", gotWaiting: "?",
}

func showRehearsal(out io.Writer, cfg rehearsal, r rehearsalResult) error {
	g := &cfg.Generator
	chain := ""
	if g.Clock == firn.ClockWall {
		chain = ", rollback " + cmp.Or(g.Rollback.String(), "refuse")
	}
	fmt.Fprintf(out, "clock %s%s\nlayout %s, a call every %v, workers 0 to %d\n\n", g.Clock, chain, decode.Label(g.Layout), cfg.Every, cfg.Workers-1)
	for _, got := range r.Strip {
		fmt.Fprint(out, marks[got])
	}
	fmt.Fprintf(out, "\n· id  w waited  h history  + ahead  - behind  s switched  x refused  ? waiting\n\n")
	fmt.Fprintf(out, "%8s  %-14s %6s  %s\n", "AFTER", "CLOCK", "CALLS", "EACH GOT")
	for _, row := range r.Rows {
		clock := row.Clock.Format("15:04:05.000")
		if row.Clock.YearDay() != cfg.Start.YearDay() || row.Clock.Year() != cfg.Start.Year() {
			clock = row.Clock.Format("01-02 15:04:05")
		}
		if row.Act != "" {
			fmt.Fprintf(out, "%8s  %-14s %6s  the clock: %s\n", brief(row.After), clock, "", row.Act)
			continue
		}
		fmt.Fprintf(out, "%8s  %-14s %6d  %s\n", brief(row.After), clock, row.Calls, got(row))
	}
	_, err := fmt.Fprintf(out, "\n%s: %s, all different; %s refused; %s; longest wait %s\n",
		count(int64(r.Calls), "call"), count(int64(r.IDs), "id"), thousands(int64(r.Refused)), plural(int64(r.Switches), "switch", "switches"), brief(r.LongestWait))
	return err
}

// got says what each call of a row got.
func got(row rehearsalRow) string {
	text, upTo := fmt.Sprintf("an id of worker %d", row.Worker), "up to "
	if row.Calls == 1 {
		upTo = ""
	}
	switch row.Got {
	case gotSwitched:
		text += ", after a switch"
	case gotHistory:
		text += ", of a time before earlier ids (history)"
	case gotAhead:
		text += ", ahead of the clock by " + upTo + brief(row.Off)
	case gotBehind:
		text += ", behind the clock by " + upTo + brief(row.Off)
	case gotRefused:
		if back, ok := errors.AsType[*firn.ClockBackError](row.Err); ok {
			return "refused: the clock is back by " + upTo + brief(back.By)
		}
		return "refused: " + row.Err.Error()
	case gotWaiting:
		return fmt.Sprintf("still waiting after %s, at the end", brief(row.Wait))
	}
	if row.Wait > 0 {
		text += ", waited " + upTo + brief(row.Wait)
	}
	return text
}

// rehearsedJSON is a result for programs.
type rehearsedJSON struct {
	Timeline    []rehearsedRow `json:"timeline"`
	Calls       int            `json:"calls"`
	IDs         int            `json:"ids"`
	Refused     int            `json:"refused"`
	Switches    int            `json:"switches"`
	LongestWait string         `json:"longest_wait"`
}

type rehearsedRow struct {
	After  string    `json:"after"`
	Clock  time.Time `json:"clock"`
	Act    string    `json:"act,omitempty"`
	Calls  int       `json:"calls,omitempty"`
	Got    string    `json:"got,omitempty"`
	Worker *int64    `json:"worker,omitempty"`
	Wait   string    `json:"wait,omitempty"`
	Off    string    `json:"off,omitempty"`
	Error  string    `json:"error,omitempty"`
}

func rehearsed(r rehearsalResult) rehearsedJSON {
	all := rehearsedJSON{Calls: r.Calls, IDs: r.IDs, Refused: r.Refused, Switches: r.Switches, LongestWait: r.LongestWait.String()}
	for _, row := range r.Rows {
		line := rehearsedRow{After: row.After.String(), Clock: row.Clock, Act: row.Act, Calls: row.Calls, Got: row.Got}
		if row.Act == "" && row.Err == nil && row.Got != gotWaiting {
			line.Worker = &row.Worker
		}
		if row.Wait > 0 {
			line.Wait = row.Wait.String()
		}
		if row.Off > 0 {
			line.Off = row.Off.String()
		}
		if row.Err != nil {
			line.Error = row.Err.Error()
		}
		all.Timeline = append(all.Timeline, line)
	}
	return all
}
