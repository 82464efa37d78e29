package firn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// sleeps records how long each sleep is.
type sleeps struct {
	*firntest.Clock
	each  []time.Duration
	after func() error
}

func (s *sleeps) Sleep(ctx context.Context, d time.Duration) error {
	s.each = append(s.each, d)
	if s.after != nil {
		if err := s.after(); err != nil {
			return err
		}
	}
	return s.Clock.Sleep(ctx, d)
}

// onSleeps returns a generator whose clock was set back by 2.5s after its first id.
func onSleeps(t *testing.T, chain string) (*firn.Generator, *sleeps) {
	t.Helper()
	s := &sleeps{Clock: newClock()}
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	g, err := firn.NewLeased(firn.Config{Layout: seconds, Clock: firn.ClockWall, Rollback: parseChain(t, chain), Start: firn.StartZero, Time: s},
		firn.Grant{Worker: 5, After: now - 1, Through: now + 99})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Step(-2500 * time.Millisecond)
	return g, s
}

// A try sleeps a second at a time, since the generator may end meanwhile, and then the rest.
func TestATrySleepsUntilTheClockHasCaughtUp(t *testing.T) {
	g, s := onSleeps(t, "wait 1h 1")
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.each) != 3 || s.each[0] != time.Second || s.each[1] != time.Second || s.each[2] != 500*time.Millisecond {
		t.Errorf("it slept %v", s.each)
	}
}

func TestATryEndsWithItsCaller(t *testing.T) {
	gone := errors.New("the caller is gone")
	g, s := onSleeps(t, "wait 1h 1")
	s.after = func() error { return gone }
	if id, err := g.Next(t.Context()); !errors.Is(err, gone) || len(s.each) != 1 {
		t.Errorf("id %d, %v, after %v", id, err, s.each)
	}
}

func TestATryEndsWithTheGenerator(t *testing.T) {
	g, s := onSleeps(t, "wait 1h 1")
	s.after = func() error { g.Stop(); return nil }
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClosed) || len(s.each) != 1 {
		t.Errorf("id %d, %v, after %v", id, err, s.each)
	}
}

// Switch is called with the clock's tick, or with 0 before the epoch.
func TestASwitchAsksForTheTickOfTheClock(t *testing.T) {
	for back, want := range map[time.Duration]func(now firn.Tick) firn.Tick{
		time.Second:            func(now firn.Tick) firn.Tick { return now - 1 },
		noon.Sub(epochPlus(0)): func(firn.Tick) firn.Tick { return 0 },
		noon.Sub(epochPlus(1)): func(firn.Tick) firn.Tick { return 1 },
		noon.Sub(epochPlus(2)): func(firn.Tick) firn.Tick { return 2 },
	} {
		asked := firn.Tick(-1)
		g, clock, now := onLease(t, "switch", 99, func(_ context.Context, from firn.Tick) (firn.Grant, error) {
			asked = from
			return firn.Grant{Worker: 6, After: from - 1, Through: from + 99}, nil
		})
		clock.Step(-back)
		id, err := g.Next(t.Context())
		if err != nil || asked != want(now) || partsOf(seconds, id).Worker != 6 {
			t.Errorf("%v back: asked for tick %d; id %d, %v", back, asked, id, err)
		}
	}
}

// epochPlus returns the time n seconds after the epoch.
func epochPlus(n int64) time.Time { return seconds.Time(firn.Tick(n)) }

