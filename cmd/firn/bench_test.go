package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/store/storetest/servers"
)

// benched is the JSON that a benchmark prints.
type benched struct {
	Target     string `json:"target"`
	IDs        int64  `json:"ids"`
	Duplicates int64  `json:"duplicates"`
	Verified   bool   `json:"verified"`
	Timed      int64  `json:"calls_timed"`
	Median     int64  `json:"median_ns"`
	P99        int64  `json:"p99_ns"`
	P999       int64  `json:"p999_ns"`
	Max        int64  `json:"max_ns"`
	Slow       *int64 `json:"calls_over_50ms"`
	Unbegun    int64  `json:"calls_not_begun"`
}

func TestBenchMeasuresGeneratorsAndServers(t *testing.T) {
	run := session(t)
	var http string
	for address := range serving(t, 1) {
		http = address
	}
	redis := servers.Redis(t, "--requirepass", "geheim")
	atRedis := fmt.Sprintf("redis://:geheim@%s", redis.Addr())
	for _, args := range []string{
		"--store memory:",
		"--store memory: --batch 100",
		http + "/orders",
		http + "/orders --batch 1000",
		http + "/orders --buffered",
		http + "/orders --buffered --batch 10",
		http + "/txn",
		atRedis,
		atRedis + "/other --pipeline 16",
		http + "/orders --rate 500/s",
		http + "/orders --rate 500/s --buffered",
		atRedis + "/paced --rate 500/s --pipeline 4",
		strings.Replace(http, "http://", "grpc://", 1) + "/orders --rate 500/s",
	} {
		status, out := run(nil, strings.Fields("bench --duration 200ms --callers 3 --verify --json "+args)...)
		var b benched
		if err := json.Unmarshal([]byte(out), &b); err != nil || status != 0 {
			t.Errorf("firn bench %s exits with %d: %s", args, status, out)
			continue
		}
		if b.IDs == 0 || b.Duplicates != 0 || !b.Verified || b.Timed == 0 || b.Median > b.P99 || b.P99 > b.P999 || b.P999 > b.Max || b.Max == 0 || b.Slow == nil ||
			strings.Contains(args, "--rate") && b.Timed != 100 ||
			strings.Contains(out, "geheim") {
			t.Errorf("firn bench %s: %s", args, out)
		}
	}
	status, out := run(nil, "bench", "--duration", "50ms", "--pipeline", "4", atRedis)
	if want := `(?s)ids in .* s from redis://…@127.* a second.*4 ids per call, 4 commands at once\ncall latency: median .*, p99 .*, p99\.9 .*, max .*took longer than 50ms`; status != 0 || !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("%d: %s", status, out)
	}
}

func TestBenchReportsThatTheRateWasNotReached(t *testing.T) {
	run := session(t)
	redis := servers.Redis(t)
	status, out := run(nil, "bench", "--duration", "100ms", "--rate", "1000000/s", "redis://"+redis.Addr())
	if want := `1 id per call, 1000000/s calls due\n(?s).*\(100,000 timed\).*\n[0-9,]+ calls? (was|were) due but not started`; status != 0 || !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("%d: %s", status, out)
	}
}

func TestBenchRefusesBadTargetsAndFlags(t *testing.T) {
	run := session(t)
	var http string
	for address := range serving(t, 1) {
		http = address
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"ftp://127.0.0.1:7070", 2, `"ftp://127.0.0.1:7070" is not a valid target: write grpc://, grpcs://, http://, https://, redis://, rediss:// with HOST:PORT`},
		{"127.0.0.1:7070", 2, `is not a valid target: write grpc://`},
		{"--buffered grpc://h", 2, `--buffered for http://`},
		{"grpc://u:geheim@h", 2, `is not a valid target: write grpc://HOST:PORT`},
		{"http://u:geheim@h", 2, `is not a valid target: write http://HOST:PORT`},
		{"http://h/a/%20", 2, `is not a valid namespace name`},
		{"--pipeline 2 http://h", 2, `--pipeline is for redis://`},
		{"--batch 2 redis://h", 2, `INCR gives one id: --pipeline`},
		{"--buffered redis://h", 2, `--buffered and --token-file are for http://`},
		{"redis://:geheim@h:x", 2, `target "redis://…@h:x": the port of host "h"`},
		{"redis://a,b", 2, `one host is measured`},
		{"--pipeline -1 redis://h", 2, `--pipeline -1 is out of range: 1 to 10000`},
		{"--pipeline many redis://h", 2, `--pipeline "many" is not a valid number of commands: 1 to 10000`},
		{"--rate 10/s", 2, `--rate, --pipeline, --buffered and --token-file need a server: give its URL`},
		{"--rate 10 " + http, 2, `"10" is not a valid rate of calls (--rate): write calls in a time, as in 5000/s or 600/m, at most 1000000/s`},
		{"--rate 2000000/s " + http, 2, `at most 1000000/s`},
		{"--rate 10/s grpc://h?stream=true", 2, `--rate is for requests: a server fills a stream as fast as it is read`},
		{"--rate 10/s redis://127.0.0.1:1", 1, `INCR bench: dial tcp 127.0.0.1:1: connect: connection refused`},
		{"--buffered", 2, `need a server: give its URL`},
		{"--processes 2 " + http, 2, `--processes are for a benchmark here`},
		{"--token-file nosuch " + http, 1, `token: open nosuch`},
		{"--token-file " + token + " " + http + "/nosuch", 1, `404 unknown_namespace: unknown namespace "nosuch"`},
		{"--buffered " + http + "/txn", 1, `unsupported kind: sequence promises that each id is greater`},
		{http + "/visits", 1, `ids of kind uuid, or with a prefix, are texts; use Client.Texts`},
		{"http://127.0.0.1:1", 1, `http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused`},
		{"--buffered http://127.0.0.1:1", 1, `no ids were issued within --duration: http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused`},
		{"redis://127.0.0.1:1", 1, `INCR bench: dial tcp 127.0.0.1:1: connect: connection refused`},
	} {
		status, out := run(nil, strings.Fields("bench --duration 100ms "+test.args)...)
		if status != test.status || !strings.Contains(out, test.want) || strings.Contains(out, "geheim") || (status == 2) != strings.Contains(out, "Try: firn bench") {
			t.Errorf("firn bench %s exits with %d: %s", test.args, status, out)
		}
	}
}

func TestBenchOfProcessesCreatesTheDefaultStore(t *testing.T) {
	home := t.TempDir()
	status, output := session(t)([]string{"HOME=" + home}, "bench", "--processes", "2", "--duration", "10ms", "--json")
	if status != 0 || !strings.Contains(output, `"processes"`) {
		t.Errorf("%d: %s", status, output)
	}
	if _, err := os.Stat(filepath.Join(home, ".local", "state", "firn")); err != nil {
		t.Error(err)
	}
}
