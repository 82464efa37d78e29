//go:build linux

// Package languages runs the clients of clients/, three processes of each, with three servers over one store, while
// processes are killed, stopped and restarted and their clocks are moved; and looks for ids that were made twice. It also
// runs the check of clients, clients/conformance.
package languages

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/bench/internal/program"
	"github.com/firn-id/firn/bench/internal/wallclock"
	"github.com/firn-id/firn/store/storetest/servers"
)

// There are few ids in a tick, so that two processes with one worker make the same ids at once; and workers for all that are
// killed, each of which costs one until its lease has ended.
const configuration = `
namespaces:
  ids: {pool: shared, layout: 41/0/8/4, window: 4s}
`

// A language has the command of a program that prints ids, whose further arguments are the servers and the pool, and the
// command for the check. {classes} is where the Java programs are compiled to.
var languages = map[string]struct{ prints, checked string }{
	"python":     {"python3 bench/languages/testdata/ids.py clients/python", "--fork --signals python3 clients/conformance/python_ids.py"},
	"javascript": {"node bench/languages/testdata/ids.mjs clients/javascript", "--fork node clients/conformance/javascript_ids.mjs"},
	"java":       {"java " + small + " -cp {classes} Ids", "java " + small + " -cp {classes} JavaIds"},
	"ruby":       {"ruby bench/languages/testdata/ids.rb clients/ruby", "--fork --signals ruby clients/conformance/ruby_ids.rb"},
}

// small makes a JVM start soon; many run at once here.
const small = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx64m"

// TestMain moves to the root of the repository. The tests wait more than they compute, so all languages run at once.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	var err error
	if folder, err = os.MkdirTemp("", "languages"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// firn builds the command once, in the folder.
var (
	folder string
	firn   = sync.OnceValues(func() (string, error) { return program.BuildFirn(folder) })
)

// duration is how long the clients are hurt; LANGUAGES_FOR=10m makes it longer.
func duration() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("LANGUAGES_FOR")); err == nil {
		return d
	}
	return 30 * time.Second
}

// commands returns for each language the commands of its programs, without languages that this machine lacks: with CI
// that is an error.
func commands(t testing.TB) (prints, checked map[string][]string) {
	t.Helper()
	classes := t.TempDir()
	prints, checked = map[string][]string{}, map[string][]string{}
	for language, l := range languages {
		command := func(text string) []string { return strings.Fields(strings.ReplaceAll(text, "{classes}", classes)) }
		err := exec.Command(command(l.prints)[0], map[bool]string{true: "-version", false: "--version"}[language == "java"]).Run()
		if language == "java" && err == nil {
			err = exec.Command("javac", "-d", classes, "clients/java/firn/Lease.java", "clients/conformance/JavaIds.java", "bench/languages/testdata/Ids.java").Run()
		}
		switch {
		case err == nil:
			prints[language], checked[language] = command(l.prints), command(l.checked)
		case os.Getenv("CI") != "":
			t.Fatalf("%s: %v: scripts/need-clients installs it", language, err)
		default:
			t.Logf("without %s: %v: scripts/need-clients installs it", language, err)
		}
	}
	if len(prints) == 0 {
		t.Skip("no language is installed")
	}
	return prints, checked
}

// BenchmarkClients measures how many ids one thread of each client makes, one at a time.
func BenchmarkClients(b *testing.B) {
	prints, _ := commands(b)
	address := serve(b, "memory:", "namespaces:\n  ids: {pool: shared, layout: 41/0/6/16}\n").Address
	for _, language := range slices.Sorted(maps.Keys(prints)) {
		b.Run(language, func(b *testing.B) {
			for b.Loop() {
				args := append(slices.Clone(prints[language]), "http://"+address, "shared", "speed")
				out, err := exec.Command(args[0], args[1:]...).Output()
				check(b, err)
				rate, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
				check(b, err)
				b.ReportMetric(rate, "ids/s")
			}
		})
	}
}

// inDocument matches a program of a document: its first line names its file and the command that runs it.
var inDocument = regexp.MustCompile("(?s)```\\w+\n(?:#|//) (\\w+\\.\\w+): ([^\n]+)\n.*?```")

