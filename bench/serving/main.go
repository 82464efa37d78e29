// Command serving measures firn serve over HTTP beside a bare net/http handler, each
// driven by wrk in turn, and prints medians and ratios. Run it at the repository's top;
// it needs wrk and two minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
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

// bareAddress, in the environment, makes this program the handler to compare with.
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

// A row is something measured: requests by connections to a path of one of the servers.
type row struct {
	name        string
	path        string
	text        bool
	connections int
	ids         int // in an answer; 0: it is the handler to compare with
	perSecond   []float64
}

func run(rounds int, duration time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "firn-serving-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	firn := filepath.Join(dir, "firn")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", firn, "./cmd/firn").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	config := filepath.Join(dir, "firn.yaml")
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bareAt, err := freeAddress()
	if err != nil {
		return err
	}
	firnAt, err := freeAddress()
	if err != nil {
		return err
	}
	stopBare, err := start(bareAt, exec.Command(self), bareAddress+"="+bareAt)
	if err != nil {
		return err
	}
	defer stopBare()
	stopFirn, err := start(firnAt, exec.Command(firn, "serve", "--store", "memory:", "--config", config, "--http", firnAt, "--resp", "off"))
	if err != nil {
		return err
	}
	defer stopFirn()
	rows := []*row{
		{name: "net/http, a constant", path: "http://" + bareAt + "/", connections: 32},
		{name: "one snowflake id, JSON", path: "http://" + firnAt + "/v1/ids/orders", connections: 32, ids: 1},
		{name: "one segment id, JSON", path: "http://" + firnAt + "/v1/ids/users", connections: 32, ids: 1},
		{name: "1,000 snowflake ids, text", path: "http://" + firnAt + "/v1/ids/wide?count=1000", text: true, connections: 8, ids: 1000},
		{name: "1,000 segment ids, text", path: "http://" + firnAt + "/v1/ids/users?count=1000", text: true, connections: 8, ids: 1000},
	}
	for range rounds {
		for _, r := range rows {
			perSecond, err := wrk(r, duration)
			if err != nil {
				return err
			}
			r.perSecond = append(r.perSecond, perSecond)
		}
	}
	fmt.Println("| | requests a second | × the constant | ids a second |")
	fmt.Println("| --- | --- | --- | --- |")
	for _, r := range rows {
		// Ratios within a round, where both had the same neighbours.
		ratios := make([]float64, rounds)
		for i := range ratios {
			ratios[i] = r.perSecond[i] / rows[0].perSecond[i]
		}
		fmt.Printf("| %s | %.0f | %.2f | %.1f M |\n", r.name, median(r.perSecond), median(ratios), median(r.perSecond)*float64(r.ids)/1e6)
	}
	return nil
}

func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }

var rate = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)

// wrk drives a row and returns requests a second. Answers other than 2xx are an error.
func wrk(r *row, duration time.Duration) (float64, error) {
	args := []string{"-t1", fmt.Sprintf("-c%d", r.connections), "-d" + strconv.Itoa(int(duration.Seconds())) + "s"}
	if r.text {
		args = append(args, "-H", "Accept: text/plain")
	}
	out, err := exec.Command("wrk", append(args, r.path)...).CombinedOutput()
	found := rate.FindSubmatch(out)
	if err != nil || found == nil || strings.Contains(string(out), "Non-2xx") {
		return 0, fmt.Errorf("wrk %s: %w\n%s", r.path, err, out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// freeAddress returns an address on loopback where nothing listens.
func freeAddress() (string, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start runs a server and waits until it listens.
func start(address string, cmd *exec.Cmd, env ...string) (stop func(), err error) {
	cmd.Env = append(os.Environ(), env...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	var outcome error
	go func() { outcome = cmd.Wait(); close(ended) }()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		<-ended
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return stop, conn.Close()
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("%s: %w\n%s", cmd, outcome, said.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			stop()
			return nil, fmt.Errorf("%s does not listen on %s: %w\n%s", cmd, address, err, said.String())
		}
	}
}
