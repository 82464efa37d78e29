// Command serving compares firn serve over HTTP with a bare net/http handler, both driven by wrk, and over gRPC with a
// server of grpc-go that answers a constant, both driven by h2load. It prints medians and ratios. Run it in the root of
// the repository; it needs wrk, h2load (Debian: nghttp2-client), Linux and three minutes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/program"
)

// bareAddress and bareGRPC are environment variables that make this program a server to compare with.
const (
	bareAddress = "FIRN_BARE"
	bareGRPC    = "FIRN_BARE_GRPC"
)

// constant is as long as an answer with one id.
const constant = `{"namespace":"orders","ids":["249034572345723904"]}` + "\n"

const configuration = `
store: "memory:"
namespaces:
  orders: {}                                     # a snowflake
  wide:   {pool: wide, layout: 41/0/0/22}        # more ids a millisecond than anyone asks for
  users:  {kind: segment, max_step: 100000000}
`

func main() {
	if address := os.Getenv(bareAddress); address != "" {
		fmt.Fprintln(os.Stderr, bare(address))
		os.Exit(1)
	}
	if address := os.Getenv(bareGRPC); address != "" {
		fmt.Fprintln(os.Stderr, grpcConstant(address))
		os.Exit(1)
	}
	rounds := flag.Int("rounds", 5, "rounds of all measurements; medians are of these")
	duration := flag.Duration("duration", 3*time.Second, "of each measurement")
	flag.Parse()
	if err := host.Run(func(h *host.Host) error { return run(h, *rounds, *duration) }); err != nil {
		fmt.Fprintln(os.Stderr, "serving:", err)
		os.Exit(1)
	}
}

// bare serves a constant.
func bare(address string) error {
	body := []byte(constant)
	server := &http.Server{
		Addr: address, ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body) // a failed write means that the client has gone
		}),
	}
	return server.ListenAndServe()
}

// A row is something measured.
type row struct {
	name      string
	ids       int // in an answer; 0: it is a server to compare with
	server    *program.Program
	load      load
	perSecond []float64
	processor []float64 // microseconds of the server's processors, for each request
}

// measure measures the row once.
func (r *row) measure(d time.Duration) error {
	before, err := processorTime(r.server.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	perSecond, err := r.load(d)
	if err != nil {
		return err
	}
	requests := perSecond * time.Since(began).Seconds()
	after, err := processorTime(r.server.PID())
	r.perSecond = append(r.perSecond, perSecond)
	r.processor = append(r.processor, float64((after-before).Microseconds())/requests)
	return err
}

// A load drives a server for a time and returns requests a second.
type load func(time.Duration) (float64, error)

func run(t testing.TB, rounds int, duration time.Duration) (err error) {
	dir := t.TempDir()
	bare, err := startBare(bareAddress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Kill()) }()
	goGRPC, err := startBare(bareGRPC)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, goGRPC.Kill()) }()
	path, err := program.BuildFirn(dir)
	if err != nil {
		return err
	}
	firn := program.StartFirn(t, path, configuration)
	in, err := requests(dir)
	if err != nil {
		return err
	}
	constant, server, port := "http://"+bare.Address+"/", "http://"+firn.Address, "http://"+firn.GRPC
	overHTTP := []*row{
		{name: "net/http, a constant", server: bare, load: wrk(32, constant)},
		{name: "one snowflake id, JSON", ids: 1, load: wrk(32, server+"/v1/ids/orders")},
		{name: "one segment id, JSON", ids: 1, load: wrk(32, server+"/v1/ids/users")},
		{name: "1,000 snowflake ids, text", ids: 1000, load: wrk(8, server+"/v1/ids/wide?count=1000", "-H", "Accept: text/plain")},
		{name: "1,000 segment ids, text", ids: 1000, load: wrk(8, server+"/v1/ids/users?count=1000", "-H", "Accept: text/plain")},
		{name: "1,000 snowflake ids, runs, Connect", ids: 1000, load: wrk(32, server+generate, "-s", in.connect)},
	}
	overGRPC := []*row{
		{name: "grpc-go, a constant", server: goGRPC, load: h2load("http://"+goGRPC.Address+generate, in.one)},
		{name: "one snowflake id", ids: 1, load: h2load(port+generate, in.one)},
		{name: "1,000 snowflake ids, runs", ids: 1000, load: h2load(port+generate, in.runs)},
		{name: "one snowflake id, on the port of HTTP", ids: 1, load: h2load(server+generate, in.one)},
		{name: "1,000 snowflake ids, runs, on the port of HTTP", ids: 1000, load: h2load(server+generate, in.runs)},
	}
	rows := slices.Concat(overHTTP, overGRPC)
	for range rounds {
		for _, r := range rows {
			if r.server == nil {
				r.server = &firn.Program
			}
			if err := r.measure(duration); err != nil {
				return err
			}
		}
	}
	table("HTTP", overHTTP)
	table("gRPC, 2 connections with 100 calls at once", overGRPC)
	return nil
}

