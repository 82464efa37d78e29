// Command mutants makes small wrong changes to the protocol, one at a time, and
// counts how many histories the simulator needs to find each. The sources stay as
// they are: the changed files stand in an overlay of the build.
//
//	go run ./internal/sim/mutants            # all, as a table
//	go run ./internal/sim/mutants -only 3,7  # some of them
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/sim"
)

// A mutant is a wrong change.
type mutant struct {
	name   string
	regime sim.Regime // in which it shows
	edits  []edit
	// harmless says why nothing is to be found; empty: it must be.
	harmless string
	slow     bool // it takes thousands of histories: left out with -quick
}

// An edit replaces a text that stands once in a file, by its path below the module.
type edit struct{ file, old, new string }

var (
	only   = flag.String("only", "", "the numbers of the mutants to try, as 3,7 (default: all)")
	from   = flag.Uint64("from", 0, "the seed of the first history")
	within = flag.Int("within", 4000, "how many histories may be needed to find one")
	quick  = flag.Bool("quick", false, "leave out those that take thousands of histories")
	spared = flag.Int("spared", 100, "how many histories to play with one that is harmless")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "firn-mutants-")
	if err != nil {
		return err
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		}
	}()
	fmt.Printf("| # | wrong change | regime | histories needed | found as |\n| --: | --- | --- | --: | --- |\n")
	// It plays as many at a time as there are processors, and reports them in order.
	turn := make(chan struct{}, runtime.NumCPU())
	outcomes := make([]chan outcome, len(mutants))
	for _, i := range chosen {
		outcomes[i] = make(chan outcome, 1)
	}
	go func() {
		for _, i := range chosen {
			turn <- struct{}{}
			go func() {
				outcomes[i] <- mutants[i].play(filepath.Join(dir, strconv.Itoa(i+1)))
				<-turn
			}()
		}
	}()
	var wrong []string
	for _, i := range chosen {
		m, found := mutants[i], <-outcomes[i]
		if found.err != nil {
			return fmt.Errorf("%d, %s: %w", i+1, m.name, found.err)
		}
		fmt.Printf("| %d | %s | %s | %s | %s |\n", i+1, m.name, m.regime, found.histories(), found.as(m))
		if found.it != (m.harmless == "") {
			wrong = append(wrong, m.name)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("not as expected: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// choose returns the indices of the mutants to try, in order.
func choose(only string) (chosen []int, err error) {
	named := map[int]bool{}
	for text := range strings.SplitSeq(only, ",") {
		n, err := strconv.Atoi(text)
		if only != "" && (err != nil || n < 1 || n > len(mutants)) {
			return nil, fmt.Errorf("-only %q: %q is not a whole number from 1 to %d", only, text, len(mutants))
		}
		named[n] = true
	}
	for i, m := range mutants {
		if (only == "" || named[i+1]) && (!*quick || !m.slow) {
			chosen = append(chosen, i)
		}
	}
	return chosen, nil
}

// What became of a mutant.
type outcome struct {
	it     bool // was found
	needed int  // how many histories
	kind   string
	played int
	err    error
}

func (o outcome) histories() string {
	if !o.it {
		return fmt.Sprintf("none in %d", o.played)
	}
	return fmt.Sprint(o.needed)
}

func (o outcome) as(m mutant) string {
	if !o.it && m.harmless != "" {
		return "harmless: " + m.harmless
	}
	return o.kind
}

var finding = regexp.MustCompile(`(?m)^history (\d+), seed [\d.]+, step \d+: (\w+): `)

// play builds the search with the mutant in it, in a folder of its own, and lets it search.
func (m mutant) play(dir string) outcome {
	o := outcome{played: *within}
	if m.harmless != "" {
		o.played = *spared
	}
	overlay, err := m.overlay(dir)
	if err != nil {
		o.err = err
		return o
	}
	binary := filepath.Join(dir, "search")
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary, "./internal/sim/search").CombinedOutput(); err != nil {
		o.err = fmt.Errorf("build: %w\n%s", err, out)
		return o
	}
	// One history at a time, so that the same are played each time.
	search := exec.Command(binary, "-regime", string(m.regime), "-from", fmt.Sprint(*from), "-seeds", fmt.Sprint(o.played), "-shrink", "0", "-cores", "1")
	search.WaitDelay = time.Second
	out, err := search.CombinedOutput()
	match := finding.FindSubmatch(out)
	var exit *exec.ExitError
	switch {
	case match != nil:
		o.it, o.kind = true, string(match[2])
		o.needed, o.err = strconv.Atoi(string(match[1]))
	case err == nil:
	case errors.As(err, &exit) && strings.Contains(string(out), "panic"):
		o.it, o.kind = true, "panic"
	default:
		o.err = fmt.Errorf("search: %w\n%s", err, out)
	}
	return o
}

// overlay writes the changed files, and says which they replace.
func (m mutant) overlay(dir string) (string, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	changed := map[string]string{}
	for _, e := range m.edits {
		text, ok := changed[e.file]
		if !ok {
			source, err := os.ReadFile(filepath.FromSlash(e.file))
			if err != nil {
				return "", fmt.Errorf("%w: run this in the folder of the module", err)
			}
			text = string(source)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("the text to change stands %d times in %s, not once: %s", n, e.file, e.old)
		}
		changed[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	for file, text := range changed {
		path, err := filepath.Abs(filepath.FromSlash(file))
		if err != nil {
			return "", err
		}
		replace[path] = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}
