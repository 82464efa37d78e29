package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// wall is a generator on a wall clock, with ticks of a second and 16 workers.
func wall(clock *firntest.Clock, chain string) firn.Config {
	return firn.Config{Layout: layout("41/0/4/6,unit=1s"), Clock: firn.ClockWall, Rollback: must(firn.ParseRollback(chain)), Start: firn.StartZero, Time: clock}
}

// keepFixed starts a lease without its background goroutine: l.turn does its work.
func keepFixed(t *testing.T, source Source, clock *firntest.Clock, chain string) *Lease {
	t.Helper()
	l, err := start(t.Context(), source, Config{Generator: wall(clock, chain)})
	if err != nil {
		t.Fatal(err)
	}
	clock.Pass(2 * time.Second) // past its first tick
	return l
}

// worker makes an id, and returns its worker and time; or the error.
func worker(l *Lease) (int64, string, error) {
	id, err := l.Next(context.Background())
	p := partsOf(l.cfg.Generator.Layout, id)
	return p.Worker, l.cfg.Generator.Layout.Time(p.Tick).UTC().Format(time.TimeOnly), err
}

func TestAFixedWorkerIsItsHoldersForEver(t *testing.T) {
	ctx := context.Background()
	source := Fixed(7)
	grant, err := source.Acquire(ctx, Ask{Now: 90, From: 100}.always)
	if want := (firn.Grant{Worker: 7, After: 99, Through: endless}); err != nil || grant != want {
		t.Errorf("%+v, %v", grant, err)
	}
	if again, err := source.Renew(ctx, grant, Ask{From: 200}); err != nil || again != grant {
		t.Errorf("%+v, %v", again, err)
	}
	if again, err := source.Acquire(ctx, Ask{Now: 290, From: 300}.always); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "worker 7 is held") {
		t.Errorf("while it is in use: %+v, %v", again, err)
	}
	if err := errors.Join(source.Look(ctx, grant), source.Release(ctx, grant, 150)); err != nil {
		t.Error(err)
	}
	if grant, err := Fixed(7).Acquire(ctx, Ask{}.always); err != nil || grant.After != -1 {
		t.Errorf("from the first tick: %+v, %v", grant, err)
	}
}

// The number that was left is free again as soon as all its ids are in the past.
func TestSparesAreUsedInTurn(t *testing.T) {
	clock := firntest.NewClock(noon)
	l := keepFixed(t, Fixed(7, 8, 9), clock, "switch, refuse")
	next := func(after, step time.Duration, want int64) {
		t.Helper()
		clock.Pass(after)
		if got, at, err := worker(l); err != nil || got != l.grant.Worker {
			t.Fatalf("before the step: worker %d at %s, %v", got, at, err)
		}
		l.turn(t.Context()) // releases the number that was left
		clock.Step(step)
		if got, at, err := worker(l); err != nil || got != want {
			t.Fatalf("worker %d at %s, %v; want %d", got, at, err, want)
		}
	}
	next(3*time.Hour, -time.Hour, 8)        // 7 has ids up to 15:00
	next(10*time.Minute, -5*time.Minute, 9) // 8 up to 14:10
	next(30*time.Minute, -10*time.Minute, 8)
	next(2*time.Hour, -10*time.Minute, 7) // 7's are in the past again
	if s := l.State(); s.Switches != 4 || s.Errors != 0 {
		t.Errorf("%+v", s)
	}
}

