package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/store/storetest"
)

// A tardy source takes its time with each claim, or fails renewals.
type tardy struct {
	*leaver
	clock  *machine
	takes  []time.Duration // of the claim and each renewal
	fail   error           // of renewals
	wishes []Ask           // of renewals
}

func (s *tardy) next() {
	if len(s.takes) > 0 {
		s.clock.Pass(s.takes[0])
		s.takes = s.takes[1:]
	}
}

func (s *tardy) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	asked := ask()
	s.next()
	return s.leaver.Acquire(ctx, asked.always)
}

func (s *tardy) Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	s.next()
	s.wishes = append(s.wishes, ask)
	if s.fail != nil {
		err := s.fail
		s.fail = nil
		return held, err
	}
	return s.leaver.Renew(ctx, held, ask)
}

func startLate(source *tardy) (*Lease, error) {
	return start(context.Background(), source, Config{Window: 10 * time.Second, Generator: firn.Config{
		Layout: layout("41/0/4/3"), Time: source.clock, Clock: firn.ClockWall}})
}

// Behind a queue of writers a grant may come when most of its window is over.
func TestAFirstGrantThatComesLateIsRenewedAtOnce(t *testing.T) {
	now := must(layout("41/0/4/3").Tick(noon))
	window := firn.Tick(10_001) // from the next tick on, at first
	for _, c := range []struct {
		takes  []time.Duration
		wishes []Ask
	}{
		{[]time.Duration{4 * time.Second}, nil},
		{[]time.Duration{6 * time.Second}, []Ask{{now + 6000, now + 6001, window + 2*6000}}},
		{[]time.Duration{6 * time.Second, 20 * time.Second}, []Ask{{now + 6000, now + 6001, window + 2*6000}, {now + 26_000, now + 26_001, window + 40_000}}},
	} {
		source := &tardy{leaver: &leaver{give: []int64{1}}, clock: newMachine(), takes: c.takes}
		l, err := startLate(source)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(source.wishes, c.wishes) {
			t.Errorf("%v: asked for %+v, want %+v", c.takes, source.wishes, c.wishes)
		}
		if source.asked != nil {
			t.Errorf("%v: given back are %v", c.takes, source.asked)
		}
		if left := l.State().Left; left <= 5*time.Second {
			t.Errorf("%v: %v are left", c.takes, left)
		}
	}
	// A source that is slower each time is not asked for ever.
	source := &tardy{leaver: &leaver{give: []int64{1}}, clock: newMachine()}
	for took := 6 * time.Second; len(source.takes) < 2*maxCatchUps; took *= 4 {
		source.takes = append(source.takes, took)
	}
	if _, err := startLate(source); err != nil || len(source.wishes) != 8 {
		t.Errorf("%d renewals, %v", len(source.wishes), err)
	}
}

// A recording source keeps the asks of its claims.
type recording struct {
	*tardy
	claims []Ask
}

func (r *recording) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	asked := ask()
	r.claims = append(r.claims, asked)
	return r.tardy.Acquire(ctx, asked.always)
}

// The store is as slow for the next worker.
func TestTheWorkerAfterALateOneThatIsLostIsAskedForWithMoreTime(t *testing.T) {
	source := &recording{tardy: &tardy{leaver: &leaver{give: []int64{1, 2}}, clock: newMachine(), takes: []time.Duration{6 * time.Second}, fail: ErrLost}}
	l := must(start(t.Context(), source, Config{Window: 10 * time.Second, Generator: firn.Config{
		Layout: layout("41/0/4/3"), Time: source.clock, Clock: firn.ClockWall}}))
	if len(source.claims) != 2 || source.claims[0].Window != 10_001 || source.claims[1].Window != 10_001+2*6000 || l.State().Worker != 2 {
		t.Errorf("asked for %+v, on worker %d", source.claims, l.State().Worker)
	}
}

// fencing is a tardy source that remembers which ticks were used.
type fencing struct{ *tardy }

func (fencing) Traits() Traits { return Traits{Fences: true} }

// The lead is asked for once: the ids made in the meantime are within it.
func TestAFirstGrantThatComesLateIsNotRenewedForItsLead(t *testing.T) {
	source := fencing{&tardy{leaver: &leaver{give: []int64{1}}, clock: newMachine(), takes: []time.Duration{6 * time.Second}}}
	must(start(t.Context(), source, Config{Window: 10 * time.Second, Generator: firn.Config{
		Layout: layout("41/0/4/3"), Time: source.clock, Clock: firn.ClockWall, Ahead: 4 * time.Second}}))
	if source.wishes != nil {
		t.Errorf("with 8s left of 10s it asked for %+v", source.wishes)
	}
}

// A wait before a claim is no delay of the store: otherwise a process that waits long would get a
// fence equally far ahead.
func TestAWaitBeforeAClaimDoesNotExtendTheFirstGrant(t *testing.T) {
	w := newWorld(t)
	holder := w.start(w.oneWorker)
	w.mustTake(holder, 10)
	h := &hooked{Store: w.mem}
	h.beforeWrite = func() { w.time.Pass(3 * time.Second) }
	only := int64(0)
	began := w.time.Monotonic()
	l := w.start(w.oneWorker, func(c *Config) {
		c.Store, c.Pinned, c.Window = remote{h, w.time.Wall, nil}, &only, 4*time.Second
	})
	if waited := w.time.Monotonic() - began; waited < time.Minute || h.beforeWrite != nil {
		t.Errorf("it waited %v", waited)
	}
	if left := l.State().Left; left < 4*time.Second || left > 11*time.Second {
		t.Errorf("%v are left of a window of 4s", left)
	}
}

