package firn_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// readings counts the clock readings. Each call of pass is one id's time.
type readings struct {
	*firntest.Clock
	n int
}

func (r *readings) Monotonic() time.Duration { r.n++; return r.Clock.Monotonic() }
func (r *readings) Wall() time.Time          { r.n++; return r.Clock.Wall() }

// micros has ticks of a microsecond, so that the times in ids show the lag.
var micros = mustLayout("52/0/2/9,unit=1us")

// onLag returns a leased generator with a lag, and its clock.
func onLag(t *testing.T, cfg firn.Config, lag time.Duration) (*firn.Generator, *readings) {
	t.Helper()
	clock := &readings{Clock: newClock()}
	cfg.Layout, cfg.Time, cfg.Lag = micros, clock, lag
	now, err := micros.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	g, err := firn.NewLeased(cfg, firn.Grant{Worker: 1, After: now - 1, Through: now + 1<<32})
	if err != nil {
		t.Fatal(err)
	}
	return g, clock
}

// behind returns how far the time in an id is behind the clock.
func behind(clock *readings, id firn.ID) time.Duration {
	return clock.Clock.Wall().Sub(id.Time(micros))
}

func TestWithALagMostCallsReadNoClock(t *testing.T) {
	for _, kind := range []firn.ClockKind{firn.ClockSteady, firn.ClockWall} {
		g, clock := onLag(t, firn.Config{Clock: kind}, time.Millisecond)
		var last firn.ID
		worst := time.Duration(0)
		for i := range 100_000 { // in 10 ms
			if i == 10_000 { // the rate is known
				clock.n, worst = 0, 0
			}
			id, err := g.Next(t.Context())
			if err != nil || id <= last {
				t.Fatalf("%d after %d, %v", id, last, err)
			}
			last = id
			worst = max(worst, behind(clock, id))
			clock.Pass(100 * time.Nanosecond)
		}
		if clock.n < 9*16/2 || clock.n > 9*17*2 { // a timer each millisecond, and two clocks at a look
			t.Errorf("clock %v: %d readings for 90,000 ids in 9 lags of 16 marks", kind, clock.n)
		}
		if most := time.Millisecond / 16; worst > most+10*time.Microsecond || worst < most/2 {
			t.Errorf("clock %v: at a steady rate, ids are up to %v behind the clock, not about %v", kind, worst, most)
		}
	}
}

func TestBelowSixteenIDsInALagEachReadsTheClock(t *testing.T) {
	g, clock := onLag(t, firn.Config{}, time.Millisecond)
	for range 1000 {
		id, err := g.Next(t.Context())
		if err != nil || behind(clock, id) >= time.Microsecond || clock.Timers() > 0 {
			t.Fatalf("an id %v behind the clock, %d timers, %v", behind(clock, id), clock.Timers(), err)
		}
		clock.Pass(time.Millisecond / 15)
	}
}

