// Command search plays simulated histories until one fails, and then looks for a smaller one that
// fails in the same way and prints its story. It changes and replays histories that reached a new
// situation: such a history is named by its seed and its changes, as 4711.3.12.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/sim"
)

var (
	seeds  = flag.Uint64("seeds", 1000, "how many histories to play")
	from   = flag.Uint64("from", 0, "the seed of the first")
	lasts  = flag.Duration("for", 0, "play for so long instead, as 2h")
	seed   = flag.String("seed", "", "play this one only, as 4711 or 4711.3.12")
	regime = flag.String("regime", "", "durable, reasserted, strict, counted, forgetful, alone or unprotected (default: all but the last in turn)")
	only   = flag.String("only", "", "have no faults but these, as fork,crash")
	plain  = flag.Bool("plain", false, "play one seed after the other, without changes")
	steps  = flag.Int("steps", 0, "what happens in a history before its faults end (default: 10,000, in a small world 3,000)")
	cores  = flag.Int("cores", runtime.GOMAXPROCS(0), "how many histories to play at a time")
	story  = flag.Bool("trace", false, "tell the story, with -seed")
	rival  = flag.Bool("rival", false, "play the usual design, with times to live and heartbeats, in place of Firn; count its duplicates")
	lent   = flag.Bool("lent", false, "have programs to which servers lend workers, in each history that may have them")
	small  = flag.Duration("shrink", 20*time.Second, "how long to look for a smaller history when one fails; 0: not at all")
)

func main() {
	flag.Parse()
	debug.SetGCPercent(400) // histories are small, and garbage dominates their cost
	if flag.NArg() > 0 {
		fail(fmt.Errorf("%q is not understood: there are flags only, see -help", flag.Arg(0)))
	}
	if err := check(); err != nil {
		fail(err)
	}
	s := search{corpus: sim.NewCorpus(*from)}
	if *seed != "" {
		*seeds, *cores = 1, 1
	}
	s.run()
	fmt.Println(s.summary())
	if s.first != nil && !*rival {
		s.tell()
		os.Exit(1)
	}
}

func check() error {
	switch {
	case *regime != "" && !sim.Regime(*regime).Known():
		return fmt.Errorf("-regime %q: durable, reasserted, strict, counted, forgetful, alone and unprotected are known", *regime)
	case *steps < 0:
		return fmt.Errorf("-steps %d: at least 1 is needed", *steps)
	case *cores < 1:
		return fmt.Errorf("-cores %d: at least 1 is needed", *cores)
	case *story && *seed == "":
		return errors.New("-trace tells one story: say which with -seed")
	}
	for _, name := range faults() {
		if !slices.Contains(sim.Faults(), name) {
			return fmt.Errorf("-only: %q is not known: %s are", name, strings.Join(sim.Faults(), ", "))
		}
	}
	_, err := options().Named(cmp.Or(*seed, "0"))
	return err
}

func faults() []string {
	if *only == "" {
		return nil
	}
	return strings.Split(*only, ",")
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "search: %v\n", err)
	os.Exit(2)
}

// A search holds the results so far.
type search struct {
	begun time.Time
	stop  context.CancelFunc

	mu                   sync.Mutex
	corpus               *sim.Corpus
	begins               uint64
	played, steps, ids   int
	duplicates, stricken int // ids, and histories with at least one duplicate
	lived                time.Duration
	first                *sim.Result // the first failure
	found                sim.Options // its history
	needed               int         // how many histories were played until then
}

func options() sim.Options {
	return sim.Options{Regime: sim.Regime(*regime), Steps: *steps, Only: faults(), Rival: *rival, Lent: *lent, Count: *rival, Trace: *story}
}

func (s *search) run() {
	s.begun = time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *lasts > 0 {
		ctx, stop = context.WithTimeout(ctx, *lasts)
		defer stop()
	}
	ctx, s.stop = context.WithCancel(ctx)
	defer s.stop()
	var all, progress sync.WaitGroup
	for range *cores {
		all.Go(func() { s.play(ctx) })
	}
	over := make(chan struct{})
	progress.Go(func() { s.progress(over) })
	all.Wait()
	close(over)
	progress.Wait()
}