// A stepping-back source sees the clock go back during its claim, and grants a second more than was asked for.
type steppingBack struct{ *tardy }

func (s steppingBack) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	asked := ask()
	s.clock.Step(-2 * time.Second)
	asked.Window += 1000
	return s.leaver.Acquire(ctx, asked.always)
}

// What is asked for never goes back with the clock, nor is it less than a window.
func TestAClockThatGoesBackDuringAClaimTakesNothingBack(t *testing.T) {
	source := steppingBack{&tardy{leaver: &leaver{give: []int64{1}}, clock: newMachine()}}
	l := must(start(t.Context(), source, Config{Window: 10 * time.Second, Generator: firn.Config{
		Layout: layout("41/0/4/3"), Time: source.clock, Clock: firn.ClockWall}}))
	now := must(l.Layout().Tick(noon))
	if want := []Ask{{now - 2000, now + 1, 10_001}}; !slices.Equal(source.wishes, want) {
		t.Errorf("%+v, want %+v", source.wishes, want)
	}
}

func TestAFirstGrantThatCannotBeRenewedIsGivenBack(t *testing.T) {
	source := &tardy{leaver: &leaver{give: []int64{1, 2}}, clock: newMachine(), takes: []time.Duration{6 * time.Second}, fail: errAway}
	if _, err := startLate(source); !errors.Is(err, errAway) || !slices.Equal(source.released, []int64{1}) {
		t.Errorf("%v; given back are %v", err, source.released)
	}
	source = &tardy{leaver: &leaver{give: []int64{1, 2}}, clock: newMachine(), takes: []time.Duration{6 * time.Second}, fail: ErrLost}
	if l, err := startLate(source); err != nil || l.State().Worker != 2 || !slices.Equal(source.released, []int64{1}) {
		t.Errorf("lost meanwhile: %v; given back are %v", err, source.released)
	}
}

// A search for another worker lasts as long as the pool may keep a newcomer waiting.
func TestASearchLastsAsLongAsThePoolMakesNewcomersWait(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	quick, _ := w.slots(t, func(c *Config) { c.Generator.Layout = layout("41/0/4/12") })
	if got := quick.Traits().Wait; got != 2*grace {
		t.Errorf("by default: %v", got)
	}
	slow, _ := w.slots(t, func(c *Config) { c.Generator.Layout, c.Look, c.Pool = layout("41/0/4/12"), time.Minute, "slow" })
	if got, want := slow.Traits().Wait, 2*(time.Minute+9*time.Second); got != want {
		t.Errorf("of one that looks seldom: %v, want %v", got, want)
	}
	l := must(start(ctx, slow, Config{Generator: firn.Config{Layout: slow.cfg.Generator.Layout, Time: w.time}}))
	if got, want := l.searchLimit(), callTimeout+slow.Traits().Wait; got != want {
		t.Errorf("it searches for %v, want %v", got, want)
	}
	strict, _ := w.slots(t, func(c *Config) { c.Store, c.Strict = remote{c.Store, w.time.Wall, nil}, time.Hour })
	if got := strict.Traits().Wait; got != time.Hour+defaultTolerance+2*grace {
		t.Errorf("in a strict pool: %v", got)
	}
}

// A steady source records when it was looked at.
type steadySource struct {
	Source
	takes time.Duration
	err   error
	fails func(since time.Duration) error // if set, in place of err
	looks []time.Duration
	began time.Time
}

func (s *steadySource) Look(ctx context.Context, held firn.Grant) error {
	s.looks = append(s.looks, time.Since(s.began))
	time.Sleep(s.takes)
	if s.fails != nil {
		return s.fails(s.looks[len(s.looks)-1])
	}
	return s.err
}

// The next look begins a look after the last one began; soon after one that failed, or
// that took longer.
func TestWhenALeaseLooks(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		err   error
		least time.Duration // from one to the next
		most  time.Duration
	}{
		{0, nil, 3 * time.Second, 3 * time.Second},
		{time.Second, nil, 3 * time.Second, 3 * time.Second},
		{5 * time.Second, nil, 5*time.Second + 1, 5*time.Second + 375*time.Millisecond},
		{0, errAway, 1, 375 * time.Millisecond},
		{100 * time.Millisecond, errAway, 100*time.Millisecond + 1, 475 * time.Millisecond},
		{time.Second, errAway, time.Second + 1, time.Second + 375*time.Millisecond},
		{2 * time.Second, errAway, 2*time.Second + 1, 2*time.Second + 3*time.Millisecond}, // it hung: ids may end with the next
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(noon))
			source := &steadySource{Source: Fixed(1), takes: c.takes, err: c.err, began: time.Now()}
			l := must(Keep(t.Context(), source, Config{}))
			time.Sleep(time.Minute)
			if err := l.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if len(source.looks) < 5 || source.looks[0] != 3*time.Second {
				t.Fatalf("%v", source.looks)
			}
			// Not in a row without a pause, while a store that answers with errors recovers.
			if most := time.Minute / (c.takes + 125*time.Millisecond); c.err != nil && c.takes < maxPatience && len(source.looks) > int(most) {
				t.Errorf("looks that take %v, %v: %d in a minute, want %d at most", c.takes, c.err, len(source.looks), most)
			}
			for i, at := range source.looks[1:] {
				if d := at - source.looks[i]; d < c.least || d > c.most {
					t.Errorf("looks that take %v, %v: %v after the one before", c.takes, c.err, d)
				}
			}
		})
	}
}

