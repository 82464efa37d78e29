package sim

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// histories is how many are played in a test.
const histories = 240

// playAll plays histories on all cores and reports findings.
func playAll(t *testing.T, seeds []uint64, o Options) (results []Result) {
	t.Helper()
	results = make([]Result, len(seeds))
	var next atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(seeds); i = int(next.Add(1)) - 1 {
				o := o
				o.Seed = seeds[i]
				results[i] = Run(o)
			}
		})
	}
	all.Wait()
	return results
}

func fixed(n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	return seeds
}

// TestNothingIsFound plays a fixed set of histories and some new ones. On a failure it prints a small
// history that fails in the same way.
func TestNothingIsFound(t *testing.T) {
	n := histories
	seeds := fixed(n)
	for range n / 4 {
		seeds = append(seeds, rand.Uint64()>>16)
	}
	steps, ids := 0, 0
	for _, r := range playAll(t, seeds, Options{}) {
		steps += r.Steps
		ids += r.IDs
		if r.Finding == nil {
			continue
		}
		fail(t, Options{Seed: r.Seed, Regime: r.Regime}, &r)
	}
	if steps < 5_000*len(seeds) || ids < 2_500*len(seeds) {
		t.Errorf("only %d steps and %d ids in %d histories", steps, ids, len(seeds))
	}
}

// fail prints a small history that fails like the given one.
func fail(t *testing.T, o Options, r *Result) {
	t.Helper()
	o, _ = Shrink(o, 10*time.Second)
	o.Trace = true
	small := Run(o)
	story := small.Story[max(0, len(small.Story)-80):]
	t.Fatalf("seed %s, step %d: %s: %s\n  %s\nAgain: go run ./internal/sim/search -seed %s -regime %s -trace\nA smaller one:\n  %s\n  %s",
		r.Name, r.Finding.Step, r.Finding.Kind, r.Finding.Text, r.Plan, r.Name, r.Regime, small.Plan, strings.Join(story, "\n  "))
}

func TestNothingIsFoundAmongProgramsThatLeaseFromServers(t *testing.T) {
	seeds := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for _, regime := range []Regime{Durable, Reasserted} {
		ids := 0
		for _, r := range playAll(t, seeds, Options{Regime: regime, Lent: true}) {
			ids += r.IDs
			if r.Finding != nil {
				fail(t, Options{Seed: r.Seed, Regime: regime, Lent: true}, &r)
			}
		}
		if ids < 200*len(seeds) {
			t.Errorf("%s: only %d ids in %d histories", regime, ids, len(seeds))
		}
	}
}

// TestNothingIsFoundInChangedHistories plays histories that the search derives from others.
func TestNothingIsFoundInChangedHistories(t *testing.T) {
	n := histories / 4
	for _, regime := range Regimes {
		c := NewCorpus(rand.Uint64() >> 16)
		for range n / len(Regimes) {
			o := c.Next(Options{Regime: regime})
			r := Run(o)
			if r.Finding != nil {
				fail(t, o, &r)
			}
			c.Learn(o, &r)
		}
	}
}

// TestAnUnconfirmedWriteIsLostInAFork: otherwise forks would test nothing.
func TestAnUnconfirmedWriteIsLostInAFork(t *testing.T) {
	w := &world{Options: Options{Seed: 1, Regime: Durable}.filled()}
	w.trace, w.plan = newTrace(w), draw(w.Options)
	w.plan.replicated, w.plan.async, w.plan.lifeless, w.plan.often = true, false, false, [kinds]uint64{}
	w.latencies = stream(1, streamLatency)
	w.store = newRegister(w)
	outcomes := map[string]error{}
	write := func(key string) {
		e, err := w.store.main.swap(key, 0, []byte("x"))
		if err != nil || e.Life != "life 1" {
			t.Fatal(e, err)
		}
		outcomes[key] = errors.New("not answered")
		w.store.main.confirm(func(err error) { outcomes[key] = err })
		for w.step() { // until no events are left
		}
	}
	write("before")
	w.store.main.replica.linked = false
	write("after")
	if outcomes["before"] != nil || !errors.Is(outcomes["after"], store.ErrUnavailable) {
		t.Errorf("answered: %v", outcomes)
	}
	if !w.store.promote() || w.store.main.life != "life 2" {
		t.Fatal("the replica did not take over")
	}
	if _, err := (direct{w.store}).Get(t.Context(), "before"); err != nil {
		t.Errorf("what was confirmed: %v", err)
	}
	if _, err := (direct{w.store}).Get(t.Context(), "after"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was not confirmed: %v", err)
	}
}

