package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A frameworkCall is a row of the table "What frameworks call" of redis.md.
type frameworkCall struct{ framework, call, result string }

// frameworkCalls reads the table, and returns the frameworks in order too.
func frameworkCalls(t *testing.T) (calls []frameworkCall, frameworks []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## What frameworks call\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	row := regexp.MustCompile("(?m)^\\| (.*?) ?\\| `(.+)` \\| (.+) \\|$")
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		if m[1] != "" {
			frameworks = append(frameworks, m[1])
		}
		calls = append(calls, frameworkCall{frameworks[len(frameworks)-1], m[2], m[3]})
	}
	if rows := strings.Count(section, "\n| "); rows != len(calls)+2 {
		t.Errorf("%d of %d rows of the table were read", len(calls), rows-2)
	}
	return calls, frameworks
}

// of returns the calls of frameworks whose names begin so.
func callsOf(t *testing.T, names ...string) (calls []frameworkCall, texts []string) {
	t.Helper()
	all, _ := frameworkCalls(t)
	for _, c := range all {
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(c.framework, name) }) {
			calls, texts = append(calls, c), append(texts, c.call)
		}
	}
	if len(calls) == 0 {
		t.Fatalf("the table has no calls of %v", names)
	}
	return calls, texts
}

var answer = regexp.MustCompile(`(?m)^(ok|error) .*$`)

// hints begin the messages with which Firn refuses a call.
var hints = regexp.MustCompile(`\b(unsupported|not_consecutive|bad_request): `)

// checkCalls compares what a client printed for each call with the table.
func checkCalls(t *testing.T, calls []frameworkCall, out string) {
	t.Helper()
	lines := answer.FindAllString(out, -1) // a compiler may print others
	if len(lines) != len(calls) {
		t.Fatalf("%d answers to %d calls: %s", len(lines), len(calls), out)
	}
	ids := map[string]string{}
	for i, c := range calls {
		how, got, _ := strings.Cut(lines[i], " ")
		right := false
		switch {
		case strings.HasPrefix(c.result, "an id less 1"):
			right = how == "ok" && regexp.MustCompile(`^\d{15,19}$`).MatchString(got)
		case strings.HasPrefix(c.result, "an id"):
			right = how == "ok" && regexp.MustCompile(`^\d{15,19}$`).MatchString(got) && ids[got] == ""
			ids[got] = c.call
		case strings.HasPrefix(c.result, "error"):
			right = how == "error" && hints.MatchString(got)
		case strings.HasPrefix(c.result, "works"):
			right = how == "ok"
		case strings.HasPrefix(c.result, "`"):
			want, _, _ := strings.Cut(c.result[1:], "`")
			right = how == "ok" && got == want
		}
		if !right {
			t.Errorf("%s: %s: %s, but the table says: %s", c.framework, c.call, lines[i], c.result)
		}
	}
}

// startDefault runs firn serve without a configuration, and returns the port of the Redis protocol.
func startDefault(t *testing.T) (port string) {
	t.Helper()
	cmd := exec.Command("firn", "serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--grpc", "off")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	_, port, _ = serveUntilTheEnd(t, cmd)
	return port
}

// installed returns a folder that need-clients makes.
func installed(t *testing.T, folder, what string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../.tools", folder))
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(path)
	needClient(t, err == nil, what)
	return path
}

func TestEachFrameworkOfTheTableIsRun(t *testing.T) {
	_, frameworks := frameworkCalls(t)
	for _, f := range frameworks {
		if !slices.ContainsFunc(slices.Concat(ofPython, ofPHP, ofRuby, ofJavaScript, ofJava, ofGo), func(name string) bool { return strings.HasPrefix(f, name) }) {
			t.Errorf("no test runs the calls of %s", f)
		}
	}
}

