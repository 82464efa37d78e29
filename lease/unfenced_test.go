package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

// kept starts a lease of a source, whose background work the test drives with turn.
func kept(source Source, generator firn.Config) *Lease {
	l := must(start(context.Background(), source, Config{Generator: generator}))
	l.cancel = func() {}
	close(l.done)
	return l
}

// fresh takes ids, of which none may be there already.
func fresh(t *testing.T, made map[firn.ID]bool, l *Lease, n int) {
	t.Helper()
	for range n {
		id := must(l.Next(t.Context()))
		if made[id] {
			t.Fatalf("%d again", id)
		}
		made[id] = true
	}
}

// A number is handed on under a lock: the next process waits in its function, and has asked before the former one ended.
func TestANumberThatIsWaitedFor(t *testing.T) {
	for name, gen := range map[string]firn.Config{
		"by default":       {},
		"1s ahead":         {Ahead: time.Second},
		"wall, 1s ahead":   {Clock: firn.ClockWall, Ahead: time.Second},
		"the policy":       {Clock: firn.ClockWall, Rollback: firn.Rollback{firn.RunAhead(5000)}},
		"virtual, 10ms":    {Clock: firn.ClockVirtual, Ahead: 10 * time.Millisecond},
		"of an own source": {},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newMachine()
			gen.Time, gen.Layout = clock, layout("41/0/4/3")
			made := map[firn.ID]bool{}
			former := kept(Fixed(3), gen)
			fresh(t, made, former, 8)
			number := func(context.Context) (int64, error) {
				clock.Pass(5 * time.Second)
				for range 5 {
					fresh(t, made, former, 8)
					clock.Pass(20 * time.Millisecond)
				}
				if gen.Rollback != nil {
					clock.Step(-4900 * time.Millisecond) // and it is right again before the lock is free
					fresh(t, made, former, 10)
					clock.Step(4900 * time.Millisecond)
				}
				fresh(t, made, former, 8*9)
				if gen.Ahead >= time.Second {
					fresh(t, made, former, 8*900)
				}
				return 3, former.Close(t.Context()) // no error: another process may start at once
			}
			source := FixedFunc(number)
			if name == "of an own source" {
				source = forgetful{wait: func() { must(number(t.Context())) }}
			}
			fresh(t, made, kept(source, gen), 20_000)
		})
	}
}

// A forgetful source knows nothing of the ticks that were used, as the zero Traits say. It waits with an ask in its hand.
type forgetful struct{ wait func() }

func (forgetful) Traits() Traits { return Traits{} }
func (f forgetful) Acquire(_ context.Context, ask func() Ask) (firn.Grant, error) {
	asked := ask()
	if f.wait != nil {
		f.wait()
	}
	return firn.Grant{Worker: 3, After: asked.From - 1, Through: asked.From + asked.Window}, nil
}

func (forgetful) Renew(_ context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	held.Through = max(held.Through, ask.From+ask.Window)
	return held, nil
}
func (forgetful) Look(context.Context, firn.Grant) error               { return nil }
func (forgetful) Release(context.Context, firn.Grant, firn.Tick) error { return nil }

// The next process begins by the wall clock alone, whatever the grants of the source say: a steady clock stays near that.
func TestAnUnfencedSteadyClockStaysNearASlewedWallClock(t *testing.T) {
	clock := firntest.NewClock(noon)
	clock.Rate(0.9167) // the greatest slew of chrony
	made := map[firn.ID]bool{}
	for range 3 {
		l := kept(forgetful{}, firn.Config{Time: clock, Layout: layout("41/0/4/3")})
		for began := clock.Monotonic(); clock.Monotonic()-began < 950*time.Millisecond; {
			fresh(t, made, l, 1)
		}
		must(0, l.Close(t.Context()))
	}
}

// A number that does not fit is given back, and is no switch.
func TestASwitchRefusesANumberThatDoesNotFit(t *testing.T) {
	clock := newMachine()
	numbers := []int64{3, 99, -1, 4}
	l := kept(FixedFunc(func(context.Context) (int64, error) {
		n := numbers[0]
		numbers = numbers[1:]
		return n, nil
	}), firn.Config{Time: clock, Layout: layout("41/0/4/3"), Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}})
	clock.Pass(10 * time.Second)
	must(l.Next(t.Context()))
	clock.Step(-5 * time.Second)
	for range 2 {
		if _, err := l.Next(t.Context()); !errors.Is(err, firn.ErrRange) {
			t.Error(err)
		}
		if s := l.State(); s.Switches != 0 || s.Err == nil || len(l.spare) != 0 {
			t.Errorf("%+v, spare %v", s, l.spare)
		}
	}
	if _, err := l.Next(t.Context()); err != nil || l.State().Worker != 4 {
		t.Errorf("%v, %+v", err, l.State())
	}
}

// An only source has one worker, and grants it again above all earlier ticks of it.
type only struct {
	next     firn.Tick
	during   func() // runs while an answer is on its way
	looks    error
	released []firn.Grant
}