func TestWithoutAFreeSpareTheNextPolicyServes(t *testing.T) {
	clock := firntest.NewClock(noon)
	l := keepFixed(t, Fixed(7, 8), clock, "switch, refuse")
	clock.Pass(2 * time.Hour)
	worker(l)
	clock.Step(-time.Hour)
	if got, _, err := worker(l); err != nil || got != 8 {
		t.Fatalf("worker %d, %v", got, err)
	}
	l.turn(t.Context())
	clock.Step(-10 * time.Minute)
	_, _, err := worker(l)
	if !errors.Is(err, firn.ErrClockBack) || !errors.Is(err, ErrFull) ||
		!strings.Contains(err.Error(), "no worker for the time 2026-11-20T12:50:02Z: worker 7 has ids up to 2026-11-20T14:00:02Z, worker 8 is held") {
		t.Errorf("both have later ids: %v", err)
	}
	clock.Step(10 * time.Minute)
	if got, _, err := worker(l); err != nil || got != 8 {
		t.Errorf("when the clock is right again: worker %d, %v", got, err)
	}
	// An earlier process may have used the spare then.
	early := keepFixed(t, Fixed(7, 8), clock, "switch, refuse")
	worker(early)
	clock.Step(-time.Minute)
	if got, _, err := worker(early); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "an earlier process may have used worker 8 until 2026-11-20T13:00:02Z") {
		t.Errorf("before the start of the process: worker %d, %v", got, err)
	}
}

// Not even if it is restarted again and again, as long as the clock is not behind at a start.
func TestSparesRepeatNoIDAcrossRestarts(t *testing.T) {
	clock := firntest.NewClock(noon)
	seen := map[firn.ID]int{}
	highest, workers := clock.Wall(), map[int64]bool{}
	for life := range 200 {
		if behind := highest.Sub(clock.Wall()); behind > 0 {
			clock.Pass(behind)
		}
		l := must(start(t.Context(), Fixed(1, 2, 3), Config{Generator: wall(clock, "switch, refuse")}))
		for call := range 60 {
			if id, err := l.Next(t.Context()); err == nil {
				if before, ok := seen[id]; ok {
					t.Fatalf("life %d repeats an id of life %d: %+v", life, before, partsOf(l.cfg.Generator.Layout, id))
				}
				seen[id] = life
				workers[partsOf(l.cfg.Generator.Layout, id).Worker] = true
			} else if !errors.Is(err, firn.ErrClockBack) {
				t.Fatal(err)
			}
			if clock.Wall().After(highest) {
				highest = clock.Wall()
			}
			switch (call*7 + life*13) % 11 {
			case 0:
				clock.Step(-time.Duration(life%40) * time.Second)
			case 1:
				clock.Step(time.Duration(life%9) * time.Second)
			case 2:
				l.turn(t.Context())
			}
			clock.Pass(time.Duration(call%4) * time.Second)
			if clock.Wall().After(highest) {
				highest = clock.Wall()
			}
		}
		_ = l.leave(t.Context()) // it may say that the clock is still back
	}
	if len(workers) != 3 {
		t.Errorf("only the workers %v were used", workers)
	}
}

// After it the number would begin at the clock's time, below ids it has issued.
func TestCloseSaysUntilWhenARestartWouldRepeatIDs(t *testing.T) {
	for _, spares := range [][]int64{nil, {8}} {
		clock := firntest.NewClock(noon)
		chain := "refuse"
		if spares != nil {
			chain = "switch, refuse"
		}
		source := Fixed(7, spares...)
		l := keepFixed(t, source, clock, chain)
		clock.Pass(2 * time.Hour)
		worker(l)
		clock.Step(-time.Hour)
		worker(l)
		err := l.leave(context.Background())
		if want := "lease: worker 7 has ids up to 2026-11-20T14:00:02Z, ahead of the clock: start no process with its numbers before the clock has passed that"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("spares %v: %v", spares, err)
		}
		// The source itself knows.
		again, err := start(context.Background(), source, Config{Generator: wall(clock, chain)})
		if spares == nil {
			if !errors.Is(err, ErrFull) {
				t.Errorf("kept again: %v", err)
			}
			clock.Pass(time.Hour)
			again, err = start(context.Background(), source, Config{Generator: wall(clock, chain)})
		}
		if err != nil {
			t.Fatal(err)
		}
		clock.Pass(2 * time.Second)
		if got, at, err := worker(again); err != nil || got != map[bool]int64{true: 7, false: 8}[spares == nil] {
			t.Errorf("kept again: worker %d at %s, %v", got, at, err)
		}
		clock.Step(2 * time.Hour)
		if err := again.leave(context.Background()); err != nil {
			t.Errorf("the clock has passed all ids: %v", err)
		}
	}
}