// progress shows how far the search is, on a terminal.
func (s *search) progress(over <-chan struct{}) {
	info, err := os.Stderr.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return
	}
	for {
		select {
		case <-over:
			fmt.Fprint(os.Stderr, "\r\x1b[K")
			return
		case <-time.After(time.Second):
			fmt.Fprintf(os.Stderr, "\r\x1b[K%s", s.summary())
		}
	}
}

// play plays one history after another.
func (s *search) play(ctx context.Context) {
	for ctx.Err() == nil {
		o, ok := s.next()
		if !ok {
			return
		}
		r := sim.Run(o)
		s.add(o, r)
	}
}

// next chooses the history to play next.
func (s *search) next() (o sim.Options, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *lasts == 0 && s.begins >= *seeds {
		return o, false
	}
	s.begins++
	switch o = options(); {
	case *seed != "":
		o, _ = o.Named(*seed) // check has already parsed it
	case *plain || *rival:
		o.Seed = *from + s.begins - 1
	default:
		o = s.corpus.Next(o)
	}
	return o, true
}

func (s *search) add(o sim.Options, r sim.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.corpus.Learn(o, &r)
	s.played++
	s.steps += r.Steps
	s.ids += r.IDs
	s.lived += r.Lived
	s.duplicates += r.Duplicates
	if r.Duplicates > 0 {
		s.stricken++
	}
	for _, line := range r.Story {
		fmt.Println(line)
	}
	if r.Finding != nil && s.first == nil {
		s.first, s.found = &r, o
		s.needed = s.played
		if !*rival {
			s.stop()
		}
	}
}

func (s *search) summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := time.Since(s.begun)
	text := fmt.Sprintf("%d histories from seed %d in %v: %.4g steps and %.4g ids (%.2g and %.2g a second), %.2g years lived",
		s.played, *from, took.Round(100*time.Millisecond), float64(s.steps), float64(s.ids),
		float64(s.steps)/took.Seconds(), float64(s.ids)/took.Seconds(), s.lived.Hours()/24/365)
	if *rival {
		return text + fmt.Sprintf("; %d duplicates, in %d histories", s.duplicates, s.stricken)
	}
	if s.first == nil {
		return text + "; nothing found"
	}
	return text + fmt.Sprintf("; seed %s fails", s.first.Name)
}

// maxStory is how many of the last lines of a story are printed.
const maxStory = 60

// tell prints the finding and its history.
func (s *search) tell() {
	r := s.first
	fmt.Printf("\nhistory %d, seed %s, step %d: %s: %s\n  %s\n", s.needed, r.Name, r.Finding.Step, r.Finding.Kind, r.Finding.Text, r.Plan)
	fmt.Printf("Again, with all of its story: go run ./internal/sim/search -seed %s -regime %s%s -trace\n", r.Name, r.Regime, s.flags())
	if *small <= 0 || *story {
		return
	}
	o := s.found
	o.Regime = r.Regime
	o, _ = sim.Shrink(o, *small)
	o.Trace = true
	smaller := sim.Run(o)
	fmt.Printf("\nA smaller history that fails in the same way: %d processes, %d faults.\n  %s\n", smaller.Machines, smaller.Faults, smaller.Plan)
	lines := smaller.Story
	if n := len(lines) - maxStory; n > 0 {
		fmt.Printf("  (its last %d of %d lines)\n", maxStory, len(lines))
		lines = lines[n:]
	}
	for _, line := range lines {
		fmt.Println("  " + line)
	}
}

// flags are the settings that change the history of a seed.
func (s *search) flags() string {
	text := ""
	if *steps > 0 {
		text += fmt.Sprintf(" -steps %d", *steps)
	}
	if *only != "" {
		text += " -only " + *only
	}
	if *lent {
		text += " -lent"
	}
	return text
}
