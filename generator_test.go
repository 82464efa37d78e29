package firn_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

func newGenerator(t *testing.T, cfg firn.Config) *firn.Generator {
	t.Helper()
	return newWorker(t, 0, cfg)
}

func newWorker(t *testing.T, worker int64, cfg firn.Config) *firn.Generator {
	t.Helper()
	g, err := firn.New(worker, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestIDsIncreaseAndCarryTheirParts(t *testing.T) {
	clock := newClock()
	l := mustLayout("41/5/5/12")
	g := newWorker(t, 17, firn.Config{Layout: l, Datacenter: 3, Time: clock})
	var last firn.ID
	for range 10_000 {
		id, err := g.Next(t.Context())
		if err != nil || id <= last {
			t.Fatalf("id %d after %d, %v", id, last, err)
		}
		if p := partsOf(l, id); p.Worker != 17 || p.Datacenter != 3 {
			t.Fatalf("parts %+v", p)
		}
		last = id
	}
}

func TestIDsRunAheadOfTheClockByAheadAtMost(t *testing.T) {
	for _, ahead := range []time.Duration{-1, 5 * time.Millisecond, 0} {
		clock := newClock()
		l := mustLayout("41/0/10/3")
		g := newGenerator(t, firn.Config{Layout: l, Time: clock, Ahead: ahead})
		most := max(ahead, 0)
		if ahead == 0 {
			most = 10 * time.Millisecond // the default of a steady clock
		}
		for range 1000 {
			id, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if lead := id.Time(l).Sub(clock.Wall()); lead > most {
				t.Fatalf("ahead %v: an id %v ahead of the clock", ahead, lead)
			}
		}
		if clock.Slept() < 1000/8*time.Millisecond-20*time.Millisecond {
			t.Errorf("ahead %v: 1000 ids at 8 a tick took %v", ahead, clock.Slept())
		}
	}
}

func TestARestartRepeatsNoIDIfTheClockHasNotGoneBack(t *testing.T) {
	clock := newClock()
	seen := map[firn.ID]bool{}
	for range 50 {
		g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/10/4"), Time: clock, Start: firn.StartZero})
		for range 300 {
			id, err := g.Next(t.Context())
			if err != nil || seen[id] {
				t.Fatalf("id %d again, %v", id, err)
			}
			seen[id] = true
		}
	}
}

func TestLowTrafficIDsSpreadOverShards(t *testing.T) {
	for start, even := range map[firn.SequenceStart]bool{firn.StartCarry: false, firn.StartZero: true, firn.StartRandom: false} {
		clock := newClock()
		g := newGenerator(t, firn.Config{Time: clock, Start: start})
		var shards [8]int
		for range 4000 {
			clock.Pass(50 * time.Millisecond)
			id, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			shards[id%8]++
		}
		least, most := slices.Min(shards[:]), slices.Max(shards[:])
		if even && shards[0] != 4000 {
			t.Errorf("%v: %v, want all in one shard", start, shards)
		}
		if !even && (least < 350 || most > 650) {
			t.Errorf("%v: %v, want about 500 in each", start, shards)
		}
	}
}

// As in a process that makes one id and ends: its first tick lies ahead of the clock.
func TestTheFirstIDOfProcessesSpreadsOverShards(t *testing.T) {
	for _, start := range []firn.SequenceStart{firn.StartCarry, firn.StartRandom} {
		shards := map[firn.ID]int{}
		for range 200 {
			g, err := firn.New(1, firn.Config{Start: start})
			if err != nil {
				t.Fatal(err)
			}
			id, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			shards[id%8]++
		}
		if len(shards) != 8 { // one is missing in one of 50 billion runs
			t.Errorf("start %v: %v", start, shards)
		}
	}
}

func TestNothingIsIssuedAboveTheFence(t *testing.T) {
	clock := newClock()
	l := mustLayout("41/0/10/4")
	now, err := l.Tick(clock.Wall())
	if err != nil {
		t.Fatal(err)
	}
	fence := now + 100
	g, err := firn.NewLeased(firn.Config{Layout: l, Time: clock}, firn.Grant{Worker: 5, After: now - 1, Through: fence})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for {
		id, err := g.Next(t.Context())
		var reached *firn.FenceError
		if errors.As(err, &reached) {
			if !errors.Is(err, firn.ErrFence) || reached.Tick != fence || reached.Worker != 5 {
				t.Errorf("%+v, want fence %d of worker 5", reached, fence)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if tick := partsOf(l, id).Tick; tick > fence {
			t.Fatalf("an id of tick %d, the fence is %d", tick, fence)
		}
		count++
	}
	if count < 100*16 { // the sequence begins at random, so the first tick is partial
		t.Errorf("%d ids up to the fence", count)
	}
	if err := g.Extend(5, fence+1); err != nil {
		t.Fatal(err)
	}
	ids := make([]firn.ID, 17)
	n, err := g.Fill(context.Background(), ids)
	if n != 16 || !errors.Is(err, firn.ErrFence) {
		t.Errorf("one tick more gave %d ids, %v; want 16 and the fence", n, err)
	}
	if err := g.Extend(6, fence+10); !errors.Is(err, firn.ErrRange) {
		t.Errorf("extending a worker that is not in use: %v", err)
	}
}

func TestALeapBeyondTheFenceHasNoEffectAfterTheClockReturns(t *testing.T) {
	clock := newClock()
	l := firn.DefaultLayout()
	now, err := l.Tick(clock.Wall())
	if err != nil {
		t.Fatal(err)
	}
	g, err := firn.NewLeased(firn.Config{Clock: firn.ClockWall, Time: clock}, firn.Grant{After: now, Through: now + 1000})
	if err != nil {
		t.Fatal(err)
	}
	clock.Step(24 * 365 * time.Hour)
	if _, err := g.Next(t.Context()); !errors.Is(err, firn.ErrFence) {
		t.Errorf("a year ahead: %v", err)
	}
	clock.Step(-24 * 365 * time.Hour)
	if _, err := g.Next(t.Context()); err != nil {
		t.Errorf("back again: %v; nothing was issued ahead, so nothing went back", err)
	}
}

func TestTheEndOfTheLayoutIsAnErrorThatSaysWhen(t *testing.T) {
	clock := newClock()
	l, err := withEpoch(mustLayout("8/0/10/2"), noon.Add(-200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	g := newGenerator(t, firn.Config{Layout: l, Time: clock})
	for range 1000 {
		id, err := g.Next(t.Context())
		var end *firn.TimeExhaustedError
		if errors.As(err, &end) {
			if !end.End.Equal(l.End()) || !errors.Is(err, firn.ErrTimeExhausted) {
				t.Errorf("%v, want the end at %v", err, l.End())
			}
			clock.Pass(time.Second)
			if _, err := firn.New(0, firn.Config{Layout: l, Time: clock}); !errors.Is(err, firn.ErrTimeExhausted) {
				t.Errorf("a new generator: %v", err)
			}
			return
		}
		if err != nil || id > l.MaxID() {
			t.Fatalf("id %d, %v", id, err)
		}
	}
	t.Error("a layout of 256 ticks never ended")
}

func TestAnEpochInTheFutureIsRefused(t *testing.T) {
	l, err := withEpoch(firn.DefaultLayout(), noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []firn.ClockKind{firn.ClockSteady, firn.ClockWall, firn.ClockVirtual} {
		if _, err := firn.New(0, firn.Config{Layout: l, Clock: kind, Time: newClock()}); !errors.Is(err, firn.ErrRange) {
			t.Errorf("clock %v: %v", kind, err)
		}
	}
}

func TestWorkersOutOfRangeAreRefusedWithTheRange(t *testing.T) {
	for _, worker := range []int64{-1, 1024} {
		if _, err := firn.New(worker, firn.Config{}); !errors.Is(err, firn.ErrRange) {
			t.Errorf("worker %d: %v", worker, err)
		}
	}
	for _, cfg := range []firn.Config{{Datacenter: 1}, {Ahead: 9000 * time.Hour}, {Clock: 9}, {Start: 9}, {StartBelow: 9999}} {
		_, err := firn.New(0, cfg)
		if !errors.Is(err, firn.ErrRange) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	_, err := firn.New(1024, firn.Config{})
	const want = "worker 1024 is out of range: 0 to 1023 are allowed (layout 41/0/10/12)"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestAVirtualClockAdvancesWithTheSequence(t *testing.T) {
	clock := newClock()
	l := mustLayout("41/0/10/3")
	g := newGenerator(t, firn.Config{Layout: l, Clock: firn.ClockVirtual, From: noon.Add(-time.Hour), Time: clock, Start: firn.StartZero})
	for i := range 100 {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := noon.Add(-time.Hour + time.Duration(i/8)*time.Millisecond)
		if got := id.Time(l); !got.Equal(want) {
			t.Fatalf("id %d at %v, want %v", i, got, want)
		}
		clock.Step(-time.Minute) // the generator does not read it
	}
	bounded := newGenerator(t, firn.Config{Layout: l, Clock: firn.ClockVirtual, Ahead: time.Second, Time: clock})
	begun := clock.Wall()
	last := firn.ID(0)
	for range 9000 {
		id, err := bounded.Next(t.Context())
		if err != nil || id <= last {
			t.Fatal(id, last, err)
		}
		last = id
	}
	// It begins a second and a tick from now, above the ticks that an earlier process can have used.
	if after := last.Time(l).Sub(begun); after < 2*time.Second || after > 2130*time.Millisecond {
		t.Errorf("9000 ids at 8 a tick with a second allowed ahead ended %v after the start", after)
	}
	if lead := last.Time(l).Sub(clock.Wall()); lead < 990*time.Millisecond || lead > time.Second {
		t.Errorf("with a second allowed ahead they are %v ahead", lead)
	}
}

func TestASteadyClockNeverGoesBackAndFollowsAResumedMachine(t *testing.T) {
	clock := newClock()
	l := firn.DefaultLayout()
	g := newGenerator(t, firn.Config{Time: clock})
	var last firn.ID
	next := func() {
		t.Helper()
		id, err := g.Next(t.Context())
		if err != nil || id <= last {
			t.Fatalf("id %d after %d, %v", id, last, err)
		}
		last = id
	}
	next()
	clock.Step(-time.Hour) // the steady clock only slows down
	for range 100 {
		clock.Pass(100 * time.Millisecond)
		next()
	}
	if lead := last.Time(l).Sub(clock.Wall()); lead > time.Hour-400*time.Millisecond || lead < time.Hour-2*time.Second {
		t.Errorf("after 10s at 15/16 of the speed, and less where no id was asked for, the clock is %v ahead, want about 3598.5s", lead)
	}
	clock.Step(3 * time.Hour) // a machine resumed after hours
	for range 40 {
		clock.Pass(100 * time.Millisecond)
		next()
	}
	if lag := clock.Wall().Sub(last.Time(l)); lag > 100*time.Millisecond || lag < -20*time.Millisecond {
		t.Errorf("4s after the machine was resumed ids are %v behind", lag)
	}
	clock.Step(time.Hour) // a jump that is corrected again
	clock.Pass(time.Second)
	next()
	clock.Step(-time.Hour)
	for range 100 {
		clock.Pass(100 * time.Millisecond)
		next()
	}
	if lead := last.Time(l).Sub(clock.Wall()); lead > time.Second {
		t.Errorf("the steady clock followed a short jump of the wall clock by %v", lead)
	}
}

func TestASteadyClockComesBackFromAWrongYearInWhichNothingWasIssued(t *testing.T) {
	const year = 365 * 24 * time.Hour
	clock := newClock()
	l := firn.DefaultLayout()
	now := func() firn.Tick {
		tick, err := l.Tick(clock.Wall())
		if err != nil {
			t.Fatal(err)
		}
		return tick
	}
	g, err := firn.NewLeased(firn.Config{Time: clock}, firn.Grant{After: now() - 1, Through: now() + 60_000})
	if err != nil {
		t.Fatal(err)
	}
	first, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clock.Step(year)
	for range 10 { // the clock follows the leap, where the fence prevents ids
		clock.Pass(time.Second)
		if _, err = g.Next(t.Context()); err != nil && !errors.Is(err, firn.ErrFence) {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, firn.ErrFence) {
		t.Fatalf("ten seconds after the leap: %v", err)
	}
	clock.Step(-year)
	if got, want := g.Now(), now(); got != want {
		t.Errorf("the clock shows %v, the wall %v", l.Time(got), l.Time(want))
	}
	second, err := g.Next(t.Context())
	if err != nil || second <= first || partsOf(l, second).Tick != now() {
		t.Errorf("after the leap was undone: %v, at %v, after %v: %v", second, second.Time(l), first.Time(l), err)
	}
	clock.Step(-time.Minute) // ids were issued here, so the clock does not go further back
	clock.Pass(10 * time.Second)
	third, err := g.Next(t.Context())
	if err != nil || third <= second || third.Time(l).Sub(second.Time(l)) > time.Second {
		t.Errorf("after a step back by a minute: %v after %v: %v", third.Time(l), second.Time(l), err)
	}
}

func TestTakeAndFillReturnTheSameIDsAsNext(t *testing.T) {
	for _, text := range []string{"41/0/10/4", "39/0/16/8,unit=10ms,epoch=2014-09-01,order=sequence-worker", "63/0/0/0", "41/0/0/22"} {
		l := mustLayout(text)
		one := newGenerator(t, firn.Config{Layout: l, Clock: firn.ClockVirtual, From: noon, Time: newClock(), Start: firn.StartZero})
		many := newGenerator(t, firn.Config{Layout: l, Clock: firn.ClockVirtual, From: noon, Time: newClock(), Start: firn.StartZero})
		for _, n := range []int{1, 2, 15, 16, 17, 100, 1} {
			run, err := many.Take(context.Background(), n)
			if err != nil || run.Len() != n {
				t.Fatalf("take %d: %d, %v", n, run.Len(), err)
			}
			filled := run.AppendTo(nil)
			i := 0
			for id := range run.All() {
				want, err := one.Next(t.Context())
				if err != nil || id != want || run.At(i) != want || filled[i] != want {
					t.Fatalf("layout %s, id %d of %d: %d, %d, %d, want %d, %v", text, i, n, id, run.At(i), filled[i], want, err)
				}
				i++
			}
			i = 0
			for s := range run.Stretches() {
				for j := range s.Count {
					if id := s.First + firn.ID(j)*s.Stride; id != filled[i] || partsOf(l, id).Tick != partsOf(l, s.First).Tick {
						t.Fatalf("layout %s, id %d of %d: %d in stretch %+v, want %d", text, i, n, id, s, filled[i])
					}
					i++
				}
			}
			if i != n {
				t.Fatalf("layout %s: %d ids in the stretches of a run of %d", text, i, n)
			}
			ids := make([]firn.ID, n)
			if _, err := many.Fill(context.Background(), ids); err != nil {
				t.Fatal(err)
			}
			for i, id := range ids {
				if want, err := one.Next(t.Context()); err != nil || id != want {
					t.Fatalf("layout %s, filled id %d of %d: %d, want %d, %v", text, i, n, id, want, err)
				}
			}
		}
	}
	g := newGenerator(t, firn.Config{})
	for _, n := range []int{0, -1} {
		if _, err := g.Take(context.Background(), n); !errors.Is(err, firn.ErrRange) {
			t.Errorf("take %d: %v", n, err)
		}
	}
}

func TestIDsStillIncreaseUnderAnotherWorker(t *testing.T) {
	clock := newClock()
	l := mustLayout("41/0/10/12")
	now, err := l.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	left := map[int64]firn.Tick{}
	g, err := firn.NewLeased(firn.Config{Layout: l, Time: clock, Retired: func(old, next int64, last firn.Tick) {
		if next != old-1 {
			t.Errorf("left worker %d for %d", old, next)
		}
		left[old] = last
	}}, firn.Grant{Worker: 900, After: now, Through: l.MaxTick()})
	if err != nil {
		t.Fatal(err)
	}
	last := firn.ID(0)
	for worker := int64(899); worker > 800; worker-- { // smaller ones, which sort lower within a tick
		for range 3 {
			id, err := g.Next(t.Context())
			if err != nil || id <= last {
				t.Fatalf("id %+v after %+v, %v", partsOf(l, id), partsOf(l, last), err)
			}
			last = id
		}
		if err := g.Replace(firn.Grant{Worker: worker, After: now, Through: l.MaxTick()}); err != nil {
			t.Fatal(err)
		}
		if left[worker+1] < partsOf(l, last).Tick {
			t.Fatalf("Retired was called with worker %d and tick %d; its last id has tick %d", worker+1, left[worker+1], partsOf(l, last).Tick)
		}
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/10/0,unit=1h"), Time: &blockedTime{newClock()}})
	boom := errors.New("boom")
	done := make(chan error)
	go func() {
		_, err := g.Next(ctx)
		done <- err
	}()
	cancel(boom)
	if err := <-done; !errors.Is(err, boom) || !errors.Is(err, context.Canceled) || err.Error() != "firn: wait for an id: context canceled: boom" {
		t.Errorf("%v, want what waited, the context's error and its cause", err)
	}
}

// blockedTime sleeps until the context ends.
type blockedTime struct{ *firntest.Clock }

func (b *blockedTime) Sleep(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestStopIsFinalAndReturnsTheLastTick(t *testing.T) {
	l := mustLayout("41/0/10/12")
	for range 20 {
		g := newWorker(t, 3, firn.Config{Layout: l})
		var highest atomic.Int64
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for {
					id, err := g.Next(t.Context())
					if errors.Is(err, firn.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					for tick := int64(partsOf(l, id).Tick); ; {
						old := highest.Load()
						if tick <= old || highest.CompareAndSwap(old, tick) {
							break
						}
					}
				}
			})
		}
		for highest.Load() == 0 { // until the callers run
			if g.State().Worker != 3 {
				t.Fatal("another worker")
			}
		}
		worker, last := g.Stop()
		group.Wait()
		if worker != 3 || int64(last) < highest.Load() {
			t.Errorf("stopped worker %d at tick %d, but an id of tick %d was issued", worker, last, highest.Load())
		}
		if w, l := g.Stop(); w != worker || l != last {
			t.Error("a second Stop returns something else")
		}
		if err := g.Replace(firn.Grant{}); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("replace after Stop: %v", err)
		}
	}
}

// Callers of every kind run concurrently with renewals, switches of the worker, and a clock
// that steps back and forth.
func TestConcurrentCallersShareNoID(t *testing.T) {
	chains := map[string]firn.Rollback{
		"wait":               {firn.Wait(time.Second, 10)},
		"history":            {firn.History(64, time.Second), firn.RunAhead(1 << 34)},
		"ahead":              {firn.RunAhead(1 << 34)},
		"switch":             {firn.SwitchWorker()},
		"steady":             nil,
		"lag":                nil,
		"history with a lag": {firn.History(64, time.Second), firn.RunAhead(1 << 34)},
	}
	for name, chain := range chains {
		t.Run(name, func(t *testing.T) { shareNoID(t, chain, strings.HasSuffix(name, "lag")) })
	}
}

func shareNoID(t *testing.T, chain firn.Rollback, lag bool) {
	clock := newClock()
	l := mustLayout("41/0/12/3")
	cfg := firn.Config{Layout: l, Time: clock, Rollback: chain}
	if chain != nil {
		cfg.Clock = firn.ClockWall
	}
	if lag {
		cfg.Lag = time.Millisecond
	}
	now, err := l.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	var workers atomic.Int64
	granted := func(from firn.Tick) firn.Grant {
		return firn.Grant{Worker: workers.Add(1), After: from - 1, Through: l.MaxTick()}
	}
	cfg.Switch = func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		if workers.Load() > 4000 {
			return firn.Grant{}, errors.New("no worker left")
		}
		return granted(from), nil
	}
	g, err := firn.NewLeased(cfg, granted(now))
	if err != nil {
		t.Fatal(err)
	}
	var (
		group, others sync.WaitGroup
		stop          atomic.Bool
		all           = make([][]firn.ID, 6)
	)
	others.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		for !stop.Load() {
			clock.Pass(time.Duration(random.IntN(500)) * time.Microsecond)
			if chain != nil && random.IntN(8) == 0 {
				clock.Step(time.Duration(random.IntN(20)-10) * time.Millisecond)
			}
			if s := g.State(); random.IntN(64) == 0 {
				if err := g.Extend(s.Worker, s.Fence); err != nil && !errors.Is(err, firn.ErrRange) {
					t.Error(err)
				}
			}
			if random.IntN(2000) == 0 && workers.Load() < 3000 {
				if err := g.Replace(granted(g.Now())); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for i := range all {
		group.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(i)))
			buffer := make([]firn.ID, 20)
			for range 20_000 {
				var (
					n   = 1
					err error
				)
				if i%2 == 0 {
					buffer[0], err = g.Next(t.Context())
				} else {
					n, err = g.Fill(context.Background(), buffer[:1+random.IntN(len(buffer))])
				}
				if err != nil {
					if !errors.Is(err, firn.ErrClockBack) {
						t.Error(err)
						return
					}
					continue
				}
				all[i] = append(all[i], buffer[:n]...)
			}
		})
	}
	group.Wait()
	stop.Store(true)
	others.Wait()
	ids := slices.Concat(all...)
	slices.Sort(ids)
	if len(ids) < 50_000 {
		t.Errorf("only %d ids", len(ids))
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			t.Fatalf("id %d (%+v) was issued twice", ids[i], partsOf(l, ids[i]))
		}
	}
}

func TestAReceivedIDIsBelowEveryLaterOne(t *testing.T) {
	receiveInOrder(t, 0)
	receiveInOrder(t, 100*time.Microsecond)
}

func receiveInOrder(t *testing.T, lag time.Duration) {
	g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/10/5"), Lag: lag})
	var received atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5000 {
				before := received.Load()
				id, err := g.Next(t.Context())
				if err != nil || int64(id) <= before {
					t.Errorf("id %d, though %d had been received, %v", id, before, err)
					return
				}
				for old := received.Load(); int64(id) > old && !received.CompareAndSwap(old, int64(id)); old = received.Load() {
				}
			}
		})
	}
	group.Wait()
}

func TestNextDoesNotAllocate(t *testing.T) {
	g := newGenerator(t, firn.Config{})
	lagging := newGenerator(t, firn.Config{Lag: time.Second})
	local := lagging.Local()
	ids := make([]firn.ID, 64)
	for name, f := range map[string]func(){
		"Next":            func() { _, _ = g.Next(t.Context()) },
		"Next with a lag": func() { _, _ = lagging.Next(t.Context()) },
		"Local":           func() { _, _ = local.Next(t.Context()) },
		"Fill":            func() { _, _ = g.Fill(context.Background(), ids) },
		"Take":            func() { _, _ = g.Take(context.Background(), 64) },
	} {
		if n := testing.AllocsPerRun(10_000, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// partsOf returns the parts of an id. It panics if the layout cannot have made it.
func partsOf(l firn.Layout, id firn.ID) firn.Parts {
	p, err := l.Decompose(id)
	if err != nil {
		panic(err)
	}
	return p
}