// A virtual clock starts at Config.From, or in the tick after the present.
func TestAVirtualClockStartsAtFromOrThePresent(t *testing.T) {
	for from, want := range map[time.Time]time.Time{{}: noon.Add(time.Millisecond), noon.Add(time.Hour): noon.Add(time.Hour)} {
		l := must(start(context.Background(), Fixed(1), Config{Generator: firn.Config{Time: newMachine(), Clock: firn.ClockVirtual, From: from}}))
		if got := must(l.Next(t.Context())).Time(l.gen.Layout()); !got.Equal(want) {
			t.Errorf("from %v: %v", from, got)
		}
	}
	source := &leaver{give: []int64{1}}
	if _, err := start(context.Background(), source, Config{Generator: firn.Config{Time: newMachine(), Clock: firn.ClockVirtual, From: time.Unix(0, 0)}}); !errors.Is(err, firn.ErrRange) || len(source.give) != 1 {
		t.Errorf("before the epoch: %v; left to give are %v", err, source.give)
	}
}

// forgetfulSource grants nothing with an error, as a source may.
type forgetfulSource struct{ *leaver }

func (forgetfulSource) Renew(context.Context, firn.Grant, Ask) (firn.Grant, error) {
	return firn.Grant{}, ErrLost
}

func TestALossIsOfTheWorkerThatWasHeld(t *testing.T) {
	source := forgetfulSource{&leaver{give: []int64{1, 2}}}
	l, clock := switching(t, source)
	clock.Pass(50 * time.Second)
	l.turn(context.Background())
	if s := l.State(); s.Worker != 2 || s.Losses != 1 {
		t.Errorf("%+v", s)
	}
}

// nowhere loses workers, and has no other to give.
type nowhere struct {
	*leaver
	lost bool
}

func (s *nowhere) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	if len(s.give) == 0 {
		return firn.Grant{}, errAway
	}
	return s.leaver.Acquire(ctx, ask)
}

func (s *nowhere) Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	if s.lost {
		return firn.Grant{}, ErrLost
	}
	return s.leaver.Renew(ctx, held, ask)
}

// While no other worker is free, each turn finds the same loss.
func TestALossIsCountedAndLoggedOnce(t *testing.T) {
	source := &nowhere{leaver: &leaver{give: []int64{1}}, lost: true}
	l, clock := switching(t, source)
	var log strings.Builder
	l.cfg.Log = logTo(&log)
	lose := func(want int64) {
		t.Helper()
		for range 3 {
			clock.Pass(40 * time.Second)
			if !l.turn(context.Background()) {
				t.Error("a loss is no failed look: the next one need not be soon")
			}
		}
		for _, text := range []string{`level=WARN msg="worker lost`, `level=WARN msg="could not take another worker`} {
			if s, n := l.State(), strings.Count(log.String(), text); s.Losses != want || s.Overlaps != 0 || int64(n) != want {
				t.Errorf("%d losses are counted as %d, and %s is logged %d times: %s", want, s.Losses, text, n, log.String())
			}
		}
	}
	lose(1)
	source.give = []int64{2}
	l.turn(context.Background())
	if !strings.Contains(log.String(), `msg="worker leased" worker=2 fence=`) {
		t.Errorf("the new worker is not logged: %s", log.String())
	}
	lose(2)
	source.lost = false // its slot is there again
	clock.Pass(40 * time.Second)
	l.turn(context.Background())
	source.lost = true
	lose(3)
}

func TestAGrantThatDoesNotFitTheLayoutIsGivenBack(t *testing.T) {
	source := &leaver{give: []int64{16}}
	_, err := start(context.Background(), source, Config{Generator: firn.Config{Layout: layout("41/0/4/3"), Time: newMachine()}})
	if !errors.Is(err, firn.ErrRange) || !slices.Equal(source.released, []int64{16}) {
		t.Errorf("%v; given back are %v", err, source.released)
	}
}

// An early source grants from the tick after the last used on, though it was asked for later ones.
type early struct{ *only }

func (e early) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	next := e.next
	grant, err := e.only.Acquire(ctx, ask)
	grant.After = next
	return grant, err
}

func TestIdsAheadOfTheClockAreAnnounced(t *testing.T) {
	for ahead, want := range map[time.Duration]bool{999 * time.Millisecond: false, time.Second: true} {
		var log strings.Builder
		must(start(context.Background(), &leaver{give: []int64{1}}, Config{Log: logTo(&log), Generator: firn.Config{
			Layout: layout("41/0/4/3"), Time: newMachine(), Clock: firn.ClockWall, Ahead: ahead, Rollback: firn.Rollback{firn.Refuse()}}}))
		if got := strings.Contains(log.String(), "ids carry times ahead of the clock"); got != want {
			t.Errorf("%v ahead: %s", ahead, log.String())
		}
	}
	// A virtual clock begins where it is to, or after the earlier grants of its worker, if that is later.
	four := layout("41/0/4/3")
	for from, want := range map[time.Duration]string{-time.Hour: "from=2026-11-20T12:00:05.001Z", time.Hour: "from=2026-11-20T13:00:00.000Z"} {
		var log strings.Builder
		source := early{&only{next: must(four.Tick(noon)) + 5000}}
		must(start(t.Context(), source, Config{Log: logTo(&log), Generator: firn.Config{
			Layout: four, Time: newMachine(), Clock: firn.ClockVirtual, From: noon.Add(from)}}))
		if !strings.Contains(log.String(), "ids carry times ahead of the clock") || !strings.Contains(log.String(), want) {
			t.Errorf("from %v: %s", from, log.String())
		}
	}
}

