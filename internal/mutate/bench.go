package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A fate is the result of trying a mutant.
type fate string

const (
	unbuilt  fate = "does not compile"
	killed   fate = "killed"
	timedOut fate = "timed out"
	survived fate = "survived"
)

// A bench builds groups of mutants, and runs their commands.
type bench struct {
	dir    string // temporary
	module string
	plan   plan
	slack  time.Duration

	mu      sync.Mutex
	files   map[string]string   // built, by group and package
	covered map[string]coverage // by command and folder
	tests   map[string][]string // that killed mutants, the latest first, by command and function
	limits  map[string]limit    // by command, and by file where groups are tried without a mutant
}

// A limit ends a run. The limit of processor time ends a busy loop, independently of the machine's
// load. The limit of elapsed time ends a run that hangs.
type limit struct{ cost, elapsed time.Duration }

// A verdict is the fate of a mutant, and the command that decided it.
type verdict struct {
	fate fate
	by   string
	cost time.Duration // processor time
}

// try runs the commands with the nth mutant of a group, from 1, until one fails.
func (b *bench) try(ctx context.Context, g group, nth int) (verdict, error) {
	v := verdict{fate: survived}
	for _, c := range b.plan.of(g[0].src.name) {
		commands, err := b.narrowed(ctx, c, g[nth-1])
		if err != nil {
			return v, err
		}
		if len(commands) == 0 {
			continue // no test of this command reaches it
		}
		file, most, err := b.build(ctx, c, g)
		if errors.Is(err, errBuild) && len(g) == 1 && ctx.Err() == nil {
			v.fate, v.by = unbuilt, c.String() // its tests do not compile with it, such as with two equal constants
			return v, nil
		}
		if err != nil {
			return v, err
		}
		for _, narrow := range commands {
			r := b.run(ctx, narrow, file, most, nth)
			v.cost += r.cost
			switch {
			case ctx.Err() != nil:
				return v, context.Cause(ctx)
			case r.late:
				v.fate, v.by = timedOut, c.String()
				return v, nil
			case r.exit != nil:
				v.fate, v.by = killed, c.String()+": "+why(r.output)
				b.learn(functionOf(c, g[nth-1]), why(r.output))
				return v, nil
			}
		}
	}
	return v, nil
}