// An impossible switch changes nothing.
func TestASwitchToAnImpossibleGrantFails(t *testing.T) {
	for name, grant := range map[string]firn.Grant{
		"a worker out of range": {Worker: 64, After: 1, Through: 99},
		"a fence below all":     {Worker: 6, After: 1, Through: -2},
		"a begin beyond all":    {Worker: 6, After: seconds.MaxTick() + 1, Through: 99},
		"a begin below first":   {Worker: 6, After: -2, Through: 99},
	} {
		calls := 0
		g, clock, now := onLease(t, "switch", 99, func(context.Context, firn.Tick) (firn.Grant, error) {
			calls++
			return grant, nil
		})
		clock.Step(-time.Minute)
		if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrRange) || !errors.Is(err, firn.ErrClockBack) || calls != 1 {
			t.Errorf("%s: id %d, %v, after %d calls", name, id, err, calls)
		}
		if s := g.State(); s.Worker != 5 || s.Last != now || s.Fence != now+99 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestAGeneratorThatStopsDuringASwitchDoesNotUseTheGrant(t *testing.T) {
	var g *firn.Generator
	g, clock, now := onLease(t, "switch", 99, func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		if worker, last := g.Stop(); worker != 5 || last != from+60 {
			t.Errorf("stopped with worker %d, last tick %d", worker, last)
		}
		return firn.Grant{Worker: 6, After: from - 1, Through: from + 99}, nil
	})
	clock.Step(-time.Minute)
	id, err := g.Next(t.Context())
	if worker, last := g.Stop(); !errors.Is(err, firn.ErrClosed) || worker != 5 || last != now {
		t.Errorf("id %d, %v; stopped with worker %d, last tick %d", id, err, worker, last)
	}
	for name, err := range map[string]error{"Extend": g.Extend(5, now+200), "Replace": g.Replace(firn.Grant{Worker: 7, After: now, Through: now + 9})} {
		if !errors.Is(err, firn.ErrClosed) {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
	if s := g.State(); s.Worker != 5 || s.Fence != now+99 {
		t.Errorf("after the end: %+v", s)
	}
}

// A panic in Retired reaches the caller and ends the switch.
func TestAfterAPanicOfRetiredAnotherSwitchIsMade(t *testing.T) {
	clock := newClock()
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	worker := int64(5)
	g, err := firn.NewLeased(firn.Config{
		Layout: seconds, Clock: firn.ClockWall, Rollback: parseChain(t, "switch"), Time: clock,
		Switch: func(_ context.Context, from firn.Tick) (firn.Grant, error) {
			worker++
			return firn.Grant{Worker: worker, After: from - 1, Through: from + 99}, nil
		},
		Retired: func(old, _ int64, _ firn.Tick) {
			if old == 5 {
				panic("Retired panicked")
			}
		},
	}, firn.Grant{Worker: worker, After: now - 1, Through: now + 99})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Step(-time.Minute)
	panics(t, g)
	for want := int64(6); want < 9; want++ {
		if id, err := g.Next(t.Context()); err != nil || partsOf(seconds, id).Worker != want {
			t.Errorf("id %d of worker %d, not %d: %v", id, partsOf(seconds, id).Worker, want, err)
		}
		clock.Step(-time.Minute)
	}
}

// panics expects that the next call panics.
func panics(t *testing.T, g *firn.Generator) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("the panic is lost")
		}
	}()
	g.Next(t.Context())
}

// The panic reaches the caller; other calls do not wait for the switch any more.
func TestASourceOfWorkersThatPanicsFailsTheSwitch(t *testing.T) {
	calls := 0
	g, clock, _ := onLease(t, "switch", 99, func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		if calls++; calls == 1 {
			panic("out of workers")
		}
		return firn.Grant{Worker: 6, After: from - 1, Through: from + 99}, nil
	})
	clock.Step(-time.Minute)
	panics(t, g)
	if id, err := g.Next(t.Context()); err != nil || partsOf(seconds, id).Worker != 6 {
		t.Errorf("after the panic: id %d, %v", id, err)
	}
}