// The word is sealed when its clock reading is as old as the lag.
func TestAfterALagTheClockIsReadAgain(t *testing.T) {
	g, clock := onLag(t, firn.Config{}, time.Millisecond)
	burst := func() {
		t.Helper()
		for range 1000 {
			if _, err := g.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if clock.Timers() != 1 {
			t.Fatalf("%d timers", clock.Timers())
		}
	}
	burst()
	clock.Pass(time.Millisecond - 1)
	id, err := g.Next(t.Context())
	if err != nil || behind(clock, id) < 900*time.Microsecond {
		t.Errorf("before: an id %v behind the clock, %v", behind(clock, id), err)
	}
	clock.Pass(1)
	if clock.Timers() != 0 {
		t.Errorf("%d timers of an idle generator", clock.Timers())
	}
	if id, err = g.Next(t.Context()); err != nil || behind(clock, id) >= time.Microsecond {
		t.Errorf("after: an id %v behind the clock, %v", behind(clock, id), err)
	}
	burst()
	clock.Pass(time.Hour)
	if id, err = g.Next(t.Context()); err != nil || behind(clock, id) >= time.Microsecond {
		t.Errorf("after an hour: an id %v behind the clock, %v", behind(clock, id), err)
	}
}

func TestWithALagNothingIsIssuedAboveTheFence(t *testing.T) {
	for name, clock := range map[string]firn.Config{"steady": {}, "wall": {Clock: firn.ClockWall}, "ahead": {Ahead: time.Second}} {
		clock.Layout, clock.Time, clock.Lag = mustLayout("41/0/10/4"), newClock(), time.Second
		l := clock.Layout
		now, err := l.Tick(noon)
		if err != nil {
			t.Fatal(err)
		}
		g, err := firn.NewLeased(clock, firn.Grant{Worker: 5, After: now - 1, Through: now + 100})
		if err != nil {
			t.Fatal(err)
		}
		local := g.Local()
		count := 0
		for i := 0; ; i++ {
			next := g.Next
			if i%3 == 0 {
				next = local.Next
			}
			id, err := next(t.Context())
			if errors.Is(err, firn.ErrFence) {
				break
			}
			if err != nil || partsOf(l, id).Tick > now+100 {
				t.Fatalf("%s: id of tick %d, the fence is 100: %v", name, partsOf(l, id).Tick-now, err)
			}
			count++
		}
		if count < 100*16*7/8 { // the rest of a block may be left
			t.Errorf("%s: %d ids up to the fence", name, count)
		}
		if err := g.Extend(5, now+101); err != nil {
			t.Fatal(err)
		}
		ids := make([]firn.ID, 17)
		if n, err := g.Fill(context.Background(), ids); n != 16 || !errors.Is(err, firn.ErrFence) {
			t.Errorf("%s: one tick more gave %d ids, %v", name, n, err)
		}
	}
}

// withBlock returns a generator that has issued ids to a Local, which has a block, and the last of them.
func withBlock(t *testing.T) (g *firn.Generator, l *firn.Local, last firn.ID, clock *readings) {
	t.Helper()
	g, clock = onLag(t, firn.Config{}, time.Millisecond)
	l = g.Local()
	for range 1000 {
		id, err := l.Next(t.Context())
		if err != nil || id <= last {
			t.Fatalf("id %d after %d, %v", id, last, err)
		}
		last = id
	}
	if s := g.State(); s.Last < partsOf(micros, last).Tick {
		t.Fatalf("the state %+v does not cover id %d", s, last)
	}
	return g, l, last, clock
}

func TestALocalEndsWithItsGenerator(t *testing.T) {
	g, l, last, _ := withBlock(t)
	if _, through := g.Stop(); through < partsOf(micros, last).Tick {
		t.Errorf("stopped at tick %d, an id has %d", through, partsOf(micros, last).Tick)
	}
	for range 2 {
		if id, err := l.Next(t.Context()); !errors.Is(err, firn.ErrClosed) || id != 0 {
			t.Errorf("after Stop: id %d, %v", id, err)
		}
	}
}

// As a Local in a struct that is copied for each goroutine.
func TestACopyOfALocalTakesABlockOfItsOwn(t *testing.T) {
	for _, cfg := range []firn.Config{{Lag: time.Second}, {Clock: firn.ClockVirtual}, {}} {
		g, err := firn.New(7, cfg)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[firn.ID]bool{}
		next := func(l *firn.Local) {
			t.Helper()
			id, err := l.Next(t.Context())
			if err != nil || seen[id] {
				t.Fatalf("%v, issued before: %v; %v", id, seen[id], err)
			}
			seen[id] = true
		}
		l := g.Local()
		for range 1000 { // so that it has a large block
			next(l)
		}
		another := &firn.Local{}
		reflect.ValueOf(another).Elem().Set(reflect.ValueOf(l).Elem()) // go vet would report *another = *l
		for range 1000 {
			next(another)
			next(l)
		}
		saved := reflect.New(reflect.TypeFor[firn.Local]()).Elem()
		saved.Set(reflect.ValueOf(l).Elem())
		for range 10 {
			next(l)
		}
		reflect.ValueOf(l).Elem().Set(saved)
		for range 10 {
			next(l)
		}
	}
	if _, err := new(firn.Local).Next(t.Context()); err == nil || !strings.Contains(err.Error(), "Generator.Local") {
		t.Errorf("without a generator: %v", err)
	}
}

func TestALocalObeysAHalt(t *testing.T) {
	g, l, last, _ := withBlock(t)
	g.Halt(1)
	if id, err := l.Next(t.Context()); !errors.Is(err, firn.ErrFence) || id != 0 {
		t.Errorf("after Halt: id %d, %v", id, err)
	}
	if err := g.Replace(firn.Grant{Worker: 2, After: -1, Through: micros.MaxTick()}); err != nil {
		t.Fatal(err)
	}
	if id, err := l.Next(t.Context()); err != nil || id <= last || partsOf(micros, id).Worker != 2 {
		t.Errorf("under another worker: id %d after %d, %v", id, last, err)
	}
}

func TestALocalFollowsAChangeOfWorkers(t *testing.T) {
	g, l, last, _ := withBlock(t)
	if err := g.Replace(firn.Grant{Worker: 2, After: -1, Through: micros.MaxTick()}); err != nil {
		t.Fatal(err)
	}
	if id, err := l.Next(t.Context()); err != nil || id <= last || partsOf(micros, id).Worker != 2 {
		t.Errorf("id %d after %d, %v", id, last, err)
	}
}

func TestABlockIsRecalledAfterALag(t *testing.T) {
	_, l, _, clock := withBlock(t)
	clock.Pass(time.Millisecond - 1)
	id, err := l.Next(t.Context())
	if err != nil || behind(clock, id) < 900*time.Microsecond {
		t.Errorf("before: an id %v behind the clock, %v", behind(clock, id), err)
	}
	clock.Pass(1)
	if id, err = l.Next(t.Context()); err != nil || behind(clock, id) >= time.Microsecond {
		t.Errorf("after: an id %v behind the clock, %v", behind(clock, id), err)
	}
}

// A block that the core gave, which did not open the word, is recalled like any other.
func TestABlockFromASealedWordIsRecalledToo(t *testing.T) {
	g, l, _, clock := withBlock(t)
	if id, err := g.Take(t.Context(), 1<<20); err != nil { // up to the limit of Ahead
		t.Fatal(id, err)
	}
	for clock.Timers() > 0 { // also the timer of that
		clock.Pass(time.Millisecond)
	}
	const count = 1000
	for i := range count {
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i > count/2 && clock.Timers() != 1 {
			t.Fatalf("%d timers", clock.Timers())
		}
	}
}

// A Local that is recalled all the time wastes an eighth of its ids at most.
func TestALocalWastesAnEighthAtMost(t *testing.T) {
	for _, each := range []int{1, 7, 15, 16, 100, 1000, 10_000} {
		g, clock := onLag(t, firn.Config{Start: firn.StartZero, Ahead: time.Second}, time.Millisecond)
		l := g.Local()
		for range 20 {
			last, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for range each - 1 {
				if last, err = l.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			run, err := g.Take(t.Context(), 1) // the next position
			if err != nil {
				t.Fatal(err)
			}
			position := func(id firn.ID) int64 {
				p := partsOf(micros, id)
				return int64(p.Tick)<<9 + p.Sequence
			}
			if wasted := position(run.At(0)) - position(last) - 1; wasted*8 > int64(each) || wasted >= 256 {
				t.Errorf("of %d ids it wasted %d", each, wasted)
			}
			clock.Pass(time.Millisecond)
		}
	}
}

func TestALocalOfAnExactGeneratorWastesNothing(t *testing.T) {
	g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/0/22"), Time: newClock(), Start: firn.StartZero})
	l := g.Local()
	var last firn.ID
	for i := range 3000 {
		next := l.Next
		if i%2 == 0 {
			next = g.Next
		}
		id, err := next(t.Context())
		if err != nil || i > 0 && id != last+1 {
			t.Fatalf("id %d after %d, %v", id, last, err)
		}
		last = id
	}
}

func TestALocalCrossesTicks(t *testing.T) {
	for _, order := range []string{"", ",order=sequence-worker"} {
		l := mustLayout("41/0/3/2" + order)
		g := newWorker(t, 5, firn.Config{Layout: l, Clock: firn.ClockVirtual, From: noon, Start: firn.StartZero, Time: newClock()})
		local := g.Local()
		start, err := l.Tick(noon)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(5000) { // nothing recalls a block of a virtual clock, so none is wasted
			id, err := local.Next(t.Context())
			p := partsOf(l, id)
			if err != nil || p.Worker != 5 || int64(p.Tick-start)<<2+p.Sequence != i {
				t.Fatalf("id %d: %+v, %v", i, p, err)
			}
		}
	}
}

func TestALagIsRefusedWhereItMeansNothing(t *testing.T) {
	for _, c := range []struct {
		cfg  firn.Config
		want string
	}{
		{firn.Config{Lag: 99 * time.Microsecond}, "lag 99µs is out of range: 100µs to 1s are allowed (or 0 to read the clock for each id)"},
		{firn.Config{Lag: time.Second + 1}, "lag 1.000000001s is out of range: 100µs to 1s are allowed (or 0 to read the clock for each id)"},
		{firn.Config{Lag: -1}, "lag -1ns is out of range: 100µs to 1s are allowed (or 0 to read the clock for each id)"},
		{firn.Config{Lag: time.Millisecond, Clock: firn.ClockVirtual}, "a virtual clock has no lag: it reads no clock; remove the lag or choose clock steady or wall"},
		{firn.Config{Lag: time.Millisecond, Time: plain{newClock()}}, "a lag needs a Config.Time with the method AfterFunc(time.Duration, func())"},
	} {
		if g, err := firn.New(0, c.cfg); g != nil || err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	for _, lag := range []time.Duration{100 * time.Microsecond, time.Second} {
		newGenerator(t, firn.Config{Lag: lag}).Stop()
	}
}

// plain is a time source without timers.
type plain struct{ firn.TimeSource }

// Callers of every kind share a generator on the system's clocks, while its worker changes and its
// fence moves. No id is issued twice, and each lies in a grant of its worker.
func TestConcurrentCallersWithALagShareNoID(t *testing.T) {
	for _, callers := range []int{1, 2, 8, 64} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))))
		l := mustLayout("41/0/6/10")
		start, err := l.Tick(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		g, err := firn.NewLeased(firn.Config{Layout: l, Lag: 100 * time.Microsecond}, firn.Grant{Worker: 0, After: start - 1, Through: start + 1000})
		if err != nil {
			t.Fatal(err)
		}
		var group, changes sync.WaitGroup
		var stop, stopped atomic.Bool
		changes.Go(func() {
			for worker := int64(0); !stop.Load(); {
				switch s := g.State(); rand.IntN(3) {
				case 0:
					if err := g.Extend(s.Worker, g.Now()+1000); err != nil && !errors.Is(err, firn.ErrFence) {
						t.Error(err)
					}
				case 1:
					worker = (worker + 1) % 64
					if err := g.Replace(firn.Grant{Worker: worker, After: g.Now() - 1, Through: g.Now() + 1000}); err != nil {
						t.Error(err)
					}
				default:
					g.Halt(s.Worker)
					worker = (worker + 1) % 64
					if err := g.Replace(firn.Grant{Worker: worker, After: g.Now() - 1, Through: g.Now() + 1000}); err != nil {
						t.Error(err)
					}
				}
				runtime.Gosched()
			}
			g.Stop()
			stopped.Store(true)
		})
		all := make([][]firn.ID, callers)
		for i := range callers {
			group.Go(func() {
				local := g.Local()
				ids := make([]firn.ID, 16)
				var most firn.ID
				for n := 0; ; n++ {
					over := stopped.Load()
					ids = ids[:1]
					var err error
					switch i % 3 {
					case 0:
						ids[0], err = g.Next(t.Context())
					case 1:
						ids[0], err = local.Next(t.Context())
					default:
						ids = ids[:16]
						n, err = g.Fill(t.Context(), ids)
						ids = ids[:n]
					}
					switch {
					case errors.Is(err, firn.ErrClosed):
						return
					case err == nil && over:
						t.Error("an id after Stop")
						return
					case err != nil && !errors.Is(err, firn.ErrFence):
						t.Error(err)
						return
					case err == nil && ids[0] <= most:
						t.Errorf("id %d after %d", ids[0], most)
						return
					case err == nil:
						most = ids[len(ids)-1]
						all[i] = append(all[i], ids...)
					}
					if len(all[i]) > 100_000/callers {
						stop.Store(true)
					}
				}
			})
		}
		group.Wait()
		changes.Wait()
		ids := slices.Concat(all...)
		slices.Sort(ids)
		if twice := len(ids) - len(slices.Compact(ids)); twice > 0 || len(ids) < 1000 {
			t.Errorf("%d callers: %d of %d ids were issued twice", callers, twice, len(ids))
		}
	}
}