// narrowed returns a command as the tests that reach a mutant, the quick ones first, and before them those that killed the
// latest mutants of its function. A command that selects tests itself, or runs a program, stays as it is.
func (b *bench) narrowed(ctx context.Context, c command, m mutant) ([]command, error) {
	if !c.narrows() {
		return []command{c}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	folder := path.Dir(m.src.name)
	name := fmt.Sprint(c, folder)
	if _, done := b.covered[name]; !done {
		all, err := b.cover(ctx, c, folder)
		if err != nil {
			return nil, err
		}
		b.covered[name] = all
	}
	var commands []command
	only := func(tests []string) {
		narrow := c
		narrow.args = append(slices.Clone(c.args), "-test.run=^("+strings.Join(tests, "|")+")$")
		commands = append(commands, narrow)
	}
	if likely := b.tests[functionOf(c, m)]; likely != nil {
		only(likely)
	}
	reaching, known := b.covered[name].tests(m)
	if !known {
		return append(commands, c), nil
	}
	for _, slow := range []bool{false, true} {
		var tests []string
		for _, r := range reaching {
			if (r.took > quick) == slow {
				tests = append(tests, r.test)
			}
		}
		if tests != nil {
			only(tests)
		}
	}
	return commands, nil
}

// narrows reports whether a command can be limited to some tests.
func (c command) narrows() bool { return c.test && !strings.Contains(c.String(), "-test.run=") }

// quick is the most that the tests take that are tried before others.
const quick = 100 * time.Millisecond

func functionOf(c command, m mutant) string { return fmt.Sprint(c, m.src.name, m.fn) }

// learn notes the test of a line such as "--- FAIL: TestX (0.00s)".
func (b *bench) learn(tests, line string) {
	after, failed := strings.CutPrefix(line, "--- FAIL: ")
	if !failed {
		return
	}
	name, _, _ := strings.Cut(after, " ")
	name, _, _ = strings.Cut(name, "/")
	b.mu.Lock()
	defer b.mu.Unlock()
	known := slices.DeleteFunc(b.tests[tests], func(other string) bool { return other == name })
	b.tests[tests] = slices.Insert(known, 0, name)[:min(len(known)+1, likelyTests)]
}

// likelyTests is how many tests of a function come first.
const likelyTests = 6

// build returns a command with a group in it, and the limits of its runs with a mutant, which the first run without one
// sets. A mutant in a group of its own is always active, so its limits come from the original sources.
func (b *bench) build(ctx context.Context, c command, g group) (file string, most limit, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if file, err = b.made(ctx, c, g); err != nil {
		return "", most, fmt.Errorf("%w: %w", errBuild, err)
	}
	off, name := file, fmt.Sprint(c)
	if len(g) > 1 && c.narrows() { // another group, whose switches must change nothing
		name += g[0].src.name
	}
	if len(g) == 1 {
		if off, err = b.made(ctx, c, group{{src: g[0].src}}); err != nil {
			return "", most, err
		}
	}
	if b.limits[name] == (limit{}) {
		r := b.run(ctx, c, off, limit{time.Hour, time.Hour}, 0)
		if r.exit != nil {
			return "", most, fmt.Errorf("%s fails without a mutant of %s: %w\n%s", c, g[0].src.name, r.exit, r.output[max(0, len(r.output)-4000):])
		}
		b.limits[name] = limit{4*r.cost + b.slack, 20*r.elapsed + 4*b.slack}
	}
	return file, b.limits[name], nil
}

// made builds a group of several mutants, or the original source, once.
func (b *bench) made(ctx context.Context, c command, g group) (string, error) {
	if len(g) == 1 && g[0].edits != nil {
		return b.make(ctx, c, g)
	}
	name := fmt.Sprint(c.test, c.pkg, g[0].src.name, len(g))
	var err error
	if b.files[name] == "" {
		b.files[name], err = b.make(ctx, c, g)
	}
	return b.files[name], err
}

// make builds a command with a group, as an overlay of the tree.
func (b *bench) make(ctx context.Context, c command, g group) (string, error) {
	dir, err := os.MkdirTemp(b.dir, "group")
	if err != nil {
		return "", err
	}
	src := g[0].src
	folder := filepath.Join(b.module, filepath.FromSlash(path.Dir(src.name)))
	files := map[string][]byte{
		path.Base(src.name): g.text(),
		"zz_mutants.go":     []byte("package " + src.file.Name.Name + support),
	}
	replace := map[string]string{}
	for name, text := range files {
		replace[filepath.Join(folder, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay, file := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "binary")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	args := []string{"build"}
	if c.test {
		args = []string{"test", "-c", "-vet=off"}
	}
	args = append(args, "-overlay", overlay, "-o", file, c.pkg)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s, with mutants of %s: %w\n%s", c, src.name, err, out)
	}
	return file, nil
}

// errBuild says that a group does not build.
var errBuild = errors.New("it does not build")

// memory limits a mutant's memory, in KiB, so that one that grows without end does not bring down the machine.
const memory = 8 << 20

// A ran command.
type ran struct {
	exit          error
	late          bool
	output        []byte
	elapsed, cost time.Duration
}

func (b *bench) run(ctx context.Context, c command, file string, most limit, nth int) ran {
	ctx, cancel := context.WithTimeout(ctx, most.elapsed)
	defer cancel()
	seconds := int(most.cost.Seconds()) + 1
	args := []string{"-c", fmt.Sprintf(`ulimit -v %d; ulimit -t %d; exec "$0" "$@"`, memory, seconds), file}
	if c.test {
		// Without a timer of its own, a test in which all goroutines wait ends at once.
		args = append(args, "-test.short", "-test.failfast", "-test.timeout=0")
	}
	cmd := exec.CommandContext(ctx, "sh", append(args, c.args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", chooses, nth))
	cmd.WaitDelay = time.Second
	if c.test {
		cmd.Dir = filepath.Join(b.module, filepath.FromSlash(c.pkg))
	}
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	r := ran{exit: err, output: out, elapsed: time.Since(begun), late: errors.Is(ctx.Err(), context.DeadlineExceeded)}
	if p := cmd.ProcessState; p != nil {
		r.cost = p.UserTime() + p.SystemTime()
		r.late = r.late || r.cost > most.cost
	}
	return r
}

// why returns the most informative line of a failed command's output.
func why(output []byte) string {
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	for _, sign := range []string{"--- FAIL: ", "panic: ", "fatal error: ", "seed "} {
		for _, line := range lines {
			if line := strings.TrimSpace(string(line)); strings.HasPrefix(line, sign) {
				return squeeze(line)
			}
		}
	}
	return squeeze(string(lines[len(lines)-1]))
}