// Close releases each unused grant once.
func TestUnusedGrantsAreReleased(t *testing.T) {
	source := &leaver{give: []int64{1, 2, 3, 1, 4}}
	l, clock := switching(t, source)
	ask := func() Ask { clock.Pass(2 * time.Minute); return l.newAsk(0) }
	for range 3 { // 1 again: its first grant has passed
		must(l.other(context.Background(), ask))
	}
	again := l.spare[1]
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(source.released)
	if !slices.Equal(source.released, []int64{1, 2, 3}) || source.of != again {
		t.Errorf("given back are %v, at last %+v, not %+v", source.released, source.of, again)
	}
	source.released = nil
	if _, err := l.switchWorker(context.Background(), 0); !errors.Is(err, firn.ErrClosed) || len(source.give) != 1 {
		t.Errorf("a switch after the end: %v; still to give is %v", err, source.give)
	}
	if _, err := l.other(context.Background(), ask); !errors.Is(err, firn.ErrClosed) || !slices.Equal(source.released, []int64{4}) || l.spare[4] != (firn.Grant{}) {
		t.Errorf("what comes after the end: %v; given back are %v", err, source.released)
	}
}

// Of many failures in a row one is a warning, until something succeeds.
func TestOnlyTheFirstOfManyFailuresIsAWarning(t *testing.T) {
	var log strings.Builder
	source := &steadySource{Source: Fixed(1), err: errAway}
	l := must(start(context.Background(), source, Config{Log: logTo(&log), Generator: firn.Config{Time: newMachine()}}))
	for i, c := range []struct {
		err      error
		warnings int
	}{{errAway, 1}, {errAway, 1}, {nil, 1}, {errAway, 2}, {nil, 2}, {nil, 2}} {
		source.err = c.err
		if looked := l.turn(context.Background()); looked != (c.err == nil) {
			t.Errorf("turn %d: %t", i, looked)
		}
		if n := strings.Count(log.String(), "could not keep the worker"); n != c.warnings || !errors.Is(l.State().Err, c.err) {
			t.Errorf("turn %d: logged %d times, the last is %v", i, n, l.State().Err)
		}
	}
	if s, n := l.State(), strings.Count(log.String(), "the worker is kept again"); s.Errors != 3 || n != 2 {
		t.Errorf("%+v; that it is kept again is logged %d times", s, n)
	}
	l.gen.Stop()
	var debug strings.Builder
	l.cfg.Log = slog.New(slog.NewTextHandler(&debug, &slog.HandlerOptions{Level: slog.LevelDebug}))
	source.err = nil
	l.turn(context.Background())
	if !strings.Contains(debug.String(), "looked at a worker not in use") {
		t.Errorf("after the generator has stopped: %s", debug.String())
	}
}

// An idle lease asks from the present on.
func TestAnIdleLeaseAsksFromThePresent(t *testing.T) {
	source := &tardy{leaver: &leaver{give: []int64{1}}, clock: newMachine()}
	l := must(startLate(source))
	must(l.Next(t.Context()))
	source.clock.Pass(6 * time.Second)
	l.turn(context.Background())
	now := must(l.gen.Layout().Tick(source.clock.Wall()))
	if want := []Ask{{now, now, l.window}}; !slices.Equal(source.wishes, want) {
		t.Errorf("%+v, want %+v", source.wishes, want)
	}
	// One whose ids are ahead of the clock asks from its next one on.
	source.clock.Pass(6 * time.Second)
	must(l.Next(t.Context()))
	source.clock.Step(-2 * time.Second)
	source.wishes = nil
	l.turn(context.Background())
	now = must(l.gen.Layout().Tick(source.clock.Wall()))
	if want := []Ask{{now, l.State().Used + 1, l.window}}; !slices.Equal(source.wishes, want) || want[0].From <= now {
		t.Errorf("%+v, want %+v", source.wishes, want)
	}
}

// A lost worker is replaced by one whose ticks are above those of the ids so far, wherever the clock is.
func TestAnotherWorkerIsAskedForAboveTheLastID(t *testing.T) {
	source := &nowhere{leaver: &leaver{give: []int64{1, 2}}, lost: true}
	l, clock := switching(t, source)
	clock.Pass(50 * time.Second)
	must(l.Next(t.Context()))
	clock.Step(-10 * time.Second)
	used := l.State().Used
	l.turn(t.Context())
	if l.grant.Worker != 2 || l.grant.After != used {
		t.Errorf("ids go up to %d, and it is granted %+v", used, l.grant)
	}
}

// The claim of another worker counts as a look at it, and the look that found the loss does not.
func TestTheNextLookAfterALossFollowsTheClaim(t *testing.T) {
	source := &tardy{leaver: &leaver{give: []int64{1, 2}}, clock: newMachine()}
	l := must(startLate(source))
	source.clock.Pass(6 * time.Second)
	source.takes, source.fail = []time.Duration{time.Second}, ErrLost
	l.turn(t.Context())
	if left := l.untilLook(); l.State().Worker != 2 || left != l.cfg.Look {
		t.Errorf("worker %d is looked at in %v, want %v", l.State().Worker, left, l.cfg.Look)
	}
	// A claim is as old as its beginning.
	source.give = []int64{3}
	source.clock.Pass(6 * time.Second)
	source.takes, source.fail = []time.Duration{0, time.Second}, ErrLost
	l.turn(t.Context())
	if left, want := l.untilLook(), l.cfg.Look-time.Second; l.State().Worker != 3 || left != want {
		t.Errorf("worker %d, whose claim took a second, is looked at in %v, want %v", l.State().Worker, left, want)
	}
}

