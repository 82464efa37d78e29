package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// session returns a function that runs firn in a folder of its own. HOME is set only if the
// environment has it.
func session(t *testing.T) func(environment []string, args ...string) (status int, output string) {
	folder := t.TempDir()
	var clean []string
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != "HOME" && name != "XDG_STATE_HOME" && !strings.HasPrefix(name, "FIRN_") {
			clean = append(clean, variable)
		}
	}
	for name, text := range map[string]string{
		"store.yaml": "store: sqlite:file.db\n",
		"bad.yaml":   "store: memory:x\n",
		"away.yaml":  "store: redis://127.0.0.1:1\n",
		"http.yaml":  "store: 'memory:'\nlisten: {http: '192.0.2.1:7079'}\n",
		"resp.yaml":  "store: 'memory:'\nlisten: {http: '127.0.0.1:0', resp: '192.0.2.1:7076'}\n",
		"port.yaml":  "listen: {http: '127.0.0.1:'}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(environment []string, args ...string) (int, string) {
		cmd := exec.CommandContext(t.Context(), "firn", args...)
		cmd.Dir, cmd.Env = folder, append(clean[:len(clean):len(clean)], environment...)
		out, _ := cmd.CombinedOutput() // the status says whether it failed
		return cmd.ProcessState.ExitCode(), string(out)
	}
}