// The frameworks of each language, in the order of the table.
var (
	ofPython     = []string{"redis-py", "Django's cache", "django-redis"}
	ofPHP        = []string{"phpredis", "Predis"}
	ofRuby       = []string{"redis-rb", "Rails'", "what Kredis'"}
	ofJavaScript = []string{"ioredis", "node-redis"}
	ofJava       = []string{"Spring Data Redis", "Redisson", "Jedis", "Lettuce"}
	ofGo         = []string{"go-redis", "rueidis"}
)

func TestFrameworksOfPython(t *testing.T) {
	libraries := installed(t, "clients-python", "django")
	t.Setenv("PYTHONPATH", libraries)
	calls, texts := callsOf(t, ofPython...)
	const python = "/usr/bin/python3" // for which the libraries were installed
	checkCalls(t, calls, run(t, "", python, append([]string{"testdata/clients/calls.py", startDefault(t)}, texts...)...))
}

func TestFrameworksOfPHP(t *testing.T) {
	needClient(t, exec.Command("php", "-r", "new Redis; require 'Predis/autoload.php';").Run() == nil, "php-redis")
	calls, texts := callsOf(t, ofPHP...)
	checkCalls(t, calls, run(t, "", "php", append([]string{"testdata/clients/calls.php", startDefault(t)}, texts...)...))
}

func TestFrameworksOfRuby(t *testing.T) {
	needClient(t, exec.Command("ruby", "-r", "redis", "-r", "active_support", "-e", "").Run() == nil, "ruby-redis")
	calls, texts := callsOf(t, ofRuby...)
	checkCalls(t, calls, run(t, "", "ruby", append([]string{"testdata/clients/calls.rb", startDefault(t)}, texts...)...))
}

func TestFrameworksOfJavaScript(t *testing.T) {
	libraries := installed(t, "clients/node_modules", "ioredis")
	calls, texts := callsOf(t, ofJavaScript...)
	checkCalls(t, calls, run(t, "", "node", append([]string{"testdata/clients/calls.mjs", filepath.Dir(libraries), startDefault(t)}, texts...)...))
}

// program writes the calls into a program, at its mark.
func program(t *testing.T, source, mark, format string, texts []string) string {
	t.Helper()
	before, after, ok := strings.Cut(source, mark+"\n")
	if !ok {
		t.Fatalf("the program has no mark %q", mark)
	}
	var b strings.Builder
	b.WriteString(before)
	for _, text := range texts {
		b.WriteString(strings.Replace(format, "CALL", text, 1) + "\n")
	}
	return b.String() + after
}

func readProgram(t *testing.T, path string) string {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

func writeProgram(t *testing.T, path, source string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFrameworksOfJava(t *testing.T) {
	libraries := installed(t, "clients-java", "spring-data-redis")
	source := readProgram(t, "testdata/clients/java/Calls.java")
	var all []frameworkCall
	for _, framework := range ofJava {
		calls, texts := callsOf(t, framework)
		source = program(t, source, "// CALLS: "+framework, "call(() -> CALL);", texts)
		if all = append(all, calls...); framework == "Spring Data Redis" { // over Lettuce and over Jedis
			all = append(all, calls...)
		}
	}
	file := filepath.Join(t.TempDir(), "Calls.java")
	writeProgram(t, file, source)
	checkCalls(t, all, run(t, "", "java", "-cp", libraries+"/*", file, startDefault(t)))
}

func TestFrameworksOfGo(t *testing.T) {
	calls, texts := callsOf(t, ofGo...)
	folder := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		writeProgram(t, filepath.Join(folder, name), readProgram(t, "testdata/clients/go/"+name))
	}
	writeProgram(t, filepath.Join(folder, "main.go"), program(t, readProgram(t, "testdata/clients/go/main.go"), "// CALLS", "call(CALL)", texts))
	t.Setenv("GOWORK", "off")
	checkCalls(t, calls, run(t, "", "go", "run", "-C", folder, ".", startDefault(t)))
}