// Between two looks at a worker of a short window there is never more time than a look allows, however often they fail.
func TestFailedLooksAreNoRarerThanOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		source := &steadySource{Source: Fixed(1), err: errAway, began: time.Now()}
		l := must(Keep(t.Context(), source, Config{Window: time.Second}))
		time.Sleep(20 * time.Second)
		must(0, l.Close(context.Background()))
		for i, at := range source.looks[1:] {
			if d := at - source.looks[i]; d > l.cfg.Look {
				t.Fatalf("%v after the one before, want %v at most", d, l.cfg.Look)
			}
		}
	})
}

// After a success the backoff starts from the beginning.
func TestASuccessResetsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		source := &steadySource{Source: Fixed(1), began: time.Now()}
		source.fails = func(since time.Duration) error {
			if 10*time.Second <= since && since < 14*time.Second {
				return nil
			}
			return errAway
		}
		l := must(Keep(t.Context(), source, Config{}))
		time.Sleep(20 * time.Second) // before the success it waits for as long as it ever does
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		first := slices.IndexFunc(source.looks, func(at time.Duration) bool { return at >= 14*time.Second })
		if d := source.looks[first+1] - source.looks[first]; d > 10*time.Millisecond {
			t.Errorf("the second try comes %v after the first", d)
		}
	})
}

// overlapping finds its ticks granted to another, and has no other worker.
type overlapping struct{ *leaver }

func (overlapping) Look(context.Context, firn.Grant) error {
	return errors.Join(ErrLost, ErrOverlap)
}

func (o overlapping) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	if len(o.give) == 0 {
		return firn.Grant{}, errAway
	}
	return o.leaver.Acquire(ctx, ask)
}

// No more ids are issued under ticks granted to another, and the last tick used is written at once.
func TestAnOverlapStopsTheGenerator(t *testing.T) {
	for _, fails := range []error{nil, errAway} {
		source := overlapping{&leaver{give: []int64{1}, fail: func(context.Context, int64) error { return fails }}}
		l := must(start(context.Background(), source, Config{Generator: firn.Config{Layout: layout("41/0/4/3"), Time: newMachine()}}))
		must(l.Next(t.Context()))
		l.turn(context.Background())
		if _, err := l.Next(t.Context()); !errors.Is(err, firn.ErrFence) {
			t.Errorf("it goes on: %v", err)
		}
		s := l.State()
		want := int64(1) // no other worker
		if fails != nil {
			want++
		}
		if !slices.Equal(source.asked, []int64{1}) || s.Errors != want || s.Losses != 1 || s.Overlaps != 1 || !errors.Is(s.Err, errAway) {
			t.Errorf("given back are %v, %+v", source.asked, s)
		}
	}
}

// Once its fence has passed, a slot is left as it is: the store may have lost it.
func TestAWorkerWhoseFenceHasPassedIsNotReleased(t *testing.T) {
	source := &fickle{leaver: &leaver{give: []int64{1}}}
	l := must(start(context.Background(), source, Config{Generator: firn.Config{Layout: layout("41/0/4/3"), Time: newMachine()}}))
	must(l.Next(t.Context()))
	l.halt(t.Context(), l.grant, errPast)
	if _, err := l.Next(t.Context()); !errors.Is(err, firn.ErrFence) || source.asked != nil || l.State().Overlaps != 0 {
		t.Errorf("%v; asked to take back %v; %+v", err, source.asked, l.State())
	}
}

// The generator has left the worker meanwhile, and has reported its last tick. A halt does not know that tick.
func TestAWorkerThatIsNotInUseAnyMoreIsNotHalted(t *testing.T) {
	l, _ := switching(t, &leaver{give: []int64{1}})
	lost := l.grant
	must(0, l.gen.Replace(firn.Grant{Worker: 9, After: lost.Through, Through: lost.Through + 10}))
	l.halt(t.Context(), lost, ErrOverlap)
	if source := l.source.(*leaver); source.asked != nil || l.grant != lost {
		t.Errorf("asked to take back %v; it holds %+v", source.asked, l.grant)
	}
}

// A searching source finds no other worker. Its function look answers each look at the lost one.
type searching struct {
	*leaver
	looks []time.Time
	look  func(n int) error
}

func (s *searching) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	if len(s.give) == 0 {
		<-ctx.Done()
		return firn.Grant{}, context.Cause(ctx)
	}
	return s.leaver.Acquire(ctx, ask)
}

func (s *searching) Look(context.Context, firn.Grant) error {
	s.looks = append(s.looks, time.Now())
	return s.look(len(s.looks))
}

// While another worker is searched for, ids are issued of the lost one, whose slot is looked at as often as ever. A look
// that finds its ticks granted to another ends them at once.
func TestAnOverlapFoundDuringTheSearchStopsTheGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		source := &searching{leaver: &leaver{give: []int64{1}}}
		source.look = func(n int) error {
			if n == 3 {
				return errors.Join(ErrLost, ErrOverlap)
			}
			return ErrLost
		}
		l := must(start(t.Context(), source, Config{Generator: firn.Config{Layout: layout("41/0/4/12")}}))
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.turn(context.Background())
		}()
		time.Sleep(2*defaultLook - time.Millisecond)
		if _, err := l.Next(t.Context()); err != nil {
			t.Errorf("before the overlap: %v", err)
		}
		time.Sleep(2 * time.Millisecond)
		if _, err := l.Next(t.Context()); !errors.Is(err, firn.ErrFence) || !slices.Equal(source.asked, []int64{1}) {
			t.Errorf("after the overlap: %v; asked to take back %v", err, source.asked)
		}
		<-ended
		for i, at := range source.looks {
			if want := began.Add(time.Duration(i) * defaultLook); !at.Equal(want) {
				t.Errorf("look %d is %v after the loss was found, want %v", i, at.Sub(began), want.Sub(began))
			}
		}
		if len(source.looks) != 4 {
			t.Errorf("%d looks in a search of %v", len(source.looks), time.Since(began))
		}
	})
}