func TestRetiredIsCalledForTheOldWorker(t *testing.T) {
	clock := newClock()
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	type change struct {
		old, next int64
		last      firn.Tick
	}
	var heard []change
	g, err := firn.NewLeased(firn.Config{Layout: seconds, Clock: firn.ClockWall, Start: firn.StartZero, Time: clock, Retired: func(old, next int64, last firn.Tick) {
		heard = append(heard, change{old, next, last})
	}}, firn.Grant{Worker: 5, After: now - 1, Through: now + 9})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]firn.ID, 3) // two of them from the word
	if _, err := g.Fill(context.Background(), ids[:1]); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Fill(context.Background(), ids[1:]); err != nil {
		t.Fatal(err)
	}
	if err := g.Replace(firn.Grant{Worker: 6, After: now + 3, Through: now + 9}); err != nil {
		t.Fatal(err)
	}
	if err := g.Replace(firn.Grant{Worker: 7, After: now, Through: now + 9}); err != nil {
		t.Fatal(err)
	}
	if want := []change{{5, 6, now}, {6, 7, now + 3}}; len(heard) != 2 || heard[0] != want[0] || heard[1] != want[1] {
		t.Errorf("%+v, not %+v", heard, want)
	}
	if err := g.Replace(firn.Grant{Worker: 64, After: now, Through: now + 9}); !errors.Is(err, firn.ErrRange) || len(heard) != 2 {
		t.Errorf("a worker out of range: %v", err)
	}
	if err := g.Extend(6, now+10); !errors.Is(err, firn.ErrRange) {
		t.Errorf("Extend for the old worker: %v", err)
	}
	if err := g.Extend(7, now+10); err != nil || g.State().Fence != now+10 {
		t.Errorf("%v, %+v", err, g.State())
	}
}

func TestAGeneratorMayStartAtTheEpoch(t *testing.T) {
	for _, clock := range []firn.ClockKind{firn.ClockWall, firn.ClockSteady} {
		begin := seconds.Epoch()
		g, err := firn.New(0, firn.Config{Layout: seconds, Clock: clock, Ahead: -1, Time: firntest.NewClock(begin)})
		if err != nil {
			t.Fatal(err)
		}
		if id, err := g.Next(t.Context()); err != nil || partsOf(seconds, id).Tick != 1 {
			t.Errorf("%v: id of tick %d, %v", clock, partsOf(seconds, id).Tick, err)
		}
		if _, err := firn.New(0, firn.Config{Layout: seconds, Clock: clock, Time: firntest.NewClock(begin.Add(-1))}); !errors.Is(err, firn.ErrRange) {
			t.Errorf("%v: a nanosecond before the epoch: %v", clock, err)
		}
	}
}

func TestAGeneratorStartsOnlyIfItsLeadEndsWithinTheLayout(t *testing.T) {
	short := mustLayout("20/0/6/3,unit=1s")
	for left, starts := range map[time.Duration]bool{20*time.Second + 2*time.Millisecond: false, 20*time.Second + 2*time.Millisecond + 1: true} {
		clock := firntest.NewClock(short.End().Add(-left))
		if _, err := firn.New(0, firn.Config{Layout: short, Ahead: 20 * time.Second, Time: clock}); (err == nil) != starts || !starts && !errors.Is(err, firn.ErrTimeExhausted) {
			t.Errorf("%v before the end: %v", left, err)
		}
	}
}

// A virtual clock begins at From or at the lease's first tick, whichever is later.
func TestAVirtualClockBeginsAtFromWithinItsLease(t *testing.T) {
	from, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ after, want firn.Tick }{{from - 9, from}, {from - 1, from}, {from, from + 1}, {from + 4, from + 5}} {
		for name, cfg := range map[string]firn.Config{
			"From": {From: noon, Time: firntest.NewClock(noon.Add(time.Hour))},
			"now":  {Time: newClock()},
		} {
			cfg.Layout, cfg.Clock, cfg.Start = seconds, firn.ClockVirtual, firn.StartZero
			g, err := firn.NewLeased(cfg, firn.Grant{Worker: 1, After: c.after, Through: from + 99})
			if err != nil {
				t.Fatal(err)
			}
			if now := g.Now(); now != c.want {
				t.Errorf("%s, after %d: it shows %d before the first id", name, c.after-from, now-from)
			}
			id, err := g.Next(t.Context())
			if err != nil || partsOf(seconds, id).Tick != c.want || g.Now() != c.want {
				t.Errorf("%s, after %d: %v, the first id is of tick %d, and it shows %d", name, c.after-from, err, partsOf(seconds, id).Tick-from, g.Now()-from)
			}
		}
	}
	for _, clock := range []firn.TimeSource{newClock()} {
		if _, err := firn.New(0, firn.Config{Layout: seconds, Clock: firn.ClockVirtual, From: seconds.Epoch().Add(-1), Time: clock}); err == nil {
			t.Error("a virtual clock before the epoch")
		}
		if _, err := firn.NewLeased(firn.Config{Layout: seconds, Clock: firn.ClockVirtual, From: seconds.Epoch().Add(-1), Time: clock}, firn.Grant{After: 1, Through: 9}); err == nil {
			t.Error("a leased virtual clock before the epoch")
		}
	}
}

