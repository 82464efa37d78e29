// Command resp measures INCR over the Redis protocol: Firn beside redis-server itself,
// both driven by redis-benchmark, in turn and several times, so that what else the
// machine does hits both.
//
//	make build && go run ./bench/resp
package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	firn := flag.String("firn", "bin/firn", "the binary to measure")
	rounds := flag.Int("rounds", 5, "how often each is measured; the median counts")
	clients := flag.Int("clients", 50, "connections")
	seconds := flag.Float64("seconds", 1.5, "about how long one measurement takes")
	check := flag.Bool("check", false, "fail if Firn is below 0.8 of redis-server at pipeline 1, or below it at 16 and 64")
	flag.Parse()
	if err := measure(os.Stdout, *firn, *rounds, *clients, *seconds, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// config has namespaces of both kinds that the usual INCR is for.
const config = `store: "memory:"
listen: {http: "127.0.0.1:0", resp: "127.0.0.1:0"}
namespaces:
  orders: {layout: firn}
  items:  {kind: segment}
`

// A target is one side of the comparison.
type target struct{ name, port, key string }

// A result is what redis-benchmark says.
type result struct{ perSecond, p50, p99 float64 }

var pipelines = []struct {
	depth int
	least float64 // of redis-server's rate
}{{1, 0.8}, {16, 1}, {64, 1}}

func measure(out io.Writer, firn string, rounds, clients int, seconds float64, check bool) (err error) {
	dir, err := os.MkdirTemp("", "firn-bench-resp")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	redis, stop, err := startRedis(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	port, stopFirn, err := startFirn(dir, firn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopFirn()) }()

	targets := []target{{"redis-server", redis, "orders"}, {"firn snowflake", port, "orders"}, {"firn segment", port, "items"}}
	fmt.Fprintf(out, "INCR by redis-benchmark, %d connections; median of %d rounds (least to most)\n\n", clients, rounds)
	fmt.Fprintln(out, "| pipeline | server | requests a second | of redis-server | p50 ms | p99 ms |\n| ---: | --- | ---: | ---: | ---: | ---: |")
	var missed []string
	for _, p := range pipelines {
		results := make([][]result, len(targets))
		count, enough := 20_000*p.depth, 0 // to warm up, and to see how many are enough
		for round := -1; round < rounds; round++ {
			for i, t := range targets {
				r, err := benchmark(t, clients, p.depth, count)
				if err != nil {
					return err
				}
				if round >= 0 {
					results[i] = append(results[i], r)
				}
				if round < 0 && i == 0 {
					enough = int(r.perSecond * seconds)
				}
			}
			count = max(count, enough)
		}
		base := median(results[0], rate)
		for i, t := range targets {
			rates := median(results[i], rate)
			least := slices.MinFunc(results[i], byRate)
			most := slices.MaxFunc(results[i], byRate)
			fmt.Fprintf(out, "| %d | %s | %.0f (%.0f to %.0f) | %.2f | %.2f | %.2f |\n", p.depth, t.name, rates, least.perSecond, most.perSecond, rates/base,
				median(results[i], func(r result) float64 { return r.p50 }), median(results[i], func(r result) float64 { return r.p99 }))
			if rates < p.least*base {
				missed = append(missed, fmt.Sprintf("%s at pipeline %d: %.2f, at least %.1f is wanted", t.name, p.depth, rates/base, p.least))
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

func median(results []result, of func(result) float64) float64 {
	values := make([]float64, len(results))
	for i, r := range results {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// benchmark runs redis-benchmark once.
func benchmark(t target, clients, pipeline, count int) (result, error) {
	cmd := exec.Command("redis-benchmark", "-p", t.port, "-c", strconv.Itoa(clients), "-P", strconv.Itoa(pipeline),
		"-n", strconv.Itoa(count), "--csv", "INCR", t.key)
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

// start starts a program, and returns how to end it.
func start(cmd *exec.Cmd) (stop func() error, err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		return errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}, nil
}

// startRedis starts a redis-server that keeps nothing, as its own benchmarks have it.
func startRedis(dir string) (port string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		return "", nil, err
	}
	stop, err = start(exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no"))
	if err != nil {
		return "", nil, err
	}
	for range 100 {
		c, dialed := net.Dial("tcp", "127.0.0.1:"+port)
		if dialed == nil {
			return port, stop, c.Close()
		}
		err = dialed
		time.Sleep(50 * time.Millisecond)
	}
	return "", nil, errors.Join(err, stop())
}

// startFirn starts the server, and returns its port for the Redis protocol.
func startFirn(dir, firn string) (port string, stop func() error, err error) {
	path := filepath.Join(dir, "firn.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.Command(firn, "serve", "--config", path)
	log, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	stop, err = start(cmd)
	if err != nil {
		return "", nil, fmt.Errorf("%w (make build makes it)", err)
	}
	address := regexp.MustCompile(`resp=redis://127\.0\.0\.1:(\d+)`)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			// Wait wants what follows to be read.
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return m[1], stop, nil
		}
	}
	return "", nil, errors.Join(errors.New("firn serve ended"), stop())
}