// A useless source grants workers that hold no tick.
type useless struct{ *fickle }

func (u useless) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	g, err := u.fickle.Acquire(ctx, ask)
	if g.Worker != 1 {
		g.After, g.Through = -2, -2
	}
	return g, err
}

// What a broken source grants for a lost worker cannot be used. The operator learns that.
func TestAnotherWorkerThatCannotBeUsedIsAFailure(t *testing.T) {
	source := useless{&fickle{leaver: &leaver{give: []int64{1, 2}}}}
	var log strings.Builder
	l := must(start(t.Context(), source, Config{Log: logTo(&log), Generator: firn.Config{Layout: layout("41/0/4/3"), Time: newMachine()}}))
	source.look = ErrLost
	l.turn(t.Context())
	if s := l.State(); s.Worker != 1 || s.Errors != 1 || !errors.Is(s.Err, firn.ErrRange) || !strings.Contains(log.String(), `level=WARN msg="could not go on with another worker" worker=2`) {
		t.Errorf("%+v: %s", s, log.String())
	}
}

// Whatever grant an overlap is of, it is counted once.
func TestEachOverlapIsCountedOnce(t *testing.T) {
	source := overlapping{&leaver{give: []int64{0}, fail: func(context.Context, int64) error { return errAway }}}
	l := must(start(context.Background(), source, Config{Generator: firn.Config{Layout: layout("41/0/4/3"), Time: newMachine()}}))
	l.grant = firn.Grant{Worker: 0, After: 0, Through: 8}
	for i, grant := range []firn.Grant{l.grant, l.grant, {Worker: 1, Through: 9}, {Worker: 1, After: 9, Through: 20}, {Worker: 1, After: 9, Through: 20}} {
		l.grant = grant
		l.halt(context.Background(), grant, ErrOverlap)
		if s := l.State(); s.Overlaps != []int64{1, 1, 2, 3, 3}[i] {
			t.Errorf("after %d overlaps: %+v", i+1, s)
		}
	}
}

// A lease that had issued no id need not wait until its fence has passed, either.
func TestAfterAnOverlapTheGeneratorContinuesWithAnotherWorkerAtOnce(t *testing.T) {
	for _, issued := range []bool{true, false} {
		clock := newMachine()
		l := must(start(context.Background(), overlapping{&leaver{give: []int64{1, 2}}}, Config{
			Window: time.Minute, Generator: firn.Config{Layout: layout("41/0/4/3"), Time: clock, Clock: firn.ClockWall},
		}))
		if issued {
			must(l.Next(t.Context()))
		}
		l.turn(context.Background())
		if s := l.State(); s.Losses != 1 || s.Overlaps != 1 || s.Errors != 0 || !errors.Is(s.Err, ErrOverlap) {
			t.Errorf("with another worker: %+v", s)
		}
		begun := clock.Monotonic()
		id := must(l.Next(t.Context()))
		if took := clock.Monotonic() - begun; partsOf(l.gen.Layout(), id).Worker != 2 || took > 2*time.Millisecond {
			t.Errorf("ids issued before: %t; the next is of worker %d, after %v", issued, partsOf(l.gen.Layout(), id).Worker, took)
		}
	}
}

// A grant of ticks that are held already is refused, whichever of the two grants begins first.
func TestAWorkerGrantedTwiceIsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		from  firn.Tick // of the second, after that of the first
		twice bool
	}{"the same": {0, true}, "the end": {60_000, true}, "after it": {60_002, false}, "before it": {-60_002, false}, "the beginning": {-60_000, true}} {
		source := &leaver{give: []int64{1, 1}}
		l, _ := switching(t, source)
		ask := Ask{From: l.grant.After + 1 + c.from, Window: l.window}
		_, err := l.other(context.Background(), ask.always)
		if c.twice && !strings.Contains(fmt.Sprint(err), fmt.Sprintf("worker 1 a second time, from tick %d on", ask.From)) {
			t.Errorf("%s: %v", name, err)
		}
		if (err != nil) != c.twice || len(l.spare) != map[bool]int{true: 0, false: 1}[c.twice] || source.asked != nil {
			t.Errorf("%s: %v, %v are spare, given back are %v", name, err, l.spare, source.asked)
		}
	}
}

// patient is slow to grant a second worker, even if the caller gives up meanwhile.
type patient struct {
	Source
	second bool
}

func (p *patient) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	if !p.second {
		p.second = true
		return p.Source.Acquire(ctx, ask)
	}
	time.Sleep(callTimeout + time.Second)
	asked := ask()
	return firn.Grant{Worker: 2, After: asked.From - 1, Through: asked.From + asked.Window}, nil
}

func (*patient) Look(context.Context, firn.Grant) error { return ErrLost }