// State counts ids that the core does not know of yet, but not positions that no caller got.
func TestTheStateIncludesTheLatestIDs(t *testing.T) {
	g, clock, now := onLease(t, "", 3, nil)
	check := func(when string, last firn.Tick) {
		t.Helper()
		if s := g.State(); s != (firn.State{Worker: 5, Last: last, Fence: now + 3}) {
			t.Errorf("%s: %+v, not last %d", when, s, last)
		}
	}
	check("after the first", now)
	for range 7 {
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check("when the tick is used up", now)
	clock.Pass(2 * time.Second)
	check("before the next", now)
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("after it", now+2)
	if worker, last := g.Stop(); worker != 5 || last != now+2 {
		t.Errorf("stopped with worker %d, last %d", worker, last)
	}
	check("after the end", now+2)
	if text := g.String(); text != "generator of worker 5, layout "+seconds.String()+", clock wall" {
		t.Error(text)
	}
}

func TestTheStateBeforeTheFirstIDHasTheTickBeforeTheGrant(t *testing.T) {
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	g, err := firn.NewLeased(firn.Config{Layout: seconds, Clock: firn.ClockWall, Time: newClock()}, firn.Grant{Worker: 5, After: now - 1, Through: now + 3})
	if err != nil {
		t.Fatal(err)
	}
	if s := g.State(); s != (firn.State{Worker: 5, Last: now - 1, Fence: now + 3}) {
		t.Errorf("under the first grant: %+v", s)
	}
	if err := g.Replace(firn.Grant{Worker: 6, After: now + 1, Through: now + 9}); err != nil {
		t.Fatal(err)
	}
	if s := g.State(); s != (firn.State{Worker: 6, Last: now + 1, Fence: now + 9}) {
		t.Errorf("under the second: %+v", s)
	}
}

// With a lead, the word spans several ticks. State counts only the ids taken from it.
func TestTheStateWithALeadCountsOnlyIssuedIDs(t *testing.T) {
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	for ids, want := range map[int]firn.Tick{1: now, 8: now, 9: now + 1, 16: now + 1, 17: now + 2} {
		g, err := firn.NewLeased(firn.Config{Layout: seconds, Clock: firn.ClockWall, Ahead: 3 * time.Second, Start: firn.StartZero, Time: newClock()},
			firn.Grant{Worker: 5, After: now - 1, Through: now + 9})
		if err != nil {
			t.Fatal(err)
		}
		for range ids {
			if _, err := g.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if last := g.State().Last; last != want {
			t.Errorf("after %d ids: tick %d, not %d", ids, last-now, want-now)
		}
		_, last := g.Stop()
		if shown := g.State().Last; last != want || shown != want {
			t.Errorf("stopped after %d ids: ticks %d and %d, not %d", ids, last-now, shown-now, want-now)
		}
	}
}

// A negative lead means no lead: the clock is the bound.
func TestAVirtualClockWithoutALeadStaysBehindTheClock(t *testing.T) {
	clock := newClock()
	g, err := firn.New(0, firn.Config{Layout: seconds, Clock: firn.ClockVirtual, From: noon.Add(-time.Second), Ahead: -1, Start: firn.StartZero, Time: clock})
	if err != nil {
		t.Fatal(err)
	}
	for range 16 { // two ticks up to now
		if _, err := g.Next(t.Context()); err != nil || clock.Slept() > 0 {
			t.Fatal(err, clock.Slept())
		}
	}
	if _, err := g.Next(t.Context()); err != nil || clock.Slept() != time.Second {
		t.Errorf("%v, after %v", err, clock.Slept())
	}
}

// restless is a wall clock that is set to another time after some readings.
type restless struct {
	*firntest.Clock
	readings int
	then     time.Time
}

func (r *restless) Wall() time.Time {
	at := r.Clock.Wall()
	if r.readings--; r.readings == 0 {
		r.Set(r.then)
	}
	return at
}

// Between the decision to switch and the switch the clock may be set to any time. The switch asks for the tick of the decision.
func TestASwitchAsksForNoTickOutsideOfTheLayout(t *testing.T) {
	short := mustLayout("30/0/6/3,unit=1s")
	now, err := short.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	for claim, then := range map[string]time.Time{"before the epoch": short.Epoch().Add(-time.Hour), "after the end": short.End().Add(time.Hour)} {
		clock := &restless{Clock: newClock(), then: then}
		asked := firn.Tick(-1)
		g, err := firn.NewLeased(firn.Config{
			Layout: short, Clock: firn.ClockWall, Rollback: parseChain(t, "switch"), Time: clock,
			Switch: func(_ context.Context, from firn.Tick) (firn.Grant, error) {
				asked = from
				return firn.Grant{}, errors.New("no worker left")
			},
		}, firn.Grant{Worker: 5, After: now - 1, Through: now + 9})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(-time.Minute)
		clock.readings = 2 // one by the usual call, one by the decision
		if id, err := g.Next(t.Context()); err == nil || asked != now-60 {
			t.Errorf("%s: asked for tick %d; id %d, %v", claim, asked, id, err)
		}
	}
}

// A virtual clock without From starts above every tick that an earlier process can have used.
func TestAVirtualClockStartsATickAndTheLeadAhead(t *testing.T) {
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	for lead, want := range map[time.Duration]firn.Tick{-1: now + 1, 3 * time.Second: now + 4} {
		g, err := firn.New(0, firn.Config{Layout: seconds, Clock: firn.ClockVirtual, Ahead: lead, Time: newClock()})
		if err != nil || g.Now() != want {
			t.Errorf("lead %v: it begins at %d, not %d; %v", lead, g.Now()-now, want-now, err)
		}
	}
}

func TestALeasedGeneratorHasTheGrantsWorkerAndFitsTheLayout(t *testing.T) {
	for _, grant := range []firn.Grant{{Worker: 64, After: 1, Through: 9}, {After: -2, Through: 9}, {After: 1, Through: -2}} {
		if g, err := firn.NewLeased(firn.Config{Layout: seconds, Time: newClock()}, grant); g != nil || !errors.Is(err, firn.ErrRange) {
			t.Errorf("%+v: %v, %v", grant, g, err)
		}
	}
	if g, err := firn.NewLeased(firn.Config{Layout: seconds, Ahead: 8761 * time.Hour}, firn.Grant{Worker: 7, After: 1, Through: 9}); g != nil || !errors.Is(err, firn.ErrRange) {
		t.Errorf("a setting out of range: %v, %v", g, err)
	}
	short := mustLayout("20/0/6/3,unit=1s")
	var exhausted *firn.TimeExhaustedError
	if _, err := firn.New(0, firn.Config{Layout: short, Time: firntest.NewClock(short.End())}); !errors.As(err, &exhausted) || !exhausted.End.Equal(short.End()) || exhausted.Layout != short {
		t.Errorf("after the end: %v", err)
	}
}

// The error is the fence's, not the clock's and not the context's.
func TestAFenceIsReportedEvenIfTheCallersContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	g, clock, _ := onLease(t, "switch, ahead 1000", 0, func(context.Context, firn.Tick) (firn.Grant, error) {
		cancel()
		return firn.Grant{}, errors.New("no worker left")
	})
	for range 7 {
		if _, err := g.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	clock.Step(-time.Minute)
	if id, err := g.Next(ctx); !errors.Is(err, firn.ErrFence) {
		t.Errorf("id %d, %v", id, err)
	}
}

func TestATryOfASecondSleepsOnce(t *testing.T) {
	g, s := onSleeps(t, "wait 1h 1")
	s.Step(1500 * time.Millisecond) // a second is left
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.each) != 1 || s.each[0] != time.Second {
		t.Errorf("it slept %v", s.each)
	}
}

// The wall clock may be set during the sleep, so that it shows the time earlier or later.
func TestATryEndsWhenTheClockShowsWhatItWaitsFor(t *testing.T) {
	g, s := onSleeps(t, "wait 1h 1")
	s.after = func() error { s.Step(1500 * time.Millisecond); return nil } // the sleep adds a second
	if _, err := g.Next(t.Context()); err != nil || len(s.each) != 1 {
		t.Errorf("%v, it slept %v", err, s.each)
	}
}

func TestATryIsOverAfterItsLastSecond(t *testing.T) {
	g, s := onSleeps(t, "wait 1h 1")
	s.after = func() error { s.Step(-1); return nil }
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClockBack) || len(s.each) != 3 || s.each[2] != 500*time.Millisecond {
		t.Errorf("2.5s: id %d, %v, it slept %v", id, err, s.each)
	}
	g, s = onSleeps(t, "wait 1h 1")
	s.Step(500 * time.Millisecond)
	s.after = func() error { s.Step(-1); return nil }
	if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrClockBack) || len(s.each) != 2 {
		t.Errorf("2s: id %d, %v, it slept %v", id, err, s.each)
	}
}