func TestWrongUsageExitsWithTwoAndSaysWhatIsAllowed(t *testing.T) {
	run := session(t)
	const (
		number = `is not a valid number of ids: 1 to 9223372036854775807 are allowed, as in `
		hostly = `is not a valid address to listen on: write HOST:PORT, as in 127\.0\.0\.1:7070`
	)
	for _, test := range []struct{ environment, args, want string }{
		// malformed values of flags
		{"", "next -n 99999999999999999999", `-n "99999999999999999999" ` + number + `-n 5\n`},
		{"", "next --n=", `-n "" ` + number + `-n 5\n`},
		{"FIRN_STOR=x", "next --store memory:", `environment variable FIRN_STOR is no setting: did you mean FIRN_STORE\?\n`},
		{"FIRN_N=x", "next", `environment variable FIRN_N "x" ` + number + `FIRN_N=5\n`},
		{"", "next --worker 1e3", `--worker "1e3" is not a valid worker number: whole numbers from 0 .*, as in --worker 0\n`},
		{"", "next --worker -1", `worker -1 is out of range: 0 to 1023 are allowed`},
		{"", "next --ahead=", `--ahead "" is not a valid duration: up to 8760h, .*, as in --ahead 10ms\n`},
		{"", "next --window 99999999h", `--window "99999999h" is not a valid duration: up to 720h, as in --window 5m\n`},
		{"FIRN_WINDOW=", "next", `environment variable FIRN_WINDOW "" is not a valid duration: up to 720h, as in FIRN_WINDOW=5m\n`},
		{"", "next --json=maybe", `--json "maybe": true and false are allowed, as in --json=true\n`},
		{"", "bench --callers ten", `--callers "ten" is not a valid number of callers: 1 to 10000 are allowed, as in --callers 100\n`},

		// errors name the environment variable
		{"FIRN_WORKER=1024", "next --store memory:", `environment variable FIRN_WORKER: worker 1024 is out of range`},
		{"FIRN_LAYOUT=nosuch", "next", `environment variable FIRN_LAYOUT: "nosuch" is not a valid layout: `},
		{"FIRN_LAYOUT=twitter", "serve --config store.yaml", `^firn: environment variable FIRN_LAYOUT: with a configuration \(--config\) these are settings of its namespaces`},
		{"", "serve --config store.yaml --layout twitter", `^firn: --layout: with a configuration \(--config\) these are settings of its namespaces`},
		{"FIRN_CONFIG=store.yaml", "serve --layout twitter", `^firn: --layout: with a configuration \(environment variable FIRN_CONFIG\) these are`},

		// an empty pool name
		{"", "next --pool=", `--pool: "" is not a valid pool name`},
		{"FIRN_POOL=", "next", `environment variable FIRN_POOL: "" is not a valid pool name`},
		{"FIRN_POOL=", "workers", `environment variable FIRN_POOL: "" is not a valid pool name`},
		{"FIRN_POOL=", "doctor", `environment variable FIRN_POOL: "" is not a valid pool name`},
		{"", "workers release 1 --pool=", `--pool: "" is not a valid pool name`},

		// malformed store URLs
		{"", "next --store=", `the store's URL is empty: .*, as in file:/`},
		{"FIRN_STORE=", "workers", `environment variable FIRN_STORE: the store's URL is empty`},
		{"FIRN_STORE=bogus://:geheim@x", "doctor", `environment variable FIRN_STORE: store "bogus://…@x": unknown scheme: memory:, `},
		{"", "next --store memory:foo", `memory: takes nothing after the colon`},
		{"", "serve --config bad.yaml --store memory:foo", `store "memory:foo": memory: takes nothing`},
		{"", "next --store sqlite:", `has no path: write sqlite:PATH`},
		{"", "next --store sqlite:~/firn.db", `sqlite:~/firn.db: ~ is not expanded: write the whole path, as in sqlite:\$HOME/firn`},
		{"FIRN_STORE=file:~/firn", "workers", `environment variable FIRN_STORE: store file:~/firn: ~ is not expanded`},
		{"", "store make file:~/firn", `file:~/firn: ~ is not expanded`},
		{"", "next --store redis:host", `write redis://HOST`},
		{"", "next --store mysql://host", `names no database`},
		{"", "next --store postgres://host:x", `it is not a URL that PostgreSQL accepts`},
		{"", "next", `no home directory for the user.s store: .*; give --store, as in --store redis://`},
		{"HOME=", "bench --processes 2 --duration 1ms", `no home directory`},
		{"HOME=relative", "next", `"relative" is not an absolute path: .*; give --store`},
		{"XDG_STATE_HOME=relative", "workers", `no home directory`},

		// malformed addresses of a server
		{"", "serve --http=", `--http: "" ` + hostly},
		{"FIRN_HTTP=", "serve", `environment variable FIRN_HTTP: "" ` + hostly},
		{"", "serve --http 127.0.0.1:", `--http: "127.0.0.1:" ` + hostly},
		{"", "serve --http :", `--http: ":" ` + hostly},
		{"", "serve --http 7070", `--http: "7070" ` + hostly},
		{"", "serve --http off", `--http: "off" ` + hostly},
		{"", "serve --resp=", `--resp: "" ` + hostly + `.*; off disables it`},
		{"FIRN_RESP=7071", "serve", `environment variable FIRN_RESP: "7071" ` + hostly},

		{"", "next 5", `^firn: firn next takes no arguments, but got "5": for that many ids write -n 5\n`},
		{"", "serve orders", `^firn: firn serve takes no arguments, but got "orders"\n`},
		{"", "bench one two", `^firn: firn bench takes one TARGET, but got 2\n`},
		{"", "layout one two", `^firn: firn layout takes one LAYOUT, but got 2\n`},
		{"", "serve --linger -5s", `^firn: --linger -5s is out of range: 0s to 10m0s are allowed\n`},
		{"", "completion tcsh", `completion "tcsh": bash, fish, powershell, zsh are allowed`},
		{"", "help bogus", `unknown command "bogus"`},
		{"", "help workers bogus", `unknown command "workers bogus"`},
	} {
		var environment []string
		if test.environment != "" {
			environment = []string{test.environment}
		}
		status, out := run(environment, strings.Fields(test.args)...)
		if status != 2 || !regexp.MustCompile(test.want).MatchString(out) || !strings.Contains(out, "\nTry: firn") ||
			strings.Contains(out, "strconv") || strings.Contains(out, "geheim") {
			t.Errorf("%s firn %s exits with %d:\n%s", test.environment, test.args, status, out)
		}
	}
}