func TestAWorkerThatComesAfterTheSearchHasEndedIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		l := must(start(t.Context(), &patient{Source: Fixed(1)}, Config{}))
		l.turn(t.Context())
		if s := l.State(); s.Worker != 2 || s.Errors != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// The fence is renewed at half the window, and not before.
func TestAFenceIsRenewedAtHalfItsWindow(t *testing.T) {
	for after, want := range map[time.Duration]int64{5*time.Second + time.Millisecond: 0, 5*time.Second + 2*time.Millisecond: 1} {
		source := &tardy{leaver: &leaver{give: []int64{1}}, clock: newMachine()}
		l := must(startLate(source))
		source.clock.Pass(after)
		l.turn(context.Background())
		if s := l.State(); s.Renewals != want {
			t.Errorf("after %v: %d renewals", after, s.Renewals)
		}
	}
}

// hung does not answer to a look.
type hung struct{ Source }

func (hung) Look(ctx context.Context, _ firn.Grant) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestALookThatHangsIsAFailureAndAnEndIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		l := must(start(t.Context(), hung{Fixed(1)}, Config{}))
		began := time.Now()
		if l.turn(t.Context()) || time.Since(began) != callTimeout || l.State().Errors != 1 {
			t.Errorf("after %v: %+v", time.Since(began), l.State())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if l.turn(ctx) || l.State().Errors != 1 {
			t.Errorf("%+v", l.State())
		}
	})
}

// A clock that goes back while a worker is claimed would have its first id wait for as long.
func TestAClockThatGoesBackDuringAClaimFailsTheStart(t *testing.T) {
	for step, want := range map[time.Duration]error{time.Hour: ErrClock, 5 * time.Second: nil} {
		w := newWorld(t)
		var back time.Duration
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && strings.Contains(c.Key, "/slot/") && back == 0 {
				back = step
				w.time.Set(w.time.Wall().Add(-back))
			}
			return storetest.Pass
		}
		_, err := w.try(func(c *Config) {
			c.Store = remote{c.Store, func() time.Time { return w.time.Wall().Add(back) }, nil}
		})
		if !errors.Is(err, want) {
			t.Errorf("%v back: %v, want %v", step, err, want)
		}
	}
}

// What another worker is asked for rests on the ids made, and not on a clock that was wrong when
// the loss was looked for.
func TestAnotherWorkerIsAskedForByThePresentClock(t *testing.T) {
	w := newWorld(t)
	l := w.start(w.at(nil, 0, "41/0/4/12"))
	w.mustTake(l, 10)
	first, ask := l.grant, l.ask()
	ask.From += 1 << 36 // two years
	l.takeOther(context.Background(), first, lost("for a test"))
	w.mustTake(l, 10)
	if s := l.State(); s.Worker == first.Worker || s.Left > 2*time.Minute {
		t.Errorf("worker %d, %v are left", s.Worker, s.Left)
	}
}

// A switch and a search find the same worker, which had its fence pass while the first of the two
// was yet to be installed. Another had it in between: those ticks are neither's.
func TestAWorkerIsNotGrantedAgainBeforeItIsInstalled(t *testing.T) {
	source := &leaver{give: []int64{1, 2, 2}}
	l, clock := switching(t, source)
	first := must(l.other(context.Background(), l.newAsk(0).always))
	clock.Pass(2 * time.Minute)
	if _, err := l.other(context.Background(), l.newAsk(0).always); err == nil || l.spare[2] != first {
		t.Errorf("%v; %+v is to be installed, and %+v is", err, first, l.spare[2])
	}
}

// An earlier life of the same number may have used the layout's last tick.
func TestAFixedWorkerRestartedInTheLastTickRepeatsNoID(t *testing.T) {
	short := layout("20/0/6/3,unit=1s")
	clock := firntest.NewClock(short.End().Add(-500 * time.Millisecond))
	for _, kind := range []firn.ClockKind{firn.ClockSteady, firn.ClockWall} {
		seen := map[firn.ID]bool{}
		for range 3 {
			l, err := Keep(t.Context(), Fixed(1), Config{Generator: firn.Config{Layout: short, Clock: kind, Ahead: -1, Start: firn.StartZero, Time: clock}})
			if err != nil {
				if !errors.Is(err, firn.ErrTimeExhausted) {
					t.Error(err)
				}
				continue
			}
			if id, err := l.Next(t.Context()); err == nil && seen[id] || err != nil && !errors.Is(err, firn.ErrTimeExhausted) {
				t.Errorf("%v: %d again, %v", kind, id, err)
			} else if err == nil {
				seen[id] = true
			}
			must(0, l.Close(t.Context()))
		}
	}
}

// A layout whose ticks fill 63 bits has no tick after its last one: sums must not overflow.
func TestAnAskOf63BitsOfTimeBeginsAheadOfTheClock(t *testing.T) {
	whole := layout("63/0/0/0,unit=1ns")
	clock := firntest.NewClock(whole.Epoch().Add(time.Hour))
	l := must(Keep(t.Context(), Fixed(0), Config{Generator: firn.Config{Layout: whole, Time: clock}}))
	if ask := l.newAsk(0); ask.From <= ask.Now {
		t.Errorf("a new holder would begin at %d, its clock shows %d", ask.From, ask.Now)
	}
	clock.Set(whole.End().Add(-time.Microsecond))
	if ask := l.newAsk(0); ask.From != whole.MaxTick() {
		t.Errorf("at the end a new holder would begin at %d, its clock shows %d", ask.From, ask.Now)
	}
	must(0, l.Close(t.Context()))
}