func (*only) Traits() Traits { return Traits{Fences: true} }
func (o *only) Acquire(_ context.Context, ask func() Ask) (firn.Grant, error) {
	asked := ask()
	after := max(o.next, asked.From-1)
	o.next = after + 1 + asked.Window
	return firn.Grant{Worker: 1, After: after, Through: o.next}, nil
}

func (o *only) Renew(_ context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	held.Through = max(held.Through, ask.From+ask.Window)
	o.next = held.Through
	o.answers()
	return held, nil
}
func (o *only) Look(context.Context, firn.Grant) error { o.answers(); return o.looks }
func (o *only) answers() {
	if do := o.during; do != nil {
		o.during = nil
		do()
	}
}

func (o *only) Release(_ context.Context, held firn.Grant, _ firn.Tick) error {
	o.released = append(o.released, held)
	return nil
}

// A switch is granted the same worker again while a call about the earlier grant is under way: its answer is not about
// the later one.
func TestALateAnswerAboutAnEarlierGrantOfTheSameWorker(t *testing.T) {
	for name, c := range map[string]struct {
		pass  time.Duration // until the turn
		looks error
	}{
		"a renewal":            {200 * time.Second, nil},
		"a look: an overlap":   {10 * time.Second, errors.Join(ErrOverlap, ErrLost)},
		"a look: a fence past": {10 * time.Second, errPast},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newMachine()
			source := &only{next: -1}
			l := kept(source, firn.Config{Layout: layout("41/0/4/3"), Time: clock, Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}})
			clock.Pass(c.pass)
			must(l.Next(t.Context()))
			earlier := l.grant
			source.looks = c.looks
			var switched firn.Grant
			source.during = func() {
				clock.Step(-5 * time.Second)
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_, _ = l.Next(ctx) // switches, and would wait for its grant
				switched = l.grant
			}
			l.turn(t.Context())
			if switched.After <= earlier.After || l.grant != switched {
				t.Fatalf("it holds %+v; it switched from %+v to %+v", l.grant, earlier, switched)
			}
			clock.Pass(l.gen.Layout().Time(l.grant.After + 1).Sub(clock.Wall()))
			if _, err := l.Next(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A call whose own deadline ends while it switches says nothing of the source.
func TestACallersDeadlineIsNoFailureOfTheSource(t *testing.T) {
	clock := newMachine()
	numbers := []int64{3}
	l := kept(FixedFunc(func(ctx context.Context) (int64, error) {
		if len(numbers) == 0 {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		n := numbers[0]
		numbers = nil
		return n, nil
	}), firn.Config{Time: clock, Layout: layout("41/0/4/3"), Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}})
	clock.Pass(10 * time.Second)
	must(l.Next(t.Context()))
	clock.Step(-5 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if s := l.State(); s.Err != nil || s.Errors != 0 {
		t.Errorf("%+v", s)
	}
}

// Newcomers begin above a forgotten holder's ids, and count the policy ahead only as they know it.
func TestSlotsRefuseAGeneratorThatRunsFurtherAhead(t *testing.T) {
	besideABurst := ahead(3000)
	besideABurst.Ahead = time.Second
	for name, c := range map[string]struct {
		slots, kept firn.Config
		most        string // in the error, if there is one
	}{
		"the same":          {ahead(5000), ahead(5000), ""},
		"less":              {ahead(5000), ahead(4000), ""},
		"more":              {ahead(5000), ahead(5001), "5s"},
		"none is known":     {firn.Config{}, ahead(5000), "0s"},
		"as a burst, only":  {firn.Config{Ahead: 5 * time.Second}, ahead(5000), "0s"},
		"beside a burst":    {firn.Config{Ahead: 5 * time.Second}, besideABurst, "1s"},
		"less than a burst": {firn.Config{Ahead: 5 * time.Second}, firn.Config{Ahead: time.Second}, ""},
	} {
		w := newWorld(t)
		c.slots.Time, c.kept.Time = w.time, w.time
		source := must(newPoolSource(Config{Store: w.store, Generator: c.slots}))
		_, err := start(t.Context(), source, Config{Generator: c.kept})
		if c.most == "" && err != nil || c.most != "" && (!errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "run ahead of the clock by "+c.most+" at most")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ahead(ticks int64) firn.Config {
	return firn.Config{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.RunAhead(ticks)}}
}

// A store is wiped after a holder has left. A newcomer whose virtual clock begins in the past does not get the ticks again.
func TestAVirtualClockFromThePastBeginsAboveWhatTheStoreForgot(t *testing.T) {
	for name, clocked := range map[string]bool{"a store with a clock": true, "one without": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			one := int64(1)
			setup := func(c *Config) {
				c.Generator.Layout, c.Pinned = layout("41/0/4/3"), &one
				if clocked {
					w.shared(c)
				} else {
					w.timeless(c)
				}
			}
			begin := w.time.Wall()
			holder := w.start(setup)
			for range 100 {
				w.mustTake(holder, 8)
				w.time.Pass(time.Millisecond)
			}
			must(0, holder.Close(t.Context()))
			w.time.Pass(time.Hour)
			w.mem.Restore(nil)
			newcomer := w.start(setup, func(c *Config) { c.Generator.Clock, c.Generator.From = firn.ClockVirtual, begin })
			w.mustTake(newcomer, 100_000) // more than there were
		})
	}
}

// The store has forgotten the slot of a program's worker, and the server may not write it. The program counts failed
// requests, so it must learn of the loss before newcomers have waited, even if the next request cannot read.
func TestALoanWhoseSlotCannotBeWrittenAgainIsLost(t *testing.T) {
	w := newWorld(t)
	loan, granted, err := Lend(t.Context(), w.config(w.shared), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w.mem.Restore(nil)
	down := false
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if down || c.Op == storetest.OpCompareAndSwap {
			return storetest.Refuse
		}
		return storetest.Pass
	}
	for range 2 {
		w.time.Pass(time.Second)
		if _, err := loan.Look(t.Context(), granted.Through); !errors.Is(err, ErrLost) || !errors.Is(err, store.ErrRefused) {
			t.Error(err)
		}
		down = true
	}
}

// earlier is a source whose renewed grants begin earlier: they contain the ones that they renew.
type earlier struct{ *only }

func (e earlier) Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	g, err := e.only.Renew(ctx, held, ask)
	g.After--
	return g, err
}

func TestARenewedGrantMayBeginEarlier(t *testing.T) {
	clock := newMachine()
	l := kept(earlier{&only{next: -1}}, firn.Config{Layout: layout("41/0/4/3"), Time: clock})
	for range 3 {
		clock.Pass(defaultWindow * 2 / 3)
		l.turn(t.Context())
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A holder without fences that runs far ahead begins within the grant that it renewed for that.
func TestALateGrantCoversTheLead(t *testing.T) {
	clock := newMachine()
	cfg := Config{Window: time.Second, Generator: firn.Config{Time: clock, Layout: layout("41/0/4/3"), Clock: firn.ClockWall, Rollback: firn.Rollback{firn.RunAhead(60_000)}}}
	l := must(start(t.Context(), forgetful{wait: func() { clock.Pass(3 * time.Second) }}, cfg))
	if s := l.gen.State(); s.Fence <= s.Last {
		t.Errorf("%+v", s)
	}
}

// Such a source does not know what was used: ids of an earlier life may be as far ahead as the policy allows.
func TestANewHolderAsksForTicksAboveThePolicysLead(t *testing.T) {
	clock := newMachine()
	generator := ahead(5000)
	generator.Time = clock
	for _, source := range []Source{Fixed(1), &only{}} {
		l := kept(source, generator)
		ask, want := l.newAsk(0), firn.Tick(1)
		if !source.Traits().Fences {
			want += 5000
		}
		if got := ask.From - ask.Now; got != want {
			t.Errorf("%T: it asks for %d ticks ahead, want %d", source, got, want)
		}
		// A pause between two readings of the clock would change that: it reads the clock once.
		l.cfg.Generator.Time = pausing{clock}
		if ask := l.newAsk(0); ask.From-ask.Now != want {
			t.Errorf("%T: paused after it read the clock it asks for %d ticks ahead, want %d", source, ask.From-ask.Now, want)
		}
	}
}

// A granted source grants from a tick on, whatever it is asked for, and takes a while.
type granted struct {
	forgetful
	traits Traits
	after  firn.Tick
	during func()
}

func (g granted) Traits() Traits { return g.traits }
func (g granted) Acquire(_ context.Context, ask func() Ask) (firn.Grant, error) {
	g.during()
	return firn.Grant{Worker: 3, After: g.after, Through: g.after + 600_000}, nil
}

// A grant of a source that knows what was used is used from its first tick on. Any other is used above all that an earlier
// process may have reached by then, if that is later.
func TestWhereInItsGrantANewHolderBegins(t *testing.T) {
	for name, c := range map[string]struct {
		fences bool
		after  firn.Tick // from the start on
		want   firn.Tick
	}{
		"with fences":                      {true, 1000, 1000},
		"without":                          {false, 1000, 8000},
		"without, at the present":          {false, 8000, 8000},
		"without, and it begins later":     {false, 9000, 9000},
		"with fences, and it begins later": {true, 9000, 9000},
	} {
		clock := newMachine()
		begun := must(layout("41/0/4/3").Tick(clock.Wall()))
		source := granted{traits: Traits{Fences: c.fences}, after: begun + c.after, during: func() { clock.Pass(3 * time.Second) }}
		l := kept(source, firn.Config{Time: clock, Layout: layout("41/0/4/3"), Clock: firn.ClockVirtual, Ahead: 5 * time.Second, Start: firn.StartZero})
		if got := partsOf(l.Layout(), must(l.Next(t.Context()))).Tick; got != begun+c.want+1 {
			t.Errorf("%s: the first id is of tick %d, want %d", name, got-begun, c.want+1)
		}
	}
}
