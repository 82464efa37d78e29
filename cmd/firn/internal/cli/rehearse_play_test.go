package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// played is a script with a call every 100ms, played to a chain of policies; over a steady clock without one.
func played(t *testing.T, chain, script string, change ...func(*rehearsal)) rehearsalResult {
	t.Helper()
	s, err := parseScript(script)
	if err != nil {
		t.Fatal(err)
	}
	cfg := rehearsal{Script: s, Every: 100 * time.Millisecond, Start: noon, Workers: 3}
	cfg.Generator.Layout = firn.DefaultLayout()
	if chain != "" {
		cfg.Generator.Clock = firn.ClockWall
		if cfg.Generator.Rollback, err = firn.ParseRollback(chain); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range change {
		c(&cfg)
	}
	r, err := rehearse(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Duplicates > 0 || r.IDs+r.Refused > r.Calls {
		t.Errorf("%+v", r)
	}
	return r
}

// timeline writes the rows, each as "when clock: calls got worker".
func timeline(r rehearsalResult) string {
	var lines []string
	for _, row := range r.Rows {
		line := fmt.Sprintf("%v %s: ", row.After, row.Clock.Format("15:04:05"))
		switch {
		case row.Act != "":
			line += row.Act
		case row.Got == gotRefused, row.Got == gotWaiting:
			line += fmt.Sprint(row.Calls, " ", row.Got)
		default:
			line += fmt.Sprint(row.Calls, " ", row.Got, " ", row.Worker)
		}
		if row.Wait > 0 {
			line += fmt.Sprint(" waited ", row.Wait)
		}
		if row.Off > 0 {
			line += fmt.Sprint(" off ", row.Off)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestEachPolicyShowsInTheTimeline(t *testing.T) {
	for _, c := range []struct{ what, chain, script, want string }{
		{
			"refuse, until the clock is right", "refuse", "run 1s, back 1h, run 1s, forward 1h, run 1s",
			"0s 12:00:00: 10 issued 0\n1s 12:00:01: back 1h\n1s 11:00:01: 10 refused\n2s 11:00:02: forward 1h\n2s 12:00:02: 10 issued 0",
		},
		{
			"wait", "wait 500ms", "run 1s, back 300ms, run 1s",
			"0s 12:00:00: 10 issued 0\n1s 12:00:01: back 300ms\n1s 12:00:00: 1 waited 0 waited 200ms\n1.2s 12:00:00: 8 issued 0",
		},
		{
			"history", "history 2000", "run 1s, back 500ms, run 1s",
			"0s 12:00:00: 10 issued 0\n1s 12:00:01: back 500ms\n1s 12:00:00: 4 history 0\n1.4s 12:00:00: 6 issued 0",
		},
		{
			"ahead", "ahead 1000", "run 1s, back 500ms, run 1s",
			"0s 12:00:00: 10 issued 0\n1s 12:00:01: back 500ms\n1s 12:00:00: 4 ahead 0 off 400ms\n1.4s 12:00:00: 6 issued 0",
		},
		{
			"switch, as long as a worker is free", "switch, refuse", "run 1s, back 1h, run 1s, back 1h, run 1s, back 1h, run 1s, forward 3h, run 1s, back 1s, run 1s",
			"0s 12:00:00: 10 issued 0\n1s 12:00:01: back 1h\n1s 11:00:01: 10 switched 1\n2s 11:00:02: back 1h\n2s 10:00:02: 10 switched 2\n" +
				"3s 10:00:03: back 1h\n3s 09:00:03: 10 refused\n4s 09:00:04: forward 3h\n4s 12:00:04: 10 issued 2\n5s 12:00:05: back 1s\n5s 12:00:04: 10 switched 0",
		},
		{
			"a script that goes on while a call waits", "wait 1m", "run 1s, back 5s, run 1s, forward 4s, run 1s",
			"0s 12:00:00: 10 issued 0\n1s 12:00:01: back 5s\n2s 11:59:57: forward 4s\n1s 11:59:56: 1 waited 0 waited 1s\n2s 12:00:01: 10 issued 0",
		},
		{
			"a call that waits at the end", "wait 1m", "run 1s, back 5s, run 1s",
			"0s 12:00:00: 10 issued 0\n1s 12:00:01: back 5s\n1s 11:59:56: 1 waiting waited 1s",
		},
		{
			"a steady clock ignores all that", "", "run 1s, back 1h, run 1s",
			"0s 12:00:00: 10 issued 0\n1s 12:00:01: back 1h\n1s 11:00:01: 10 ahead 0 off 59m59.9s",
		},
		{
			"a clock that stands still, and one that drifts", "refuse", "run 1s, stop 1s, run 1s, drift -50%, run 2s",
			"0s 12:00:00: 10 issued 0\n1s 12:00:01: stop 1s\n1s 12:00:01: 10 issued 0\n2s 12:00:01: run 1s\n2s 12:00:01: 10 issued 0\n3s 12:00:02: drift -50%\n3s 12:00:02: 20 issued 0",
		},
	} {
		if got := timeline(played(t, c.chain, c.script)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, got, c.want)
		}
	}
}

// With one worker there is no other.
func TestWithOneWorkerASwitchFails(t *testing.T) {
	r := played(t, "switch, refuse", "run 1s, back 1h, run 1s", func(c *rehearsal) { c.Workers = 1 })
	last := r.Rows[len(r.Rows)-1]
	if last.Got != gotRefused || !errors.Is(last.Err, firn.ErrClockBack) || !strings.Contains(last.Err.Error(), "none of the 1 workers is free at the clock's time") || r.Switches != 0 {
		t.Errorf("%+v", last)
	}
}

// The stopped clock ends no tick: a burst uses up its sequence, and waits until the clock goes on.
func TestABurstOnAStoppedClockWaitsUntilItRuns(t *testing.T) {
	r := played(t, "refuse", "stop 10s, run 1s", func(c *rehearsal) {
		c.Generator.Layout, _ = firn.ParseLayout("41/0/10/3")
		c.Generator.Start = firn.StartZero
	})
	want := "0s 12:00:00: stop 10s\n0s 12:00:00: 8 issued 0\n10s 12:00:00: run 1s\n800ms 12:00:00: 1 waited 0 waited 9.201s\n10.001s 12:00:00: 10 issued 0"
	if got := timeline(r); got != want || r.LongestWait != 9201*time.Millisecond {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestTheStripHasTheMostNotableOfEachPart(t *testing.T) {
	r := played(t, "wait 500ms, switch", "run 1s, back 400ms, run 1s, back 1h, run 1s")
	signs := map[string]string{"": " ", gotIssued: ".", gotWaited: "w", gotSwitched: "s"}
	strip := ""
	for _, got := range r.Strip {
		strip += signs[got]
	}
	if want := "..........wwww......s........."; strip != want {
		t.Errorf("%s, want %s", strip, want)
	}
	if r := played(t, "refuse", "run 1h"); len(r.Strip) != 72 {
		t.Errorf("36,000 calls in %d parts", len(r.Strip))
	}
}

func TestWhatCannotBePlayedIsRefused(t *testing.T) {
	script, err := parseScript("run 1000s")
	if err != nil {
		t.Fatal(err)
	}
	good := rehearsal{Script: script, Every: time.Second, Start: noon, Workers: 1}
	good.Generator.Layout = firn.DefaultLayout()
	for want, change := range map[string]func(*rehearsal){
		"": func(*rehearsal) {},
		"number of calls 1000000 is out of range":                       func(c *rehearsal) { c.Every = time.Millisecond },
		"number of workers 0 is out of range":                           func(c *rehearsal) { c.Workers = 0 },
		"number of workers 1025 is out of range: 1 to 1024 are allowed": func(c *rehearsal) { c.Workers = 1025 },
		"(the epoch and the end of layout 41/0/10/12)":                  func(c *rehearsal) { c.Start = time.Unix(0, 0) },
		"choose clock wall":                                             func(c *rehearsal) { c.Generator.Rollback = firn.Rollback{firn.Refuse()} },
	} {
		cfg := good
		change(&cfg)
		_, err := rehearse(t.Context(), cfg)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rehearse(ctx, good); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
