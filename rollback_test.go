package firn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// rig is a generator on a wall clock that the test controls.
type rig struct {
	t       *testing.T
	random  *rand.Rand
	time    *firntest.Clock
	gen     *firn.Generator
	layout  firn.Layout
	seen    map[firn.ID]bool
	last    firn.ID
	workers int64
}

func newRig(t *testing.T, layout, chain string, start firn.SequenceStart) *rig {
	t.Helper()
	return newRigOf(t, layout, chain, start, rand.New(rand.NewPCG(1, 7)), 0)
}

func newRigOf(t *testing.T, layout, chain string, start firn.SequenceStart, random *rand.Rand, lag time.Duration) *rig {
	t.Helper()
	r := &rig{t: t, random: random, time: newClock(), layout: mustLayout(layout), seen: map[firn.ID]bool{}}
	var err error
	r.gen, err = firn.New(0, firn.Config{
		Layout: r.layout, Clock: firn.ClockWall, Rollback: parseChain(t, chain), Start: start, Random: random.Uint64, Time: sleeping{r.time, t}, Lag: lag,
		Switch: func(_ context.Context, from firn.Tick) (firn.Grant, error) {
			if r.workers == r.layout.MaxWorker() {
				return firn.Grant{}, errors.New("no worker left")
			}
			r.workers++
			return firn.Grant{Worker: r.workers, After: from - 1, Through: r.layout.MaxTick()}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.take(1) // the first id waits for the tick after the start
	return r
}

func parseChain(t *testing.T, text string) firn.Rollback {
	t.Helper()
	chain, err := firn.ParseRollback(text)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

// sleeping fails a test whose generator would check again without sleeping: on a real
// machine it would keep a processor busy until the clock changes.
type sleeping struct {
	*firntest.Clock
	t *testing.T
}

func (s sleeping) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		s.t.Fatalf("it waits for %v", d)
	}
	return s.Clock.Sleep(ctx, d)
}

// take makes n ids, or returns the error; it fails on a duplicate.
func (r *rig) take(n int) error {
	r.t.Helper()
	ids := make([]firn.ID, n)
	n, err := r.gen.Fill(context.Background(), ids)
	for _, id := range ids[:n] {
		if r.seen[id] {
			r.t.Fatalf("id %d (%+v) was issued twice", id, partsOf(r.layout, id))
		}
		r.seen[id] = true
		r.last = id
	}
	return err
}

var steps = []time.Duration{time.Millisecond, 500 * time.Millisecond, 2 * time.Second, time.Hour}

func TestRefuseSaysHowFarTheClockWentBackAndStaysUsable(t *testing.T) {
	for _, by := range steps {
		r := newRig(t, "41/0/4/6", "refuse", firn.StartCarry)
		before := r.last
		r.time.Step(-by)
		err := r.take(1)
		var back *firn.ClockBackError
		if !errors.As(err, &back) || !errors.Is(err, firn.ErrClockBack) || back.By != by {
			t.Fatalf("after %v back: %v, want a ClockBackError by as much", by, err)
		}
		r.time.Step(by)
		if err := r.take(1); err != nil || r.last <= before {
			t.Errorf("after the clock came back: id %d after %d, %v", r.last, before, err)
		}
	}
}

func TestWaitSleepsUntilTheClockHasCaughtUp(t *testing.T) {
	for _, by := range steps {
		r := newRig(t, "41/0/4/6", "wait 500ms 2", firn.StartZero)
		before, slept := r.last, r.time.Slept()
		r.time.Step(-by)
		err := r.take(1)
		if by > 500*time.Millisecond {
			if !errors.Is(err, firn.ErrClockBack) || r.time.Slept() != slept {
				t.Errorf("%v back: %v after sleeping %v, want a refusal without", by, err, r.time.Slept()-slept)
			}
			continue
		}
		if err != nil || r.last <= before || r.time.Slept()-slept != by {
			t.Errorf("%v back: slept %v, id %d after %d, %v", by, r.time.Slept()-slept, r.last, before, err)
		}
	}
}

func TestWaitGivesUpAfterItsTries(t *testing.T) {
	r := newRig(t, "41/0/4/6", "wait 500ms 2", firn.StartZero)
	r.time.Step(-time.Millisecond)
	stuck := &stuckTime{Clock: r.time}
	gen, err := firn.New(0, firn.Config{Layout: r.layout, Clock: firn.ClockWall, Time: stuck, Rollback: firn.Rollback{firn.Wait(time.Second, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	r.time.Pass(time.Second)
	if _, err := gen.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.time.Step(-10 * time.Millisecond)
	if _, err := gen.Next(t.Context()); !errors.Is(err, firn.ErrClockBack) || stuck.sleeps != 2 {
		t.Errorf("a clock that does not move during sleeps: %v after %d sleeps, want a refusal after 2", err, stuck.sleeps)
	}
}

// stuckTime does not move during a sleep.
type stuckTime struct {
	*firntest.Clock
	sleeps int
}

func (s *stuckTime) Sleep(context.Context, time.Duration) error { s.sleeps++; return nil }

func TestHistoryGoesBackWithTheClockAndReusesNothing(t *testing.T) {
	for _, by := range steps {
		r := newRig(t, "41/0/4/6", "history 1000, refuse", firn.StartZero)
		for range 900 { // use ticks in part and skip some
			r.time.Pass(time.Duration(1+r.random.IntN(2)) * time.Millisecond)
			if err := r.take(r.random.IntN(40)); err != nil {
				t.Fatal(err)
			}
		}
		r.time.Step(-by)
		err := r.take(1)
		if by > time.Second {
			if !errors.Is(err, firn.ErrClockBack) {
				t.Errorf("%v back, beyond the history: %v", by, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%v back: %v", by, err)
		}
		if got := r.last.Time(r.layout); by > 100*time.Millisecond && got.After(r.time.Wall()) {
			t.Errorf("%v back: the id's time is %v, the clock's %v", by, got, r.time.Wall())
		}
		for range 3000 { // past all ticks that were used before
			r.time.Pass(time.Millisecond)
			if err := r.take(r.random.IntN(64)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Callers use up each tick for 15 s, and then the clock goes back by that.
func TestNoCallWaitsLongerForAFullHistoryThanItsLimit(t *testing.T) {
	for chain, want := range map[string]struct {
		slept  time.Duration
		worker int64
		err    error
	}{
		"history 2000":                      {0, 0, firn.ErrClockBack},
		"history 2000, refuse":              {0, 0, firn.ErrClockBack},
		"history 2000 14990ms, refuse":      {0, 0, firn.ErrClockBack},
		"history 2000 15s":                  {15 * time.Second, 0, nil},
		"history 2000, switch":              {0, 1, nil},
		"history 2000, ahead 5000":          {0, 0, nil},
		"wait 15s, history 2000":            {15 * time.Second, 0, nil},
		"history 2000, wait 14s":            {0, 0, firn.ErrClockBack},
		"history 2000, wait 15s 1, refuse":  {15 * time.Second, 0, nil},
		"history 2000 0s, ahead 10, switch": {0, 1, nil},
	} {
		r := newRig(t, "39/0/16/3,unit=10ms", chain, firn.StartZero)
		for range 1500 {
			r.time.Pass(10 * time.Millisecond)
			if err := r.take(8); err != nil {
				t.Fatal(err)
			}
		}
		r.time.Step(-15*time.Second + 10*time.Millisecond)
		slept := r.time.Slept()
		err := r.take(1)
		worker := r.gen.State().Worker
		if slept = r.time.Slept() - slept; !errors.Is(err, want.err) || slept > want.slept || slept < want.slept-20*time.Millisecond || worker != want.worker {
			t.Errorf("%s: %v after %v, worker %d; not %+v", chain, err, slept, worker, want)
		}
	}
}

// A disturbed time source runs a function after each sleep.
type disturbed struct {
	*firntest.Clock
	after func()
}

func (d *disturbed) Sleep(ctx context.Context, t time.Duration) error {
	err := d.Clock.Sleep(ctx, t)
	d.after()
	return err
}

// The limit is for all waits of a call, also when other callers use up the ticks that it waits for.
func TestTheLimitOfTheHistoryIsForAllWaitsOfACall(t *testing.T) {
	clock := newClock()
	var g *firn.Generator
	left := 0
	g = newGenerator(t, firn.Config{
		Layout: mustLayout("41/0/6/3,unit=1s"), Clock: firn.ClockWall, Rollback: parseChain(t, "history 20 4s"), Start: firn.StartZero,
		Time: &disturbed{clock, func() {
			if left > 0 { // another caller takes what the first waits for
				left--
				if _, err := g.Take(t.Context(), 8); err != nil {
					t.Error(err)
				}
			}
		}},
	})
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		clock.Pass(time.Second)
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	clock.Step(-8 * time.Second)
	if _, err := g.Take(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	slept := clock.Slept()
	left = 8
	_, err := g.Next(t.Context())
	if slept = clock.Slept() - slept; !errors.Is(err, firn.ErrClockBack) || slept != 4*time.Second {
		t.Errorf("%v after %v", err, slept)
	}
}

func TestAHistoryReachesBackAsManyTicksAsItHas(t *testing.T) {
	for by, want := range map[time.Duration]error{2000 * time.Millisecond: nil, 2001 * time.Millisecond: firn.ErrClockBack} {
		r := newRig(t, "41/0/4/6", "history 2000", firn.StartZero)
		for range 3000 {
			r.time.Pass(time.Millisecond)
			if err := r.take(1); err != nil {
				t.Fatal(err)
			}
		}
		r.time.Step(-by)
		if err := r.take(1); !errors.Is(err, want) {
			t.Errorf("%v back: %v", by, err)
		}
	}
}

func TestAheadCountsOnWhileTheClockIsBack(t *testing.T) {
	for _, by := range steps {
		r := newRig(t, "41/0/4/3", "ahead 1000, refuse", firn.StartCarry)
		before := r.last
		r.time.Step(-by)
		err := r.take(20) // more than a tick holds
		if by > time.Second {
			if !errors.Is(err, firn.ErrClockBack) {
				t.Errorf("%v back with 1000 ticks allowed: %v", by, err)
			}
			continue
		}
		if err != nil || r.last <= before {
			t.Errorf("%v back: id %d after %d, %v", by, r.last, before, err)
		}
	}
}

// Callers use up each tick, so ids stay ahead of the clock even after it has caught up with its
// readings before the step. Another step back must then be reported, not waited for.
func TestAheadReportsAnotherStepBack(t *testing.T) {
	for chain, want := range map[string]error{"ahead 100": firn.ErrClockBack, "ahead 100, switch": nil} {
		r := newRig(t, "41/0/4/3", chain, firn.StartCarry)
		r.time.Step(-time.Millisecond)
		n := 50 * 8 // ids of 50 ticks
		for range 10_000 {
			if err := r.take(n); err != nil {
				t.Fatal(err)
			}
			r.time.Pass(time.Millisecond)
			n = 8
		}
		slept := r.time.Slept()
		r.time.Step(-5 * time.Second)
		if err := r.take(1); !errors.Is(err, want) || r.time.Slept() != slept {
			t.Errorf("%s: %v after %v", chain, err, r.time.Slept()-slept)
		}
	}
}

func TestSwitchTakesAnotherWorkerAndTheClocksTime(t *testing.T) {
	for _, by := range steps {
		r := newRig(t, "41/0/4/6", "switch, refuse", firn.StartCarry)
		r.time.Step(-by)
		if err := r.take(1); err != nil {
			t.Fatal(err)
		}
		if p := partsOf(r.layout, r.last); p.Worker != 1 {
			t.Errorf("%v back: worker %d, want another than 0", by, p.Worker)
		}
		if got := r.last.Time(r.layout); !got.Equal(r.time.Wall().Truncate(time.Millisecond)) {
			t.Errorf("%v back: id at %v, clock at %v", by, got, r.time.Wall())
		}
	}
}

func TestAChainUsesTheFirstPolicyThatCanServe(t *testing.T) {
	r := newRig(t, "41/0/4/6", "wait 500ms, history 2000, switch, refuse", firn.StartZero)
	for range 3000 {
		r.time.Pass(time.Millisecond)
		if err := r.take(5); err != nil {
			t.Fatal(err)
		}
	}
	slept := r.time.Slept()
	r.time.Step(-100 * time.Millisecond)
	if err := r.take(1); err != nil || r.time.Slept() == slept || r.workers != 0 {
		t.Errorf("100ms back: %v, slept %v, switched to %d; want it waited out", err, r.time.Slept()-slept, r.workers)
	}
	slept = r.time.Slept()
	r.time.Step(-time.Second)
	if err := r.take(1); err != nil || r.time.Slept() != slept || r.workers != 0 {
		t.Errorf("1s back: %v, slept %v, switched to %d; want the history", err, r.time.Slept()-slept, r.workers)
	}
	r.time.Step(-time.Hour)
	if err := r.take(1); err != nil || r.workers != 1 {
		t.Errorf("1h back: %v, switched to %d; want another worker", err, r.workers)
	}
	for range 15 { // until there are no workers left
		r.time.Step(-time.Hour)
		if err := r.take(1); err != nil {
			if !errors.Is(err, firn.ErrClockBack) || r.workers != r.layout.MaxWorker() {
				t.Errorf("with worker %d: %v", r.workers, err)
			}
			return
		}
	}
	t.Error("switched more often than there are workers")
}

// A policy that could not serve before the wait may be able to serve after it.
func TestTheChainStartsOverAfterAWait(t *testing.T) {
	clock := newClock()
	slept := 0
	g := newGenerator(t, firn.Config{
		Layout: mustLayout("41/0/6/3,unit=1s"), Clock: firn.ClockWall, Rollback: parseChain(t, "ahead 5, wait 20s 1"), Start: firn.StartZero,
		Time: &stopping{clock, func() {
			if slept++; slept == 12 {
				clock.Step(-2 * time.Second) // another step, while the caller sleeps
			}
		}},
	})
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	slept = 0
	clock.Step(-12 * time.Second)
	if id, err := g.Next(t.Context()); err != nil {
		t.Errorf("two ticks back, with five allowed: id %d, %v", id, err)
	}
}

func TestTheGeneratorCopiesItsChain(t *testing.T) {
	clock, chain := newClock(), parseChain(t, "ahead 1000")
	g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/6/3"), Clock: firn.ClockWall, Rollback: chain, Time: clock})
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	chain[0] = firn.Refuse()
	clock.Step(-time.Millisecond)
	if _, err := g.Next(t.Context()); err != nil {
		t.Error(err)
	}
}

// ordered are the chains that promise increasing ids whatever the clock does.
var (
	ordered   = []string{"", "refuse", "wait 500ms", "wait 1h 3, refuse", "ahead 50", "wait 5ms, ahead 100000"}
	unordered = []string{
		"history 16", "history 2000", "history 3, ahead 7", "ahead 7, history 64", "switch",
		"wait 2ms, history 32, switch, refuse", "history 64, ahead 100000", "wait 1ms 1, ahead 5, history 16, switch",
	}
)

// The clock takes random steps: back by every size, back again before it has caught up, back
// while the sequence is used up, forward, and across laps of the history.
func TestNoHistoryOfTheClockMakesADuplicate(t *testing.T) {
	for _, chain := range append(append([]string{}, ordered...), unordered...) {
		for _, start := range []firn.SequenceStart{firn.StartCarry, firn.StartZero, firn.StartRandom} {
			t.Run(fmt.Sprintf("%s/%s", chain, start), func(t *testing.T) {
				for seed := range uint64(60) {
					playHistory(t, chain, start, rand.New(rand.NewPCG(seed, 7)), seed)
				}
			})
		}
	}
}

func playHistory(t *testing.T, chain string, start firn.SequenceStart, random *rand.Rand, seed uint64) {
	r := newRigOf(t, "41/0/6/3", chain, start, random, time.Duration(seed%2)*time.Second)
	keepsOrder := false
	for _, c := range ordered {
		keepsOrder = keepsOrder || c == chain
	}
	for step := range 400 {
		switch random.IntN(12) {
		case 0:
			r.time.Step(-time.Duration(random.IntN(20)) * time.Millisecond)
		case 1:
			r.time.Step(-steps[random.IntN(len(steps))])
		case 2:
			r.time.Step(time.Duration(random.IntN(200)) * time.Millisecond)
		case 3:
			r.time.Step(steps[random.IntN(len(steps))])
		default:
			r.time.Pass(time.Duration(random.IntN(3000)) * time.Microsecond)
		}
		before := r.last
		err := r.take(random.IntN(20))
		if err != nil && !errors.Is(err, firn.ErrClockBack) {
			t.Fatalf("seed %d step %d: %v", seed, step, err)
		}
		if keepsOrder && r.last < before {
			t.Fatalf("seed %d step %d: id %d after %d", seed, step, r.last, before)
		}
	}
}

func FuzzClockHistory(f *testing.F) {
	f.Add([]byte{1, 200, 3, 9, 250, 17, 3}, uint8(3))
	f.Fuzz(func(t *testing.T, script []byte, which uint8) {
		all := append(append([]string{}, ordered...), unordered...)
		random := rand.New(rand.NewPCG(uint64(len(script)), uint64(which)))
		r := newRigOf(t, "41/0/6/3", all[int(which)%len(all)], firn.SequenceStart(which%3), random, time.Duration(which/128)*time.Second)
		if len(script) > 500 {
			script = script[:500]
		}
		for _, b := range script {
			switch {
			case b < 100:
				r.time.Pass(time.Duration(b) * 100 * time.Microsecond)
			case b < 180:
				r.time.Step(-time.Duration(b-99) * time.Millisecond)
			case b < 230:
				r.time.Step(time.Duration(b-179) * time.Millisecond)
			case b < 240:
				r.time.Step(-time.Duration(b-229) * time.Second)
			}
			if err := r.take(int(b) % 20); err != nil && !errors.Is(err, firn.ErrClockBack) {
				t.Fatal(err)
			}
		}
	})
}

func TestAnInvalidChainIsRefusedWithEveryMistake(t *testing.T) {
	for _, text := range []string{
		"sleep", "wait x", "wait 500ms 0", "wait -1s", "history 0", "history 99999999999", "history x", "ahead", "ahead -5",
		"refuse, wait", "wait, wait", "switch 3", "wait 500ms,", "wait 1s 2 3", "wait 9999h",
	} {
		if r, err := firn.ParseRollback(text); err == nil {
			t.Errorf("%q was read as %v", text, r)
		} else if !errors.Is(err, firn.ErrSyntax) && !errors.Is(err, firn.ErrRange) {
			t.Errorf("%q: %v matches no sentinel", text, err)
		}
	}
	for _, cfg := range []firn.Config{
		{Rollback: firn.Rollback{firn.Refuse()}},
		{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}},
		{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.History(10, time.Second)}, Ahead: time.Second},
		{Clock: firn.ClockWall, Rollback: firn.Rollback{{}}},
	} {
		if _, err := firn.New(0, cfg); err == nil {
			t.Errorf("%+v made a generator", cfg)
		}
	}
}

func TestAPrintedChainIsParsedToTheSameChain(t *testing.T) {
	const text = "wait 500ms 2, history 2000 500ms, ahead 7, switch, refuse"
	r, err := firn.ParseRollback("wait, history, ahead 7, switch, refuse")
	if err != nil || r.String() != text {
		t.Errorf("%q, %v", r, err)
	}
}