// The core does not know that tick yet.
func TestAVirtualClockShowsTheTickOfTheNextID(t *testing.T) {
	from, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	g, err := firn.NewLeased(firn.Config{Layout: seconds, Clock: firn.ClockVirtual, From: noon, Start: firn.StartZero, Time: newClock()},
		firn.Grant{Worker: 5, After: from - 1, Through: from + 9})
	if err != nil {
		t.Fatal(err)
	}
	for i := range firn.Tick(30) {
		if now := g.Now(); now != from+i/8 {
			t.Errorf("after %d ids it shows %d, not %d", i, now-from, i/8)
		}
		if id, err := g.Next(t.Context()); err != nil || partsOf(seconds, id).Tick != from+i/8 {
			t.Fatalf("id %d of tick %d, %v", id, partsOf(seconds, id).Tick-from, err)
		}
	}
	if _, ok := g.Halt(5); !ok {
		t.Fatal("not halted")
	}
	if now := g.Now(); now != from+10 {
		t.Errorf("when nothing is issued up to the fence, it shows %d", now-from)
	}
}

// unread is a time source that fails the test when it is read after some moment.
type unread struct {
	*firntest.Clock
	t    *testing.T
	from bool
}

func (u *unread) Wall() time.Time {
	if u.from {
		u.t.Error("the wall clock is read")
	}
	return u.Clock.Wall()
}

