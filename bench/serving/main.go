// Command serving compares firn serve over HTTP with a bare net/http handler, both driven by wrk,
// measures it over gRPC with h2load, and prints medians and ratios. Run it in the root of the
// repository; it needs wrk, h2load (Debian: nghttp2-client) and three minutes.
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
	"time"

	"github.com/firn-id/firn/bench/internal/program"
)

// bareAddress is an environment variable that makes this program the handler to compare with.
const bareAddress = "FIRN_BARE"

// constant is as long as an answer with one id.
const constant = `{"namespace":"orders","ids":["249034572345723904"]}` + "\n"

const configuration = `
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
	rounds := flag.Int("rounds", 5, "rounds of all measurements; medians are of these")
	duration := flag.Duration("duration", 3*time.Second, "of each measurement")
	flag.Parse()
	if err := run(*rounds, *duration); err != nil {
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
	ids       int // in an answer; 0: it is the handler to compare with
	load      load
	perSecond []float64
}

// A load drives a server for a time and returns requests a second.
type load func(time.Duration) (float64, error)

func run(rounds int, duration time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "firn-serving-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bare, err := startBare()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Kill()) }()
	firn, err := startFirn(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, firn.End()) }()
	connect, grpc, err := requests(dir)
	if err != nil {
		return err
	}
	constant, server := "http://"+bare.Address+"/", "http://"+firn.Address
	rows := []*row{
		{name: "net/http, a constant", load: wrk(32, constant)},
		{name: "one snowflake id, JSON", ids: 1, load: wrk(32, server+"/v1/ids/orders")},
		{name: "one segment id, JSON", ids: 1, load: wrk(32, server+"/v1/ids/users")},
		{name: "1,000 snowflake ids, text", ids: 1000, load: wrk(8, server+"/v1/ids/wide?count=1000", "-H", "Accept: text/plain")},
		{name: "1,000 segment ids, text", ids: 1000, load: wrk(8, server+"/v1/ids/users?count=1000", "-H", "Accept: text/plain")},
		{name: "1,000 snowflake ids, runs, Connect", ids: 1000, load: wrk(32, server+generate, "-s", connect)},
		{name: "1,000 snowflake ids, runs, gRPC", ids: 1000, load: h2load(2, 100, server+generate, grpc)},
	}
	for range rounds {
		for _, r := range rows {
			perSecond, err := r.load(duration)
			if err != nil {
				return err
			}
			r.perSecond = append(r.perSecond, perSecond)
		}
	}
	fmt.Println("| | requests a second | × the constant | ids a second |")
	fmt.Println("| --- | --- | --- | --- |")
	for _, r := range rows {
		// Compare within a round, where both had the same load on the machine.
		ratios := make([]float64, rounds)
		for i := range ratios {
			ratios[i] = r.perSecond[i] / rows[0].perSecond[i]
		}
		fmt.Printf("| %s | %.0f | %.2f | %.1f M |\n", r.name, median(r.perSecond), median(ratios), median(r.perSecond)*float64(r.ids)/1e6)
	}
	return nil
}

// startBare starts this program again, as the handler to compare with.
func startBare() (*program.Program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address, err := program.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &program.Program{Address: address, Path: self, Env: []string{bareAddress + "=" + address}}
	return p, p.Start()
}

// startFirn builds and starts the server.
func startFirn(dir string) (*program.Program, error) {
	firn, err := program.BuildFirn(dir)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "firn.yaml")
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	address, err := program.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &program.Program{
		Address: address, Path: firn, Says: program.Serving,
		Args: []string{"serve", "--store", "memory:", "--config", config, "--http", address, "--resp", "off"},
	}
	return p, p.Start()
}

// generate is the path of a call for ids.
const generate = "/firn.v1.IDService/Generate"

// message asks for 1,000 ids of namespace wide as runs: fields 1 to 3 of GenerateRequest.
var message = []byte("\x0a\x04wide\x10\xe8\x07\x18\x02")

// requests writes the input of the load generators: a script for wrk that posts the message for Connect,
// and for h2load the message after gRPC's prefix of five bytes.
func requests(dir string) (connect, grpc string, err error) {
	connect, grpc = filepath.Join(dir, "connect.lua"), filepath.Join(dir, "grpc.bin")
	var bytes strings.Builder
	for _, b := range message {
		fmt.Fprintf(&bytes, "\\%03d", b)
	}
	script := fmt.Sprintf("wrk.method = 'POST'\nwrk.body = '%s'\nwrk.headers['Content-Type'] = 'application/proto'\n", bytes.String())
	framed := append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
	return connect, grpc, errors.Join(os.WriteFile(connect, []byte(script), 0o600), os.WriteFile(grpc, framed, 0o600))
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

// h2load drives gRPC; calls is the number of concurrent calls per connection.
func h2load(connections, calls int, url, body string) load {
	return func(d time.Duration) (float64, error) {
		out, err := exec.Command("h2load", "-c", strconv.Itoa(connections), "-m", strconv.Itoa(calls), "-D", strconv.Itoa(int(d.Seconds())),
			"-d", body, "-H", "content-type: application/grpc", "-H", "te: trailers", url).CombinedOutput()
		found := h2loadRate.FindSubmatch(out)
		if err != nil || found == nil || !h2loadData.Match(out) || h2loadBad.Match(out) {
			return 0, fmt.Errorf("h2load %s: %w\n%s", url, err, out)
		}
		return strconv.ParseFloat(string(found[1]), 64)
	}
}