func TestNumbersThatCannotBeUsedAreRefused(t *testing.T) {
	for _, c := range []struct {
		source Source
		chain  string
		wrong  string
	}{
		{Fixed(16), "refuse", "lease: Fixed: worker 16 is out of range: 0 to 15 are allowed (layout 41/0/4/6)"},
		{Fixed(7, 8, 16), "switch", "lease: Fixed: spare 16 is out of range: 0 to 15 are allowed (layout 41/0/4/6)"},
		{Fixed(7, -1), "switch", "lease: Fixed: spare -1 is out of range: 0 to 15 are allowed (layout 41/0/4/6)"},
		{Fixed(7, 8, 7), "switch", `lease: Fixed: "7" is not a valid spare: that is the worker itself: name other numbers`},
		{Fixed(7, 8, 9, 8), "switch", `lease: Fixed: "8" is not a valid spare: it is named twice: name each once`},
		{Fixed(7, 8), "wait, refuse", `lease: Config.Generator.Rollback: "wait 500ms 2, refuse" is not a valid rollback: only the policy switch uses spares: add switch, or leave out the spares`},
		{Fixed(7), "switch", `lease: Config.Generator.Rollback: "switch" is not a valid rollback: the worker is fixed, so there is no other to switch to: name spares for it, or leave out switch or the worker`},
	} {
		_, err := Keep(t.Context(), c.source, Config{Generator: wall(firntest.NewClock(noon), c.chain)})
		if fmt.Sprint(err) != c.wrong {
			t.Errorf("%v\nwant %s", err, c.wrong)
		}
	}
}

func TestAFunctionGivesTheNumberAndAnotherOneForASwitch(t *testing.T) {
	clock := firntest.NewClock(noon)
	errAway := errors.New("the registry is away")
	answers := []struct {
		n   int64
		err error
	}{{0, errAway}, {7, nil}, {0, errAway}, {7, nil}, {8, nil}}
	source := FixedFunc(func(context.Context) (int64, error) {
		a := answers[0]
		answers = answers[1:]
		return a.n, a.err
	})
	if _, err := start(t.Context(), source, Config{Generator: wall(clock, "switch, refuse")}); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "the number of a worker") {
		t.Fatal(err)
	}
	l := keepFixed(t, source, clock, "switch, refuse")
	clock.Pass(2 * time.Hour)
	worker(l)
	clock.Step(-time.Hour)
	if got, _, err := worker(l); !errors.Is(err, errAway) || !errors.Is(err, firn.ErrClockBack) {
		t.Errorf("the function fails: worker %d, %v", got, err)
	}
	if got, _, err := worker(l); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "worker 7 is held") {
		t.Errorf("the same number again: worker %d, %v", got, err)
	}
	if got, _, err := worker(l); err != nil || got != 8 {
		t.Errorf("another number: worker %d, %v", got, err)
	}
}

// A late release of an earlier grant must not free a number that is in use again.
func TestALateReleaseOfAFixedNumberDoesNothing(t *testing.T) {
	ctx, source := context.Background(), Fixed(7)
	first := must(source.Acquire(ctx, Ask{From: 100}.always))
	must(0, source.Release(ctx, first, 150))
	second := must(source.Acquire(ctx, Ask{From: 200}.always))
	must(0, source.Release(ctx, first, 150))
	if _, err := source.Acquire(ctx, Ask{From: 300}.always); !errors.Is(err, ErrFull) {
		t.Errorf("%+v was released: %v", second, err)
	}
}

// Whatever a release says, a number is not granted below its ids again.
func TestTheLastTickOfAFixedNumberNeverGoesBack(t *testing.T) {
	ctx, source := context.Background(), Fixed(7)
	first := must(source.Acquire(ctx, Ask{From: 100}.always))
	must(0, source.Release(ctx, first, 150))
	must(0, source.Release(ctx, first, 120))
	if g, err := source.Acquire(ctx, Ask{From: 150}.always); !errors.Is(err, ErrFull) {
		t.Errorf("released twice: %+v, %v", g, err)
	}
	second := must(source.Acquire(ctx, Ask{From: 151}.always))
	must(0, source.Release(ctx, second, 50)) // unused: no id has a tick above 150
	if g, err := source.Acquire(ctx, Ask{From: 150}.always); !errors.Is(err, ErrFull) {
		t.Errorf("released below its beginning: %+v, %v", g, err)
	}
}

