package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// clientTimeout bounds a run of a third-party client.
const clientTimeout = 2 * time.Minute

// forClients is the configuration of the server for third-party clients.
const forClients = `
store: "memory:"
listen: {http: "127.0.0.1:0", resp: "127.0.0.1:0"}
namespaces:
  orders: {layout: 41/0/0/22}
  items:  {kind: segment}
  txn:    {kind: sequence}
  uid:    {kind: uuid}
`

// startServer runs firn serve, and returns the port of the Redis protocol once it serves. The test
// fails if its shutdown fails.
func startServer(t *testing.T) (port string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(config, []byte(forClients), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("firn", "serve", "--config", config)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	_, port, _ = serveUntilTheEnd(t, cmd)
	return port
}

// serveUntilTheEnd starts a server and returns its ports once it serves. At the end of the test its
// process group is interrupted, as by Ctrl-C, and it must release its workers.
func serveUntilTheEnd(t *testing.T, cmd *exec.Cmd) (http, resp, grpc string) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run has the server as a child
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	closedOrderly := regexp.MustCompile("worker released|segments closed")
	// The log may be text or JSON, and the addresses with or without TLS.
	addresses := regexp.MustCompile(`serving\W+http\W+https?://127\.0\.0\.1:(\d+)\W+resp\W+rediss?://127\.0\.0\.1:(\d+)(?:\W+grpc\W+grpcs?://127\.0\.0\.1:(\d+))?`)
	found := make(chan []string, 1)
	ended := make(chan struct{})
	var all strings.Builder // must be read only after ended is closed
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if m := addresses.FindStringSubmatch(lines.Text()); m != nil {
				found <- m
			}
		}
	}()
	t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Error(err)
		}
		<-ended
		err := cmd.Wait()
		if goRun := filepath.Base(cmd.Path) == "go"; err != nil && !goRun || !closedOrderly.MatchString(all.String()) {
			t.Errorf("%s: %v: %s", cmd, err, all.String()) // an interrupted go run always exits with 1
		}
	})
	select {
	case m := <-found:
		return m[1], m[2], m[3]
	case <-ended:
		t.Fatalf("%s ended: %s", cmd, all.String())
		return "", "", ""
	}
}

// needClient skips the test, or fails it if CI=true, if a client is not installed.
func needClient(t *testing.T, installed bool, what string) {
	t.Helper()
	switch {
	case installed:
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is missing: run scripts/need-clients and scripts/need-tools", what)
	default:
		t.Skipf("%s is missing: run scripts/need-clients and scripts/need-tools", what)
	}
}

