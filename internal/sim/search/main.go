// Command search plays simulated histories until one fails, and then looks for a
// smaller one that fails in the same way and tells its story.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/sim"
)

var (
	seeds  = flag.Uint64("seeds", 1000, "how many histories to play")
	from   = flag.Uint64("from", 0, "the seed of the first")
	lasts  = flag.Duration("for", 0, "play for so long instead, as 2h")
	seed   = flag.Int64("seed", -1, "play this one only")
	regime = flag.String("regime", "", "durable, reasserted, strict, counted or unprotected (default: the first four in turn)")
	steps  = flag.Int("steps", 10_000, "what happens in a history before its faults end")
	cores  = flag.Int("cores", runtime.GOMAXPROCS(0), "how many histories to play at a time")
	story  = flag.Bool("trace", false, "tell the story, with -seed")
	rival  = flag.Bool("rival", false, "play the usual design, with times to live and heartbeats, in place of Firn; count its duplicates")
	small  = flag.Duration("shrink", 20*time.Second, "how long to look for a smaller history when one fails; 0: not at all")
)

func main() {
	flag.Parse()
	if flag.NArg() > 0 {
		fail(fmt.Errorf("%q is not understood: there are flags only, see -help", flag.Arg(0)))
	}
	if err := check(); err != nil {
		fail(err)
	}
	if *seed >= 0 {
		*from, *seeds, *cores = uint64(*seed), 1, 1
	}
	var s search
	s.run()
	fmt.Println(s.summary())
	if s.first != nil && !*rival {
		s.tell()
		os.Exit(1)
	}
}

func check() error {
	switch sim.Regime(*regime) {
	case "", sim.Durable, sim.Reasserted, sim.Strict, sim.Counted, sim.Unprotected:
	default:
		return fmt.Errorf("-regime %q: durable, reasserted, strict, counted and unprotected are known", *regime)
	}
	switch {
	case *steps < 1:
		return fmt.Errorf("-steps %d: at least 1 is needed", *steps)
	case *cores < 1:
		return fmt.Errorf("-cores %d: at least 1 is needed", *cores)
	case *story && *seed < 0:
		return errors.New("-trace tells one story: say which with -seed")
	}
	return nil
}

func fail(err error) {
	fmt.Fprintf(os.Stderr, "search: %v\n", err)
	os.Exit(2)
}

// A search is what was played so far.
type search struct {
	begun time.Time
	next  atomic.Uint64
	stop  atomic.Bool

	mu                   sync.Mutex
	played, steps, ids   int
	duplicates, stricken int // ids, and histories with at least one
	lived                time.Duration
	first                *sim.Result // that failed, the lowest seed
}

func options(seed uint64) sim.Options {
	return sim.Options{Seed: seed, Regime: sim.Regime(*regime), Steps: *steps, Rival: *rival, Count: *rival, Trace: *story}
}

func (s *search) run() {
	s.begun = time.Now()
	s.next.Store(*from)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for range *cores {
			all.Go(s.play)
		}
		all.Wait()
	}()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			if terminal() {
				fmt.Fprint(os.Stderr, "\r\x1b[K")
			}
			return
		case <-interrupted:
			s.stop.Store(true)
		case <-ticker.C:
			if *lasts > 0 && time.Since(s.begun) > *lasts {
				s.stop.Store(true)
			}
			if terminal() {
				fmt.Fprintf(os.Stderr, "\r\x1b[K%s", s.summary())
			}
		}
	}
}

// play plays one history after the other.
func (s *search) play() {
	for !s.stop.Load() {
		seed := s.next.Add(1) - 1
		if *lasts == 0 && seed-*from >= *seeds {
			return
		}
		s.add(sim.Run(options(seed)))
	}
}

func (s *search) add(r sim.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	if r.Finding != nil && (s.first == nil || r.Seed < s.first.Seed) {
		s.first = &r
		if !*rival {
			s.stop.Store(true)
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
	return text + fmt.Sprintf("; seed %d fails", s.first.Seed)
}

// maxStory is how many of the last lines of a story are told.
const maxStory = 60

// tell shows what was found, and by which history.
func (s *search) tell() {
	r := s.first
	fmt.Printf("\nseed %d, step %d: %s: %s\n  %s\n", r.Seed, r.Finding.Step, r.Finding.Kind, r.Finding.Text, r.Plan)
	fmt.Printf("Again, with all of its story: go run ./internal/sim/search -seed %d -regime %s -steps %d -trace\n", r.Seed, r.Regime, *steps)
	if *small <= 0 || *story {
		return
	}
	o := options(r.Seed)
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

func terminal() bool {
	info, err := os.Stderr.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