// A process that starts now would begin at a tick above all ids, or Close fails. Numbers that another lease
// of this process still has do not count: its Close does.
func TestCloseComparesTheLatestIDWithTheStartOfAnotherProcess(t *testing.T) {
	ctx, source := context.Background(), Fixed(7, 8)
	first := must(source.Acquire(ctx, Ask{Now: 90, From: 100}.always))
	if second := must(source.Acquire(ctx, Ask{Now: 200, From: 210}.always)); second.Worker != 8 || second.After != 199 {
		t.Fatalf("%+v", second)
	}
	must(0, source.Release(ctx, first, 150))
	for range 20 { // its numbers are in no order
		for from, wrong := range map[firn.Tick]bool{149: true, 150: true, 151: false} {
			if err := source.(*fixed).ended(from); (err != nil) != wrong {
				t.Fatalf("from tick %d: %v", from, err)
			}
		}
	}
}

// A clock for tests does not move while nobody but the lease waits.
func TestALeaseDoesNotMoveAClockOfTests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := firntest.NewClock(noon)
		l := must(Keep(t.Context(), Fixed(7), Config{Generator: firn.Config{Time: clock}}))
		synctest.Wait() // until it waits for its first look
		if at := clock.Monotonic(); at != 0 {
			t.Errorf("%v have passed", at)
		}
		clock.Pass(time.Minute)
		synctest.Wait()
		if at := clock.Monotonic(); at != time.Minute || clock.Timers() != 1 {
			t.Errorf("after a look %v have passed, and %d wait", at, clock.Timers())
		}
		must(0, l.Close(t.Context()))
	})
}

// After a Close that failed, another releases what is left, and not what another lease has by then.
func TestASecondCloseReleasesNothingTwice(t *testing.T) {
	source := &leaver{give: []int64{1, 2}}
	l, clock := switching(t, source)
	goBack(t, l, clock)
	source.fail = func(_ context.Context, worker int64) error {
		if worker == 2 {
			return errAway
		}
		return nil
	}
	for range 2 {
		if err := l.Close(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("worker 2 cannot be released: %v", err)
		}
	}
	source.fail = nil
	for range 2 {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(source.released, []int64{1, 2}) {
		t.Errorf("released are %v", source.released)
	}
}

// A signal has ended the context: until when no process may start must be said all the same, and the number is free then.
func TestCloseWithAnEndedContextSaysUntilWhenARestartWouldRepeatIDs(t *testing.T) {
	source := Fixed(1)
	l := must(Keep(t.Context(), source, Config{Generator: firn.Config{Clock: firn.ClockVirtual, Layout: layout("41/0/4/3")}}))
	for range 10_000 {
		must(l.Next(t.Context()))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Close(ended); err == nil || !strings.Contains(err.Error(), "start no process") {
		t.Errorf("with ids ahead of the clock: %v", err)
	}
	if l := must(Keep(t.Context(), source, Config{Generator: firn.Config{Clock: firn.ClockVirtual, From: time.Now().Add(time.Hour), Layout: layout("41/0/4/3")}})); l.State().Worker != 1 {
		t.Errorf("%+v", l.State())
	}
}

// The clock moves on between two readings: what is asked for is read once.
func TestAFixedWorkerIsGrantedFromOneReadingOfTheClock(t *testing.T) {
	source, readings := Fixed(3), firn.Tick(0)
	ask := func() Ask { readings++; return Ask{Now: 100 + readings, From: 200 + readings, Window: 10} }
	if grant, err := source.Acquire(t.Context(), ask); err != nil || readings != 1 || grant.After != 200 {
		t.Errorf("%+v, %v after %d readings", grant, err, readings)
	}
}