func TestTheProgramsInTheDocumentPrintAnID(t *testing.T) {
	t.Parallel()
	prints, _ := commands(t)
	text, err := os.ReadFile("docs/leases.md")
	check(t, err)
	found := inDocument.FindAllSubmatch(text, -1)
	if len(found) != len(languages) {
		t.Fatalf("docs/leases.md has programs in %d languages, not %d", len(found), len(languages))
	}
	dir := t.TempDir()
	for _, client := range []string{"python", "javascript", "java", "ruby"} {
		check(t, os.CopyFS(dir, os.DirFS("clients/"+client)))
	}
	address := serve(t, "memory:", "namespaces:\n  ids: {pool: default}\n").Address
	for _, example := range found {
		file, command := string(example[1]), string(example[2])
		if !slices.ContainsFunc(slices.Collect(maps.Values(prints)), func(args []string) bool { return strings.Contains(command, args[0]+" ") }) {
			continue // commands said that it is not installed
		}
		_, code, _ := strings.Cut(string(example[0]), "\n")
		code = strings.ReplaceAll(strings.TrimSuffix(code, "```"), "127.0.0.1:7070", address)
		check(t, os.WriteFile(filepath.Join(dir, file), []byte(code), 0o600))
		run := exec.Command("sh", "-c", command)
		run.Dir = dir
		out, err := run.CombinedOutput()
		if _, notID := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64); err != nil || notID != nil {
			t.Errorf("%s: %v, and it printed %q", command, err, out)
		}
	}
}

// serve starts a server over a store, which the end of the test kills.
func serve(t testing.TB, store, configuration string) *program.Program {
	t.Helper()
	binary, err := firn()
	check(t, err)
	address, err := program.FreeAddress()
	check(t, err)
	file := filepath.Join(t.TempDir(), "firn.yaml")
	check(t, os.WriteFile(file, []byte(configuration), 0o600))
	s := &program.Program{Address: address, Path: binary, Says: program.Serving, Args: []string{
		"serve", "--config", file, "--store", store, "--http", address, "--resp", "off", "--grpc", "off",
	}}
	check(t, s.Start())
	t.Cleanup(func() { _ = s.Kill() })
	return s
}

func TestTheCheckOfClientsAcceptsEach(t *testing.T) {
	t.Parallel()
	_, checked := commands(t)
	for language, args := range checked {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command("python3", append([]string{"clients/conformance/check_client.py"}, args...)...).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A world has the processes of the test, and all ids.
type world struct {
	t       *testing.T
	servers []*program.Program
	clients []*client
	store   *servers.Server

	mu   sync.Mutex
	from map[int64]string // who made an id
	made map[string]int
}

func (w *world) got(who, text string) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		w.t.Errorf("%s printed %q", who, text)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if other, twice := w.from[id]; twice {
		w.t.Errorf("%d was made by %s and by %s", id, other, who)
	}
	w.from[id] = who
	w.made[strings.SplitN(who, ".", 2)[0]]++
}

func (w *world) count(who string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made[who]
}

// A client is a process that prints ids.
type client struct {
	w        *world
	language string
	name     string
	args     []string
	runs     int
	cmd      *exec.Cmd
	done     chan struct{}
}

func (c *client) start(t *testing.T) {
	t.Helper()
	c.runs++
	who := fmt.Sprintf("%s.%d", c.name, c.runs)
	c.cmd = exec.Command(c.args[0], c.args[1:]...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with the children that it forks
	out, err := c.cmd.StdoutPipe()
	check(t, err)
	check(t, c.cmd.Start())
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.w.got(who, lines.Text())
		}
	}()
}

func (c *client) signal(s syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, s) }

// end ends it, and returns when all its ids are read.
func (c *client) end(how syscall.Signal) {
	_ = syscall.Kill(c.cmd.Process.Pid, how) // a child goes on after its parent
	timer := time.AfterFunc(20*time.Second, func() { c.signal(syscall.SIGKILL) })
	<-c.done
	timer.Stop()
	_ = c.cmd.Wait() // how it ended was chosen here
}