// Whatever the clock, the next life of a fixed worker begins above all that this one can have reached.
func TestAFixedWorkerRestartedAtOnceRepeatsNoIDOnAnyClock(t *testing.T) {
	for _, g := range []firn.Config{
		{}, {Ahead: time.Second}, {Clock: firn.ClockWall}, {Clock: firn.ClockWall, Ahead: time.Second},
		{Clock: firn.ClockVirtual, Ahead: 10 * time.Millisecond}, {Clock: firn.ClockVirtual, Ahead: time.Minute},
		{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.RunAhead(1000)}},
	} {
		g.Time, g.Start, g.Layout = newMachine(), firn.StartZero, layout("41/0/4/4")
		seen := map[firn.ID]bool{}
		for life := range 4 {
			l := must(Keep(t.Context(), Fixed(1), Config{Generator: g}))
			for range 3000 {
				id := must(l.Next(t.Context()))
				if seen[id] {
					t.Fatalf("%v, ahead %v: life %d repeats %d", g.Clock, g.Ahead, life, id)
				}
				seen[id] = true
			}
			must(0, l.Close(t.Context()))
		}
	}
}

// A source of one's own may grant what a new holder asks for, and no more, as Fixed does.
func TestWhatANewHolderAsksForIsAboveAllThatEarlierRunsCanHaveReached(t *testing.T) {
	clock := newMachine()
	seen := map[firn.ID]bool{}
	for life := range 10 {
		l := must(Keep(t.Context(), asked{Fixed(1)}, Config{Generator: firn.Config{Time: clock, Start: firn.StartZero, Layout: layout("41/0/4/4")}}))
		for range 1000 {
			id := must(l.Next(t.Context()))
			if seen[id] {
				t.Fatalf("life %d repeats %d", life, id)
			}
			seen[id] = true
		}
		must(0, l.Close(t.Context()))
	}
}

// An asked source grants what it is asked for.
type asked struct{ Source }

func (asked) Acquire(_ context.Context, ask func() Ask) (firn.Grant, error) {
	from := ask().From
	return firn.Grant{Worker: 1, After: from - 1, Through: from + 1_000_000}, nil
}

func (asked) Renew(_ context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	held.Through = max(held.Through, ask.From+1_000_000)
	return held, nil
}

// A crossing source runs during once a renewal has been confirmed, before the lease has it.
type crossing struct {
	*poolSource
	during func()
}

func (s *crossing) Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	grant, err := s.poolSource.Renew(ctx, held, ask)
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
	return grant, err
}

func TestARenewalOfAWorkerLeftMeanwhileDoesNotReplaceTheNewOne(t *testing.T) {
	w := newWorld(t)
	l := w.start(func(c *Config) {
		small(c)
		c.Generator.Clock, c.Generator.Rollback = firn.ClockWall, firn.Rollback{firn.SwitchWorker()}
	})
	w.mustTake(l, 10)
	left := l.State().Worker
	l.source = &crossing{l.source.(*poolSource), func() {
		w.time.Step(-time.Second)
		w.mustTake(l, 1) // by another worker
	}}
	w.time.Pass(time.Duration(l.window) * l.gen.Layout().Unit() * 3 / 4)
	w.mustTake(l, 10)
	l.turn(t.Context())
	if s := l.State(); s.Worker == left || s.Switches != 1 {
		t.Fatalf("%+v: the worker was to be switched", s)
	}
	for range 40 { // longer than the window of the worker left
		w.time.Pass(5 * time.Second)
		l.turn(t.Context())
		w.mustTake(l, 1)
	}
}

// The last tick that ids may carry is shown while they are issued.
func TestTheStateHasTheLastTickUsed(t *testing.T) {
	w := newWorld(t)
	l := w.start(small)
	id := must(l.Next(t.Context()))
	s := l.State()
	if used, tick := s.Used, partsOf(l.Layout(), id).Tick; used < tick || used > tick+1 {
		t.Errorf("used are ticks up to %d, and an id has %d", used, tick)
	}
	// A switch may come between what is read of the generator and of the lease: the fence is that of the worker shown.
	other := firn.Grant{Worker: 1 - s.Worker, After: s.Used, Through: s.Fence - 5}
	must(0, l.gen.Replace(other))
	if s := l.State(); s.Worker != other.Worker || s.Fence != other.Through {
		t.Errorf("%+v, want %+v", s, other)
	}
}

// A renewing source renews as its function says.
type renewing struct {
	*leaver
	renew func(held firn.Grant) firn.Grant
}

func (s renewing) Renew(_ context.Context, held firn.Grant, _ Ask) (firn.Grant, error) {
	return s.renew(held), nil
}

// A fence may stay where it is, as at the end of a layout. Another worker, or an earlier fence, is a broken source's.
func TestARenewalIsOfTheGrantThatIsHeld(t *testing.T) {
	for what, c := range map[string]struct {
		renew  func(held firn.Grant) firn.Grant
		broken bool
	}{
		"the same fence":   {func(held firn.Grant) firn.Grant { return held }, false},
		"an earlier fence": {func(held firn.Grant) firn.Grant { held.Through--; return held }, true},
		"another worker":   {func(held firn.Grant) firn.Grant { held.Worker++; return held }, true},
	} {
		l, clock := switching(t, renewing{&leaver{give: []int64{1}}, c.renew})
		clock.Pass(40 * time.Second)
		if kept := l.turn(t.Context()); kept == c.broken || c.broken != (l.State().Err != nil) || l.State().Worker != 1 {
			t.Errorf("%s: kept %t, %+v", what, kept, l.State())
		}
	}
}