func TestTheCommandLineOverridesTheFileWhichOverridesTheEnvironment(t *testing.T) {
	run := session(t)
	for _, test := range []struct {
		environment, args string
		status            int
		want              string
	}{
		{"", "store make sqlite:file.db", 0, `^sqlite:file\.db\n`},
		{"", "store make sqlite:line.db", 0, `^sqlite:line\.db\n`},
		{"", "store make sqlite:env.db", 0, `^sqlite:env\.db\n`},
		{"FIRN_STORE=bogus://x", "doctor --config store.yaml", 0, `^store sqlite:file\.db\n`},
		{"FIRN_STORE=sqlite:env.db", "doctor --config http.yaml --store sqlite:line.db", 1, `^store sqlite:line\.db\n`},
		{"FIRN_STORE=sqlite:env.db", "doctor --config port.yaml", 1, `line 1: listen\.http: "127\.0\.0\.1:" is not a valid address`},
		{"FIRN_STORE=sqlite:env.db", "doctor", 0, `^store sqlite:env\.db\n`},
		{"FIRN_STORE=memory:", "serve --config bad.yaml", 1, `^firn: configuration: store "memory:x": memory: takes nothing`},
		{"FIRN_STORE=memory:", "serve --config away.yaml", 1, `^firn: the store of the configuration cannot be opened: store "redis://127\.0\.0\.1:1": .* refused`},
		{"FIRN_HTTP=", "serve --config http.yaml", 1, `listen on 192\.0\.2\.1:7079 \(listen.http in the configuration\)`},
		{"FIRN_CONFIG=nosuch.yaml", "doctor", 1, `^firn: environment variable FIRN_CONFIG: configuration: open nosuch\.yaml`},
		{"FIRN_RESP=192.0.2.1:7078", "serve --store memory: --http 127.0.0.1:0", 1, `listen on 192\.0\.2\.1:7078 \(environment variable FIRN_RESP\)`},
		{"FIRN_RESP=192.0.2.1:7078", "serve --config resp.yaml", 1, `listen on 192\.0\.2\.1:7076 \(listen.resp in the configuration\)`},
		{"FIRN_RESP=off", "serve --store memory: --http 192.0.2.1:7078", 1, `listen on 192\.0\.2\.1:7078 \(--http\)`},
		{"FIRN_HTTP=192.0.2.1:7078", "serve --store memory:", 1, `listen on 192\.0\.2\.1:7078 \(environment variable FIRN_HTTP\)`},
		{"FIRN_HTTP=192.0.2.1:7078", "serve --config http.yaml --http 192.0.2.1:7077", 1, `listen on 192\.0\.2\.1:7077 \(--http\)`},
		{"FIRN_LAYOUT=twitter", "layout js53", 0, `^js53, `},
	} {
		status, out := run([]string{test.environment}, strings.Fields(test.args)...)
		if status != test.status || !regexp.MustCompile(test.want).MatchString(out) || strings.Contains(out, "Try:") {
			t.Errorf("%s firn %s exits with %d:\n%s", test.environment, test.args, status, out)
		}
	}
}

func TestTheDefaultStoreIsInTheUsersStateFolder(t *testing.T) {
	run, home := session(t), t.TempDir()
	for _, test := range []struct {
		environment []string
		want        string
	}{
		{[]string{"HOME=" + home}, home + "/.local/state/firn"},
		{[]string{"HOME=" + home, "XDG_STATE_HOME="}, home + "/.local/state/firn"},
		{[]string{"HOME=" + home, "XDG_STATE_HOME=relative"}, home + "/.local/state/firn"},
		{[]string{"XDG_STATE_HOME=" + home}, home + "/firn"},
	} {
		if status, out := run(test.environment, "doctor"); status != 1 || !strings.Contains(out, "there is no store in file:"+test.want+" yet") {
			t.Errorf("%v: %d\n%s", test.environment, status, out)
		}
		if status, out := run(test.environment, "next"); status != 0 {
			t.Errorf("%v: %d\n%s", test.environment, status, out)
		}
		status, out := run(test.environment, "doctor")
		if status != 0 || !strings.HasPrefix(out, "store file:"+test.want+"\n") {
			t.Errorf("%v: %d\n%s", test.environment, status, out)
		}
		if err := os.RemoveAll(test.want); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"next --help", "help", "help workers release", "completion bash", "next --store memory:"} {
		if status, out := run(nil, strings.Fields(args)...); status != 0 {
			t.Errorf("without a home, firn %s exits with %d:\n%s", args, status, out)
		}
	}
}