// run runs a client and returns its output.
func run(t *testing.T, input, program string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	needClient(t, err == nil, program)
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestRedisCLI(t *testing.T) {
	port := startServer(t)
	for _, c := range []struct{ args, want string }{
		{"PING", `PONG\n`},
		{"INCR items", `1\n`},
		{"INCRBY items 10", `11\n`},
		{"INCR orders", `\d{15,19}\n`},
		{"-3 FIRN.DECODE orders 4194304", `kind snowflake\nid 4194304\nlayout 41/0/0/22\n(?s:.*)sequence 0\n`},
		{"FIRN.NEXT items COUNT 2", `12\n13\n`},
		{"-a secret --no-auth-warning PING", `PONG\n`},
		{"COMMAND COUNT", `34\n`},
		{"SETNX items 0", `0\n`},
		{"INFO memory", `# Memory\r?\nused_memory:\d+\r?\nmaxmemory:0\r?\n`},
		{"FLUSHALL", `FIRN unsupported: FLUSHALL: a namespace cannot be deleted, .*\n\n`},
		{"NOPE", `ERR unknown command 'NOPE', with args beginning with: \n\n`},
	} {
		if got := run(t, "", "redis-cli", append([]string{"-p", port}, strings.Fields(c.args)...)...); !regexp.MustCompile(`^` + c.want + `$`).MatchString(got) {
			t.Errorf("%s: %q, want %s", c.args, got, c.want)
		}
	}
	piped := run(t, strings.Repeat("INCR items\r\n", 50_000), "redis-cli", "-p", port, "--pipe")
	if !strings.Contains(piped, "errors: 0, replies: 50000") {
		t.Errorf("--pipe: %s", piped)
	}
	session := run(t, "INCR items\nINCR txn\nQUIT\n", "redis-cli", "-p", port)
	if session != "50014\n1\n" {
		t.Errorf("a session: %q", session)
	}
}

func TestRedisBenchmark(t *testing.T) {
	port := startServer(t)
	for _, args := range []string{"INCR orders", "-P 16 INCR items", "-P 64 INCR orders", "-t ping", "-3 -P 4 INCR txn"} {
		out := run(t, "", "redis-benchmark", append([]string{"-p", port, "-c", "50", "-n", "20000", "-q"}, strings.Fields(args)...)...)
		if !strings.Contains(out, "requests per second") || strings.Contains(out, "rror") || strings.Contains(out, "WARN") {
			t.Errorf("%s: %s", args, out)
		}
	}
}

func TestGoRedis(t *testing.T) {
	port := startServer(t)
	for version := 2; version <= 3; version++ {
		r := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: version, ClientName: "till"})
		ctx := t.Context()
		first, err := r.Incr(ctx, "items").Result()
		if err != nil {
			t.Fatal(err)
		}
		if id, err := r.IncrBy(ctx, "items", 10).Result(); err != nil || id != first+10 {
			t.Errorf("RESP%d: %d, %v", version, id, err)
		}
		var before int64
		for _, pipe := range []redis.Pipeliner{r.Pipeline(), r.TxPipeline()} {
			for range 100 {
				pipe.Incr(ctx, "orders")
			}
			cmds, err := pipe.Exec(ctx)
			if err != nil || len(cmds) != 100 {
				t.Fatalf("RESP%d: %d, %v", version, len(cmds), err)
			}
			for _, cmd := range cmds {
				id, ok := cmd.(*redis.IntCmd)
				if !ok || id.Val() <= before {
					t.Fatalf("RESP%d: %v after %d", version, cmd, before)
				}
				before = id.Val()
			}
		}
		ids, err := r.Do(ctx, "FIRN.NEXT", "orders", "COUNT", 1000).Int64Slice()
		if err != nil || len(ids) != 1000 || ids[0] <= before {
			t.Errorf("RESP%d: %d, %v", version, len(ids), err)
		}
		fields, err := r.Do(ctx, "FIRN.DECODE", "orders", ids[0]).Result()
		if err != nil || !strings.Contains(fmt.Sprint(fields), fmt.Sprint(ids[0])) {
			t.Errorf("RESP%d: %v, %v", version, fields, err)
		}
		if err := r.Incr(ctx, "nothere").Err(); err == nil || !strings.HasPrefix(err.Error(), "FIRN unknown_namespace: ") {
			t.Errorf("RESP%d: %v", version, err)
		}
		if name, err := r.ClientGetName(ctx).Result(); err != nil || name != "till" {
			t.Errorf("RESP%d: %q, %v", version, name, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPythonsRedis(t *testing.T) {
	port := startServer(t)
	const python = "/usr/bin/python3" // Debian's Python, which finds Debian's packages
	needClient(t, exec.Command(python, "-c", "import redis").Run() == nil, "python3-redis")
	if out := run(t, "", python, "testdata/clients/try.py", port); out != "ok\n" {
		t.Error(out)
	}
}

func TestJavaScriptsRedisClients(t *testing.T) {
	port := startServer(t)
	installed, err := filepath.Abs("../../.tools/clients")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(installed, "node_modules"))
	needClient(t, err == nil, "ioredis")
	if out := run(t, "", "node", "testdata/clients/try.mjs", installed, port); out != "ok\n" {
		t.Error(out)
	}
}