// table prints the medians of rows, beside the first. Ratios are taken within a round, where both had the same load on
// the machine.
func table(title string, rows []*row) {
	fmt.Printf("\n| %s | requests a second | × the constant | µs of processor time a request | × the constant | ids a second |\n", title)
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: |")
	for _, r := range rows {
		rates, times := make([]float64, len(r.perSecond)), make([]float64, len(r.perSecond))
		for i := range rates {
			rates[i] = r.perSecond[i] / rows[0].perSecond[i]
			times[i] = r.processor[i] / rows[0].processor[i]
		}
		fmt.Printf("| %s | %.0f | %.2f | %.1f | %.2f | %.1f M |\n",
			r.name, median(r.perSecond), median(rates), median(r.processor), median(times), median(r.perSecond)*float64(r.ids)/1e6)
	}
}

// startBare starts this program again, as a server to compare with.
func startBare(variable string) (*program.Program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := program.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &program.Program{Address: address, Path: self, Env: []string{variable + "=" + address}}
	return p, p.Start()
}

// generate is the path of a call for ids.
const generate = "/firn.v1.IDService/Generate"

// askRuns asks for 1,000 ids of namespace wide as runs: fields 1 to 3 of GenerateRequest. AskOne asks for one of orders.
var (
	askRuns = []byte("\x0a\x04wide\x10\xe8\x07\x18\x02")
	askOne  = []byte("\x0a\x06orders")
)

// inputs are the files for the load generators: a script for wrk that posts askRuns for Connect, and for h2load the
// messages after gRPC's prefix of five bytes.
type inputs struct{ connect, runs, one string }

func requests(dir string) (inputs, error) {
	in := inputs{filepath.Join(dir, "connect.lua"), filepath.Join(dir, "runs.bin"), filepath.Join(dir, "one.bin")}
	var bytes strings.Builder
	for _, b := range askRuns {
		fmt.Fprintf(&bytes, "\\%03d", b)
	}
	script := fmt.Sprintf("wrk.method = 'POST'\nwrk.body = '%s'\nwrk.headers['Content-Type'] = 'application/proto'\n", bytes.String())
	framed := func(message []byte) []byte { return append([]byte{0, 0, 0, 0, byte(len(message))}, message...) }
	return in, errors.Join(os.WriteFile(in.connect, []byte(script), 0o600),
		os.WriteFile(in.runs, framed(askRuns), 0o600), os.WriteFile(in.one, framed(askOne), 0o600))
}

func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }

var (
	wrkRate    = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	h2loadRate = regexp.MustCompile(`finished in [^,]*, ([0-9.]+) req/s`)
	h2loadData = regexp.MustCompile(`\([1-9]\d*\) data`) // calls that fail answer without any
	h2loadBad  = regexp.MustCompile(`[1-9]\d* (failed|errored|timeout)`)
)

// wrk drives HTTP/1.1. Answers other than 2xx are an error.
func wrk(connections int, url string, more ...string) load {
	return func(d time.Duration) (float64, error) {
		args := append([]string{"-t1", fmt.Sprintf("-c%d", connections), "-d" + strconv.Itoa(int(d.Seconds())) + "s"}, more...)
		out, err := exec.Command("wrk", append(args, url)...).CombinedOutput()
		found := wrkRate.FindSubmatch(out)
		if err != nil || found == nil || strings.Contains(string(out), "Non-2xx") {
			return 0, fmt.Errorf("wrk %s: %w\n%s", url, err, out)
		}
		return strconv.ParseFloat(string(found[1]), 64)
	}
}

// h2load drives gRPC, over 2 connections with 100 calls at once.
func h2load(url, body string) load {
	return func(d time.Duration) (float64, error) {
		out, err := exec.Command("h2load", "-c", "2", "-m", "100", "-D", strconv.Itoa(int(d.Seconds())),
			"-d", body, "-H", "content-type: application/grpc", "-H", "te: trailers", url).CombinedOutput()
		found := h2loadRate.FindSubmatch(out)
		if err != nil || found == nil || !h2loadData.Match(out) || h2loadBad.Match(out) {
			return 0, fmt.Errorf("h2load %s: %w\n%s", url, err, out)
		}
		return strconv.ParseFloat(string(found[1]), 64)
	}
}