func TestNoIDIsMadeTwice(t *testing.T) {
	t.Parallel() // the first server waits for seconds before it grants a worker of a new pool
	prints, _ := commands(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := &world{t: t, from: map[int64]string{}, made: map[string]int{}}
	w.store = servers.Redis(t)
	var urls []string
	for range 3 {
		s := serve(t, "redis://"+w.store.Addr(), configuration)
		w.servers, urls = append(w.servers, s), append(urls, "http://"+s.Address)
	}
	for language, args := range prints {
		for i := range 3 {
			order := slices.Concat(urls[i:], urls[:i])
			c := &client{w: w, language: language, name: fmt.Sprint(language, " ", i), args: append(slices.Clone(args), strings.Join(order, ","), "shared")}
			c.start(t)
			t.Cleanup(func() { c.end(syscall.SIGKILL) })
			w.clients = append(w.clients, c)
		}
	}
	stop, asked := make(chan struct{}), make(chan struct{})
	go w.ask(stop, asked)
	w.all("all run")
	t.Run("hurt", func(t *testing.T) {
		faults := map[string]func(*testing.T, *rand.Rand) string{"servers": w.hurtServers}
		for language := range prints {
			faults[language] = func(t *testing.T, random *rand.Rand) string { return w.hurtClients(t, language, random) }
		}
		for whom, hurt := range faults {
			t.Run(whom, func(t *testing.T) {
				t.Parallel()
				random, done := rand.New(rand.NewPCG(seed, uint64(whom[0])<<8|uint64(whom[len(whom)-1]))), map[string]int{}
				for until := time.Now().Add(duration()); time.Now().Before(until) && !t.Failed(); {
					time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
					done[hurt(t, random)]++
				}
				t.Logf("%v", done)
			})
		}
	})
	for _, s := range w.servers {
		check(t, wallclock.Move(s.PID(), 0))
	}
	w.all("all are well again")
	close(stop)
	<-asked
	var ends sync.WaitGroup
	for _, c := range w.clients {
		ends.Go(func() { c.end(syscall.SIGTERM) })
	}
	ends.Wait()
	t.Logf("ids %v", w.made)
}

func pause(random *rand.Rand) time.Duration {
	return time.Duration(random.IntN(6000)) * time.Millisecond
}

// move is by how much a clock is moved.
func move(random *rand.Rand) time.Duration {
	return []time.Duration{0, 8 * time.Second, -8 * time.Second, time.Hour, -time.Hour}[random.IntN(5)]
}

// hurtServers hurts a server or the store, and returns what it did.
func (w *world) hurtServers(t *testing.T, random *rand.Rand) string {
	s := w.servers[random.IntN(3)]
	switch random.IntN(4) {
	case 0:
		check(t, s.Kill())
		time.Sleep(pause(random) / 2)
		check(t, s.Start())
		return "killed"
	case 1:
		check(t, wallclock.Stop(s.PID()))
		time.Sleep(pause(random))
		check(t, s.Signal(syscall.SIGCONT))
		return "stopped"
	case 2:
		check(t, wallclock.Move(s.PID(), move(random)))
		return "clock moved"
	}
	w.store.Pause()
	time.Sleep(pause(random) / 2)
	w.store.Resume()
	return "store stopped"
}

// hurtClients hurts a client, and returns what it did.
func (w *world) hurtClients(t *testing.T, language string, random *rand.Rand) string {
	c := w.clients[random.IntN(len(w.clients))]
	for c.language != language {
		c = w.clients[random.IntN(len(w.clients))]
	}
	switch random.IntN(5) {
	case 0:
		c.end(syscall.SIGKILL)
		c.start(t)
		return "killed"
	case 1:
		c.end(syscall.SIGTERM)
		c.start(t)
		return "ended"
	case 2:
		_ = wallclock.Move(c.cmd.Process.Pid, move(random)) // it may not have mapped its vDSO yet
		return "clock moved"
	}
	c.signal(syscall.SIGSTOP)
	time.Sleep(pause(random))
	c.signal(syscall.SIGCONT)
	return "stopped"
}

// all waits until each process makes ids.
func (w *world) all(when string) {
	names := []string{"server 0", "server 1", "server 2"}
	for _, c := range w.clients {
		names = append(names, c.name)
	}
	before := map[string]int{}
	for _, who := range names {
		before[who] = w.count(who)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for _, who := range names {
		for ; w.count(who) < before[who]+100; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				w.t.Fatalf("%s: %s makes no ids", when, who)
			}
		}
	}
}

// ask takes ids from the servers too: those of their own workers.
func (w *world) ask(stop, done chan struct{}) {
	defer close(done)
	patient := &http.Client{Timeout: time.Second}
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(2 * time.Millisecond):
		}
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.servers[n%3].Address+"/v1/ids/ids?count=50", nil)
		check(w.t, err)
		r.Header.Set("Accept", "text/plain")
		answer, err := patient.Do(r)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			continue
		}
		for line := range strings.Lines(string(text)) {
			w.got(fmt.Sprint("server ", n%3), strings.TrimSpace(line))
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