func (u *unread) Monotonic() time.Duration {
	if u.from {
		u.t.Error("the monotonic clock is read")
	}
	return u.Clock.Monotonic()
}

func TestAVirtualClockWithoutABoundReadsNoOtherClock(t *testing.T) {
	from, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	clock := &unread{Clock: newClock(), t: t}
	g, err := firn.NewLeased(firn.Config{Layout: seconds, Clock: firn.ClockVirtual, From: noon, Start: firn.StartZero, Time: clock},
		firn.Grant{Worker: 5, After: from - 1, Through: from + 1})
	if err != nil {
		t.Fatal(err)
	}
	clock.from = true
	if n, err := g.Fill(context.Background(), make([]firn.ID, 20)); n != 16 || !errors.Is(err, firn.ErrFence) {
		t.Errorf("%d ids of two ticks, %v", n, err)
	}
	if err := g.Replace(firn.Grant{Worker: 6, After: from + 1, Through: from + 9}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if id, err := g.Next(t.Context()); err != nil || partsOf(seconds, id).Tick != g.Now() {
			t.Errorf("id %d, %v", id, err)
		}
	}
}

// sleepless is a clock that cannot wait.
type sleepless struct {
	*firntest.Clock
	err error
}

func (s sleepless) Sleep(ctx context.Context, _ time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.err
}

func TestTheErrorOfAWait(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	left, leave := context.WithCancelCause(t.Context())
	leave(errors.New("the caller has left"))
	for want, ctx := range map[string]context.Context{
		"firn: wait for an id: no timer":                              t.Context(),
		"firn: wait for an id: context canceled":                      gone,
		"firn: wait for an id: context canceled: the caller has left": left,
	} {
		g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/10/0"), Clock: firn.ClockWall, Start: firn.StartZero, Time: sleepless{newClock(), errors.New("no timer")}})
		var err error
		for range 3 { // of which one at least waits
			if _, e := g.Next(ctx); e != nil {
				err = e
			}
		}
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
