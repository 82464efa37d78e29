// Command outage measures how long requests to firn serve take: at half of the greatest load, and
// while its store is unreachable, its configuration is reloaded, or another process takes its worker.
// Run it in the root of the repository; it needs redis-server and eight minutes.
//
//	go run ./bench/outage
//
// Calls begin on schedule and are timed from when they were due (firn bench --rate), so that all calls
// during a pause show it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/program"
	"github.com/firn-id/firn/store/storetest/servers"
)

// settings are those of a run.
type settings struct {
	callers  int
	duration time.Duration // of each measurement
	rate     int           // of each of the loads while something happens, in calls a second
	rounds   int
	only     string // events with these words
}

func main() {
	var s settings
	flag.IntVar(&s.callers, "callers", 32, "callers of a load")
	flag.DurationVar(&s.duration, "duration", 8*time.Second, "of each measurement, at least 6s")
	flag.IntVar(&s.rate, "rate", 300, "calls a second of each of the six loads while something happens")
	flag.IntVar(&s.rounds, "rounds", 3, "how often everything is measured; prints medians of rates and quantiles, and the greatest of all maxima")
	flag.StringVar(&s.only, "only", "", "only the events with these words, such as \"stands still\"")
	flag.Parse()
	if s.duration < 6*time.Second || s.rounds < 1 || s.callers < 1 || s.rate < 1 {
		fmt.Fprintln(os.Stderr, "outage: -duration must be at least 6s; -rounds, -callers and -rate at least 1")
		os.Exit(2)
	}
	if err := host.Run(func(h *host.Host) error { return run(h, os.Stdout, s) }); err != nil {
		fmt.Fprintln(os.Stderr, "outage:", err)
		os.Exit(1)
	}
}

func run(t testing.TB, out io.Writer, s settings) error {
	firn, err := program.BuildFirn(t.TempDir())
	if err != nil {
		return err
	}
	redis := servers.Redis(t)
	server := startServer(t, firn, redis.Addr())
	if s.only == "" {
		if err := saturation(out, s, server); err != nil {
			return err
		}
	}
	return happenings(out, s, server, redis)
}

// saturation measures the greatest rate of each protocol, and how long calls take at half of it.
func saturation(out io.Writer, s settings, server *server) error {
	fmt.Fprintf(out, "One snowflake id a call, %d callers; medians of %d\n\n", s.callers, s.rounds)
	fmt.Fprintln(out, "| protocol | calls a second | at half of that: median | p99 | p99.9 | greatest | calls > 50 ms |")
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, t := range server.targets("orders") {
		var full, half []result
		for range s.rounds {
			most, err := server.bench(t, s, 0)
			if err != nil {
				return err
			}
			at, err := server.bench(t, s, int(most.PerSecond/2))
			if err != nil {
				return err
			}
			full, half = append(full, most), append(half, at)
		}
		m := merge(half)
		fmt.Fprintf(out, "| %s | %.0f | %v | %v | %v | %v | %d of %d |\n", t.protocol, merge(full).PerSecond,
			short(m.Median), short(m.P99), short(m.P999), short(m.Max), m.Slow, m.Timed)
	}
	fmt.Fprintln(out)
	return nil
}

// happenings measures all protocols and kinds at once, at a moderate rate, during events.
func happenings(out io.Writer, s settings, server *server, redis *servers.Server) error {
	fmt.Fprintf(out, "Six loads at once, each of %d calls a second; medians of %d, and the greatest of all.\n", s.rate, s.rounds)
	fmt.Fprintln(out, "In the server: requests of the protocol that took longer than 50 ms there. A timer: how late an independent timer was meanwhile.")
	fmt.Fprintln(out, "\n| what happens | protocol | kind | p99.9 | greatest | calls > 50 ms | in the server | a timer |")
	fmt.Fprintln(out, "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
	targets := append(server.targets("orders"), server.targets("items")...)
	for _, e := range events(server, redis) {
		if !strings.Contains(e.name, s.only) {
			continue
		}
		results := make([][]result, len(targets))
		var late time.Duration
		before, err := server.slow()
		if err != nil {
			return err
		}
		for range s.rounds {
			found, timer, err := during(s, server, targets, e.happen)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			late = max(late, timer)
			for i, r := range found {
				results[i] = append(results[i], r)
			}
		}
		after, err := server.slow()
		if err != nil {
			return err
		}
		for i, t := range targets {
			m := merge(results[i])
			fmt.Fprintf(out, "| %s | %s | %s | %v | %v | %d of %d | %d | %v |\n", e.name, t.protocol, t.kind,
				short(m.P999), short(m.Max), m.Slow, m.Timed, after[t.protocol]-before[t.protocol], short(late))
		}
	}
	return nil
}

// short rounds a duration for printing.
func short(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
