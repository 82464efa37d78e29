// Command resp measures INCR over the Redis protocol and compares Firn with redis-server. Both are
// driven by redis-benchmark, in turn and several times, so that other load on the machine affects both.
//
//	make build && go run ./bench/resp
package main

import (
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/program"
	"github.com/firn-id/firn/store/storetest/servers"
)

func main() {
	firn := flag.String("firn", "bin/firn", "the binary to measure")
	rounds := flag.Int("rounds", 5, "how often each is measured; prints medians")
	clients := flag.Int("clients", 50, "connections")
	seconds := flag.Float64("seconds", 1.5, "about how long one measurement takes")
	check := flag.Bool("check", false, "fail if Firn is below 0.8 of redis-server at pipeline 1, or below it at 16 and 64")
	flag.Parse()
	if err := host.Run(func(h *host.Host) error { return measure(h, os.Stdout, *firn, *rounds, *clients, *seconds, *check) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// config has namespaces of both kinds for which INCR is used.
const config = `store: "memory:"
namespaces:
  orders: {layout: firn}
  items:  {kind: segment}
`

// A target is one side of the comparison.
type target struct {
	name, address, key string
}

// A result has the figures of redis-benchmark.
type result struct{ perSecond, p50, p99 float64 }

// loads are the measured loads. With one thread, the default, redis-benchmark itself is the bottleneck
// when pipelines are long.
var loads = []struct {
	pipeline, threads int
	least             float64 // of redis-server's rate
}{{1, 1, 0.8}, {16, 1, 1}, {64, 1, 1}, {16, 2, 1}, {64, 2, 1}}

func measure(t testing.TB, out io.Writer, firn string, rounds, clients int, seconds float64, check bool) error {
	if _, err := exec.LookPath(firn); err != nil {
		return fmt.Errorf("%w (build it with make build)", err)
	}
	redis := servers.Redis(t, "--appendonly", "no") // as in its own benchmarks
	server := program.StartFirn(t, firn, config)
	targets := []target{{"redis-server", redis.Addr(), "orders"}, {"firn snowflake", server.RESP, "orders"}, {"firn segment", server.RESP, "items"}}
	fmt.Fprintf(out, "INCR by redis-benchmark, %d connections; median of %d rounds (least to most)\n\n", clients, rounds)
	fmt.Fprintln(out, "| pipeline | threads | server | requests a second | of redis-server | p50 ms | p99 ms |\n| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
	var missed []string
	for _, p := range loads {
		results := make([][]result, len(targets))
		count, enough := 20_000*p.pipeline, 0 // to warm up, and to find out how many requests are enough
		for round := -1; round < rounds; round++ {
			for i, t := range targets {
				r, err := benchmark(t, clients, p.pipeline, p.threads, count)
				if err != nil {
					return err
				}
				if round >= 0 {
					results[i] = append(results[i], r)
				}
				if round < 0 && i == 0 {
					// With threads it checks only every quarter of a second whether it is done.
					enough = int(r.perSecond * seconds * float64(2*p.threads-1))
				}
			}
			count = max(count, enough)
		}
		base := program.Median(results[0], rate)
		for i, t := range targets {
			rates := program.Median(results[i], rate)
			least := slices.MinFunc(results[i], byRate)
			most := slices.MaxFunc(results[i], byRate)
			fmt.Fprintf(out, "| %d | %d | %s | %.0f (%.0f to %.0f) | %.2f | %.2f | %.2f |\n", p.pipeline, p.threads, t.name, rates, least.perSecond, most.perSecond, rates/base,
				program.Median(results[i], func(r result) float64 { return r.p50 }), program.Median(results[i], func(r result) float64 { return r.p99 }))
			if rates < p.least*base {
				missed = append(missed, fmt.Sprintf("%s at pipeline %d with %d threads: %.2f, at least %.1f is required", t.name, p.pipeline, p.threads, rates/base, p.least))
			}
		}
	}
	if check && len(missed) > 0 {
		return errors.New(strings.Join(missed, "\n"))
	}
	return nil
}

func rate(r result) float64 { return r.perSecond }

func byRate(a, b result) int { return int(a.perSecond - b.perSecond) }

// benchmark runs redis-benchmark once.
func benchmark(t target, clients, pipeline, threads, count int) (result, error) {
	_, port, err := net.SplitHostPort(t.address)
	if err != nil {
		return result{}, err
	}
	args := []string{"-p", port, "-c", strconv.Itoa(clients), "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(count), "--csv"}
	if threads > 1 {
		args = append(args, "--threads", strconv.Itoa(threads))
	}
	cmd := exec.Command("redis-benchmark", append(args, "INCR", t.key)...)
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out)
	}
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(rows) != 2 {
		return result{}, fmt.Errorf("redis-benchmark printed %q: %w", out, err)
	}
	value := func(column string) float64 {
		at := slices.Index(rows[0], column)
		if at < 0 {
			err = errors.Join(err, fmt.Errorf("redis-benchmark printed no %s: %q", column, out))
			return 0
		}
		v, bad := strconv.ParseFloat(rows[1][at], 64)
		err = errors.Join(err, bad)
		return v
	}
	r := result{value("rps"), value("p50_latency_ms"), value("p99_latency_ms")}
	return r, err
}
