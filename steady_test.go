package firn_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// within returns a layout whose epoch is a year before noon.
func within(t *testing.T, layout string) firn.Layout {
	t.Helper()
	l, err := withEpoch(mustLayout(layout), noon.Add(-8760*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// While callers wait for the next tick, no id is issued. A look at the wall clock must then
// not set the clock back to the last id, or the wait would never end.
func TestASteadyClockAheadOfTheWallAdvances(t *testing.T) {
	for _, text := range []string{
		"uid-generator", "35/0/22/0,unit=1s", "30/0/10/3,unit=10s", "30/0/10/3,unit=1m", "41/0/10/3,unit=1ms", "41/0/10/3,unit=100ms",
	} {
		const ticks = 20
		clock := newClock()
		l := within(t, text)
		ctx, cancel := context.WithCancel(context.Background())
		var begun time.Duration
		g, err := firn.New(0, firn.Config{Layout: l, Start: firn.StartZero, Time: &stopping{clock, func() {
			if clock.Monotonic()-begun > (ticks+3)*l.Unit()*17/16 {
				cancel()
			}
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Next(ctx); err != nil {
			t.Fatal(err)
		}
		clock.Step(-1000 * l.Unit())
		begun = clock.Monotonic()
		ids := make([]firn.ID, ticks*(l.MaxSequence()+1))
		if n, err := g.Fill(ctx, ids); err != nil {
			t.Errorf("%s: %d ids of %d in %v, then %v", text, n, len(ids), clock.Monotonic()-begun, err)
		}
	}
}

// A lease may begin ahead of the clock.
func TestASteadyClockThatBeginsAtItsGrantAdvances(t *testing.T) {
	clock := newClock()
	l := within(t, "uid-generator")
	now, err := l.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	g, err := firn.NewLeased(firn.Config{Layout: l, Start: firn.StartZero, Time: clock}, firn.Grant{After: now + 300, Through: now + 900})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]firn.ID, 3*(l.MaxSequence()+1))
	if n, err := g.Fill(context.Background(), ids); err != nil || clock.Slept() > 4*time.Second { // it waits for the first, and runs slower
		t.Errorf("%d ids of three seconds, %v, after %v", n, err, clock.Slept())
	}
}

func TestASteadyClockBeginsAtTheWallUnderAGrantThatHasBegun(t *testing.T) {
	clock := newClock()
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	g, err := firn.NewLeased(firn.Config{Layout: seconds, Time: clock}, firn.Grant{After: now - 300, Through: now + 900})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := g.Next(t.Context()); err != nil || partsOf(seconds, id).Tick != now {
		t.Errorf("an id %d ticks from the present, %v", partsOf(seconds, id).Tick-now, err)
	}
}

// Now, which leases and metrics call, may set the clock back as well.
func TestCallingNowDoesNotStopASteadyClock(t *testing.T) {
	for _, oneByOne := range []bool{true, false} {
		clock := newClock()
		var g *firn.Generator
		g = newGenerator(t, firn.Config{
			Layout: mustLayout("41/0/10/3,unit=20ms"), Ahead: -1, Start: firn.StartZero,
			Time: &inPieces{&stopping{clock, func() { g.Now() }}},
		})
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(-time.Minute)
		begun := clock.Monotonic()
		for range 20 * 8 {
			if _, err := g.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if oneByOne { // so that the core does not know the latest ids
				g.Now()
			}
		}
		if took := clock.Monotonic() - begun; took > 22*20*time.Millisecond*17/16 {
			t.Errorf("the ids of 20 ticks of 20ms took %v", took)
		}
	}
}

// inPieces sleeps 10ms at a time and calls its function in between.
type inPieces struct{ *stopping }

func (p *inPieces) Sleep(ctx context.Context, d time.Duration) error {
	for ; d > 0; d -= 10 * time.Millisecond {
		if err := p.stopping.Sleep(ctx, min(d, 10*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

func TestCallingNowDoesNotKeepASteadyClockAheadOfTheWall(t *testing.T) {
	for _, every := range []time.Duration{50 * time.Millisecond, 250 * time.Millisecond, time.Second} {
		clock := newClock()
		l := within(t, "41/0/10/3,unit=10ms")
		g, err := firn.New(0, firn.Config{Layout: l, Ahead: -1, Time: clock})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(-10 * time.Second)
		begin := clock.Monotonic()
		for looked, lead := begin, 10*time.Second; lead > 50*time.Millisecond; {
			clock.Pass(5 * time.Millisecond)
			if now := clock.Monotonic(); now-looked >= every {
				looked = now
				g.Now()
			}
			id, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			lead = id.Time(l).Sub(clock.Wall())
			if past := clock.Monotonic() - begin; past > 170*time.Second {
				t.Fatalf("looked at every %v: after %v it is still %v in front of the wall", every, past, lead)
			}
		}
	}
}

// The wall clock takes random steps.
func TestASteadyClockRunsSlowerByASixteenthAtMost(t *testing.T) {
	units := []time.Duration{
		time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond,
		300 * time.Millisecond, 900 * time.Millisecond, time.Second, 10 * time.Second,
	}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		unit := units[r.IntN(len(units))]
		l, err := firn.NewLayout(firn.LayoutConfig{
			TimeBits: 45, WorkerBits: 4, SequenceBits: r.IntN(6), Unit: unit, Epoch: noon.Add(-8760 * time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		ahead := []time.Duration{0, -1, unit, 10 * unit, 5 * time.Second}[r.IntN(5)]
		clock := newClock()
		ctx, cancel := context.WithCancel(context.Background())
		slept := 0
		g := newGenerator(t, firn.Config{Layout: l, Ahead: ahead, Random: r.Uint64, Start: firn.SequenceStart(r.IntN(3)), Time: &stopping{clock, func() {
			if slept++; slept > 100_000 {
				cancel()
			}
		}}})
		for range 20 {
			switch r.IntN(4) {
			case 0:
				clock.Step(time.Duration(r.Int64N(int64(100*time.Second))) - 50*time.Second)
			case 1:
				clock.Pass(time.Duration(r.Int64N(int64(4 * time.Second))))
			case 2:
				g.Now()
			}
			ticks := 1 + r.IntN(4)
			begun := clock.Monotonic()
			n, err := g.Fill(ctx, make([]firn.ID, ticks*int(l.MaxSequence()+1)))
			took := clock.Monotonic() - begun
			// One more tick since the first may be partly over, one more for the start of the sequence.
			if err != nil || took > time.Duration(ticks+2)*unit*17/16+10*time.Millisecond {
				t.Fatalf("seed %d, unit %v, ahead %v: %d ids of %d ticks took %v, %v", seed, unit, ahead, n, ticks, took, err)
			}
		}
		cancel()
	}
}

// At 15/16 of the speed the end of a tick may be further away than 64 bits of nanoseconds.
func TestASlowSteadyClockWithTicksOfCenturies(t *testing.T) {
	clock := firntest.NewClock(time.Date(1975, 1, 1, 0, 0, 0, 0, time.UTC))
	l := mustLayout("8/0/6/3,unit=2562047h,epoch=1970-01-01")
	g, err := firn.NewLeased(firn.Config{Layout: l, Time: clock, Random: func() uint64 { return 0 }}, firn.Grant{After: -1, Through: 10})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // each call looks at the wall clock; a wrong estimate would keep the lock for ages
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Step(-time.Minute)
		clock.Pass(1100 * time.Millisecond)
	}
}