func TestNamesOfHistories(t *testing.T) {
	o, err := Options{Regime: Strict}.Named("4711.3.12")
	if want := (Options{Regime: Strict, Seed: 4711, Changes: []uint64{3, 12}}); err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("read as %+v, %v", o, err)
	}
	if o.Name() != "4711.3.12" {
		t.Errorf("called %s", o.Name())
	}
	if _, err := o.Named("4711.x"); err == nil {
		t.Error("4711.x is a name")
	}
}

// TestViolationsBeyondThePromisesAreFound: if the store loses what it acknowledged while processes crash and
// pause, only strict pools are safe.
func TestViolationsBeyondThePromisesAreFound(t *testing.T) {
	found := map[string]int{}
	const n, least = 900, 5
	for _, r := range playAll(t, fixed(n), Options{Regime: Unprotected}) {
		if r.Finding != nil {
			found[r.Finding.Kind]++
		}
	}
	if found["duplicate"]+found["overlap"] < least {
		t.Errorf("in %d histories without protection were found: %v", n, found)
	}
}

func TestTheUsualDesignRepeatsItself(t *testing.T) {
	stricken, ids := 0, 0
	for _, r := range playAll(t, fixed(60), Options{Regime: Durable, Rival: true, Count: true}) {
		ids += r.IDs
		if r.Duplicates > 0 {
			stricken++
		}
	}
	if stricken < 20 || stricken == 60 || ids < 200_000 {
		t.Errorf("duplicates in %d of 60 histories, with %d ids", stricken, ids)
	}
}

// TestTheUsualDesignIsRightWithoutFaults: otherwise the comparison would be unfair.
func TestTheUsualDesignIsRightWithoutFaults(t *testing.T) {
	o := Options{Regime: Strict, Rival: true, Count: true, Without: Faults()}
	for _, r := range playAll(t, fixed(60), o) {
		if r.Duplicates > 0 || r.Faults > 0 {
			t.Errorf("seed %d: %d duplicates and %d faults", r.Seed, r.Duplicates, r.Faults)
		}
	}
}

func TestASeedDeterminesEverything(t *testing.T) {
	for seed := range uint64(6) {
		o := Options{Seed: seed, Changes: []uint64{seed, 2 * seed}, Steps: 2000, Trace: true}
		once, again := Run(o), Run(o)
		if !reflect.DeepEqual(once, again) {
			for i := range once.Story {
				if i >= len(again.Story) || once.Story[i] != again.Story[i] {
					t.Fatalf("seed %d: the stories part at line %d: %s", seed, i, once.Story[i])
				}
			}
			t.Fatalf("seed %d: %+v and %+v", seed, once, again)
		}
		if len(once.Story) < 20 {
			t.Errorf("seed %d: a story of %d lines", seed, len(once.Story))
		}
		o.Trace = false
		silent := Run(o)
		if silent.Steps != once.Steps || silent.IDs != once.IDs {
			t.Errorf("seed %d: another history without its story: %d steps, not %d", seed, silent.Steps, once.Steps)
		}
	}
}

func TestEveryFaultHappens(t *testing.T) {
	var happened [kinds]int
	for _, r := range playAll(t, fixed(90), Options{Steps: 3000}) {
		for k, n := range r.Kinds {
			happened[k] += n
		}
	}
	for k, n := range happened {
		if n == 0 {
			t.Errorf("%v never happened", kind(k))
		}
	}
}

func TestAFailureIsMadeSmaller(t *testing.T) {
	for seed := uint64(300); seed < 400; seed++ { // about one in forty fails
		o := Options{Seed: seed, Regime: Unprotected}
		r := Run(o)
		if r.Finding == nil || r.Faults < 5 { // it is small enough
			continue
		}
		small, s := Shrink(o, 20*time.Second)
		if s.Finding == nil || s.Finding.Kind != r.Finding.Kind {
			t.Fatalf("seed %d: %v became %v", seed, r.Finding, s.Finding)
		}
		if s.Faults >= r.Faults || s.Machines > r.Machines {
			t.Errorf("seed %d: %d faults, %d processes became %d, %d", seed, r.Faults, r.Machines, s.Faults, s.Machines)
		}
		if again := Run(small); !reflect.DeepEqual(again.Finding, s.Finding) {
			t.Errorf("seed %d: played again, the smaller history ends in %v", seed, again.Finding)
		}
		return
	}
	t.Fatal("nothing was found to make smaller")
}

func BenchmarkSteps(b *testing.B) {
	steps, ids := 0, 0
	seed := uint64(0)
	for b.Loop() {
		r := Run(Options{Seed: seed})
		steps += r.Steps
		ids += r.IDs
		seed++
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(float64(ids)/b.Elapsed().Seconds(), "ids/s")
}
