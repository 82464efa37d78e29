package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/storetest"
)

// leaver is a source that records releases; a test can make them fail.
type leaver struct {
	give     []int64 // the workers it hands out, in that order
	asked    []int64 // to take back
	released []int64
	of       firn.Grant // the latest that was released
	fail     func(ctx context.Context, worker int64) error
}

func (*leaver) Traits() Traits { return Traits{} }

func (s *leaver) Acquire(_ context.Context, ask func() Ask) (firn.Grant, error) {
	worker := s.give[0]
	s.give = s.give[1:]
	asked := ask()
	return firn.Grant{Worker: worker, After: asked.From - 1, Through: asked.From + asked.Window}, nil
}

func (s *leaver) Renew(_ context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	held.Through = ask.From + ask.Window
	return held, nil
}

func (s *leaver) Look(context.Context, firn.Grant) error { return nil }

func (s *leaver) Release(ctx context.Context, held firn.Grant, _ firn.Tick) error {
	s.asked = append(s.asked, held.Worker)
	if s.fail != nil {
		if err := s.fail(ctx, held.Worker); err != nil {
			return err
		}
	}
	s.released, s.of = append(s.released, held.Worker), held
	return nil
}

// switching starts a lease that takes another worker when the clock goes back.
func switching(t *testing.T, source Source) (*Lease, *machine) {
	t.Helper()
	clock := newMachine()
	l, err := start(context.Background(), source, Config{Window: time.Minute, Generator: firn.Config{
		Layout: layout("41/0/4/3"), Time: clock, Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}}})
	if err != nil {
		t.Fatal(err)
	}
	l.cancel = func() {}
	close(l.done)
	if _, err := l.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l, clock
}

// goBack makes the lease switch.
func goBack(t *testing.T, l *Lease, clock *machine) {
	t.Helper()
	clock.Step(-10 * time.Second)
	if _, err := l.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
}

var errAway = errors.New("the source is away")

func TestAWorkerLeftIsGivenBackUntilThatSucceeds(t *testing.T) {
	source := &leaver{give: []int64{1, 2}}
	l, clock := switching(t, source)
	goBack(t, l, clock)
	var log strings.Builder
	l.cfg.Log = logTo(&log)
	source.fail = func(context.Context, int64) error { return errAway }
	for range 3 {
		l.turn(context.Background())
	}
	if n := strings.Count(log.String(), `level=WARN msg="could not release a worker left" worker=1`); n != 3 || strings.Contains(log.String(), "worker released") {
		t.Errorf("three failures are logged %d times: %s", n, log.String())
	}
	if s := l.State(); s.Errors != 3 || s.Err != nil { // nothing is wrong with the worker in use
		t.Errorf("%+v", s)
	}
	source.fail = nil
	l.turn(context.Background())
	l.turn(context.Background())
	if !slices.Equal(source.asked, []int64{1, 1, 1, 1}) || !slices.Equal(source.released, []int64{1}) {
		t.Errorf("asked to take back %v, and took %v", source.asked, source.released)
	}
	if n := strings.Count(log.String(), `msg="worker released" worker=1`); n != 1 {
		t.Errorf("the release is logged %d times: %s", n, log.String())
	}
	if err := l.Close(context.Background()); err != nil || !slices.Equal(source.released, []int64{1, 2}) {
		t.Errorf("%v, took back %v", err, source.released)
	}
}

func TestCloseGivesBackAWorkerLeftWhoseReleaseFailedOrSaysSo(t *testing.T) {
	for _, how := range []string{"fails once", "is cut off by Close", "fails for good", "comes to one that is lost"} {
		source := &leaver{give: []int64{1, 2}}
		l, clock := switching(t, source)
		goBack(t, l, clock)
		ctx, cancel := context.WithCancel(context.Background())
		source.fail = func(ctx context.Context, worker int64) error {
			switch {
			case worker != 1:
				return nil
			case how == "is cut off by Close":
				cancel()
				return ctx.Err()
			case how == "comes to one that is lost":
				return fmt.Errorf("%w: worker 1", ErrLost)
			}
			return errAway
		}
		l.turn(ctx) // the background, as Close ends it
		cancel()
		want := []int64{1, 2}
		switch how {
		case "fails for good", "comes to one that is lost":
			want = []int64{2}
		default:
			source.fail = nil
		}
		var log strings.Builder
		l.cfg.Log = logTo(&log)
		if errs := l.State().Errors; (errs == 0) != (how == "is cut off by Close" || how == "comes to one that is lost") {
			t.Errorf("the release %s: %d errors", how, errs)
		}
		err := l.Close(context.Background())
		if !slices.Equal(source.released, want) || (err != nil) != (how == "fails for good") {
			t.Errorf("the release %s: given back are %v, and Close says %v", how, source.released, err)
		}
		if strings.Contains(log.String(), "could not give a worker back") != (err != nil) {
			t.Errorf("the release %s: the log has %q", how, log.String())
		}
		source.fail, source.released = nil, nil
		again := l.Close(context.Background())
		if again != nil || (err != nil) != slices.Equal(source.released, []int64{1}) || err == nil && source.released != nil {
			t.Errorf("Close says %v, then %v, and gives back %v again", err, again, source.released)
		}
	}
}

// A source that identifies grants by the worker number would end the later grant.
func TestAWorkerLeftAndGrantedAgainIsNotGivenBack(t *testing.T) {
	source := &leaver{give: []int64{1, 2, 1}}
	l, clock := switching(t, source)
	goBack(t, l, clock)
	source.fail = func(context.Context, int64) error { return errAway } // though it took it
	l.turn(context.Background())
	source.fail = nil
	l.left = append(l.left, pendingRelease{grant: firn.Grant{Worker: 3}}) // this one is released all the same
	goBack(t, l, clock)
	l.turn(context.Background())
	if worker := l.State().Worker; worker != 1 || !slices.Equal(source.released, []int64{3, 2}) {
		t.Errorf("on worker %d, given back are %v", worker, source.released)
	}
}

// The same with Close: it releases the later grant, once.
func TestCloseReleasesAWorkerLeftAndGrantedAgainOnce(t *testing.T) {
	source := &leaver{give: []int64{1, 2, 1}}
	l, clock := switching(t, source)
	goBack(t, l, clock)
	goBack(t, l, clock)
	held := l.grant
	if err := l.Close(t.Context()); err != nil || !slices.Equal(source.asked, []int64{2, 1}) || source.of != held {
		t.Errorf("%v; asked to take back are %v, the last was %+v, and held was %+v", err, source.asked, source.of, held)
	}
}

func TestAWorkerLeftIsGivenUpWhenItsFenceHasFreedIt(t *testing.T) {
	source := &leaver{give: []int64{1, 2, 3}, fail: func(context.Context, int64) error { return errAway }}
	l, clock := switching(t, source)
	goBack(t, l, clock)
	l.turn(context.Background())
	clock.Pass(3 * time.Minute)
	l.turn(context.Background())
	l.turn(context.Background())
	if !slices.Equal(source.asked, []int64{1, 1}) {
		t.Errorf("asked to take back %v", source.asked)
	}
	// Close has ended the turn: it tries itself.
	must(l.Next(t.Context()))
	goBack(t, l, clock)
	clock.Pass(3 * time.Minute)
	source.asked = nil
	ended, cancel := context.WithCancel(context.Background())
	source.fail = func(ctx context.Context, _ int64) error { cancel(); return ctx.Err() }
	l.turn(ended)
	if !slices.Equal(source.asked, []int64{2}) || len(l.left) != 1 {
		t.Errorf("asked to take back %v; left for Close are %+v", source.asked, l.left)
	}
}

// The turn ends while the release is confirmed.
func TestAReleaseThatSucceedsAtTheLastMomentIsLogged(t *testing.T) {
	source := &leaver{give: []int64{1, 2}}
	l, clock := switching(t, source)
	goBack(t, l, clock)
	var log strings.Builder
	l.cfg.Log = logTo(&log)
	ctx, cancel := context.WithCancel(t.Context())
	source.fail = func(context.Context, int64) error { cancel(); return nil }
	l.turn(ctx)
	if n := strings.Count(log.String(), `msg="worker released" worker=1`); n != 1 || !slices.Equal(source.released, []int64{1}) {
		t.Errorf("logged %d times, released are %v: %s", n, source.released, log.String())
	}
}

// TestAReleaseThatHangsKeepsNeitherTheWorkerInUseNorOtherReleasesWaiting: the fence
// is moved before it, and at the next turn the others come first.
func TestAReleaseThatHangsKeepsNeitherTheWorkerInUseNorOtherReleasesWaiting(t *testing.T) {
	source := &leaver{give: []int64{1, 2, 3, 4}}
	l, clock := switching(t, source)
	for range 3 {
		goBack(t, l, clock)
	}
	clock.Pass(50 * time.Second) // it is to be renewed
	renewals := l.State().Renewals
	ctx, cancel := context.WithCancel(context.Background())
	source.fail = func(ctx context.Context, worker int64) error {
		if worker != 1 {
			return nil
		}
		cancel() // in the place of the time limit; at the next turn it is done
		return ctx.Err()
	}
	l.turn(ctx)
	if s := l.State(); s.Renewals != renewals+1 {
		t.Errorf("not renewed: %+v", s)
	}
	if !slices.Equal(source.asked, []int64{1}) {
		t.Errorf("without time for more, asked for are %v", source.asked)
	}
	l.turn(context.Background())
	if !slices.Equal(source.released, []int64{2, 3, 1}) || len(source.asked) != 4 {
		t.Errorf("given back are %v, asked for %v", source.released, source.asked)
	}
}

// The next try finds the slot free.
func TestAReleaseWhoseAnswerWasLostIsDoneOnce(t *testing.T) {
	for _, outcome := range []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied} {
		w := newWorld(t)
		l := w.start(func(c *Config) {
			c.Generator.Clock = firn.ClockWall
			c.Generator.Rollback = firn.Rollback{firn.SwitchWorker()}
		})
		first := l.State().Worker
		w.mustTake(l, 100)
		w.time.Step(-5 * time.Second)
		w.mustTake(l, 100)
		ctx, cancel := context.WithCancel(context.Background())
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap {
				cancel() // so that it is not read back
				return outcome
			}
			return storetest.Pass
		}
		l.turn(ctx)
		w.store.Script = nil
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("%v: %v", outcome, err)
		}
		for _, slot := range must(Inspect(context.Background(), w.mem, "default")).Slots {
			if !slot.Free {
				t.Errorf("%v: worker %d was left behind (the first was %d)", outcome, slot.Worker, first)
			}
		}
	}
}

// TestAGrantOfASwitchThatCloseOvertakesIsGivenBack: the switch has its grant, and has
// not handed it to the generator yet.
func TestAGrantOfASwitchThatCloseOvertakesIsGivenBack(t *testing.T) {
	source := &leaver{give: []int64{1, 2}}
	l, _ := switching(t, source)
	grant, err := l.other(context.Background(), l.ask)
	if err != nil || grant.Worker != 2 {
		t.Fatal(grant, err)
	}
	source.fail = func(_ context.Context, worker int64) error {
		if worker == 1 {
			return errAway
		}
		return nil
	}
	if err := l.Close(context.Background()); !errors.Is(err, errAway) || !slices.Equal(source.released, []int64{2}) {
		t.Errorf("%v; given back are %v", err, source.released)
	}
	source.fail = nil // another Close releases what is left, and no more: another lease may have the rest by now
	if err := l.Close(context.Background()); err != nil {
		t.Errorf("once more: %v", err)
	}
	slices.Sort(source.released)
	if !slices.Equal(source.released, []int64{1, 2}) {
		t.Errorf("given back are %v", source.released)
	}
}

// offset is the clock of a test in virtual time, from which the wall is as far as it says.
type offset struct{ wall atomic.Int64 }

func (o *offset) Wall() time.Time          { return time.Now().Add(time.Duration(o.wall.Load())) }
func (o *offset) Monotonic() time.Duration { return time.Since(time.Unix(0, 0)) }
func (o *offset) Sleep(ctx context.Context, d time.Duration) error {
	return firn.SystemTime().Sleep(ctx, d)
}

func TestAReleaseThatHangsDoesNotCostTheWorkerInUseItsFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends atomic.Bool
		source := &leaver{give: []int64{1, 2}}
		source.fail = func(ctx context.Context, worker int64) error {
			if worker == 1 && !ends.Load() {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}
		clock := &offset{}
		l, err := Keep(t.Context(), source, Config{Window: 10 * time.Second, Generator: firn.Config{
			Layout: layout("41/0/4/3,epoch=1999-01-01T00:00:00Z"), Time: clock, Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			ends.Store(true)
			if err := l.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if len(source.asked) < 2 {
				t.Errorf("the worker left was asked to be taken back %d times", len(source.asked))
			}
		}()
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.wall.Store(int64(-3 * time.Second))
		for i := range 600 {
			if _, err := l.Next(t.Context()); err != nil {
				t.Fatalf("after %v: %v", time.Duration(i)*100*time.Millisecond, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// Newcomers wait for a look and its calls, and for no release.
func TestAReleaseThatHangsDoesNotDelayTheNextLook(t *testing.T) {
	for look, want := range map[time.Duration]time.Duration{100 * time.Millisecond: 100 * time.Millisecond, 3 * time.Second: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(noon))
			source := &leaver{give: []int64{1}, fail: func(ctx context.Context, _ int64) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}}
			l := must(start(t.Context(), source, Config{Look: look}))
			l.left = []pendingRelease{{grant: firn.Grant{Worker: 2, Through: l.grant.Through}}}
			began := time.Now()
			if !l.turn(t.Context()) || time.Since(began) != want || len(l.left) != 1 {
				t.Errorf("a look every %v: the turn took %v, not %v", look, time.Since(began), want)
			}
		})
	}
}

// A fickle source fails renewals and looks as a test says.
type fickle struct {
	*leaver
	renew, look error
}

func (f *fickle) Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error) {
	if f.renew != nil {
		return held, f.renew
	}
	return f.leaver.Renew(ctx, held, ask)
}

func (f *fickle) Look(context.Context, firn.Grant) error { return f.look }

// A release would only delay the next try.
func TestAfterAFailedLookNoWorkerIsReleased(t *testing.T) {
	source := &fickle{leaver: &leaver{give: []int64{1}}}
	l := must(start(t.Context(), source, Config{Generator: firn.Config{Time: newMachine()}}))
	l.left = []pendingRelease{{grant: firn.Grant{Worker: 2, Through: l.grant.Through}}}
	for _, source.look = range []error{errAway, nil} {
		if looked := l.turn(t.Context()); looked != (source.look == nil) || looked != slices.Equal(source.released, []int64{2}) {
			t.Errorf("%v: %v are released", source.look, source.released)
		}
	}
}

// A failed renewal moved no fence.
func TestAFailedRenewalIsNotCounted(t *testing.T) {
	source, clock := &fickle{leaver: &leaver{give: []int64{1}}}, newMachine()
	l := must(start(t.Context(), source, Config{Window: time.Minute, Generator: firn.Config{Time: clock}}))
	clock.Pass(50 * time.Second)
	before := l.State()
	for _, source.renew = range []error{errAway, nil} {
		looked, s := l.turn(t.Context()), l.State()
		if looked != (source.renew == nil) || looked != (s.Renewals == 1) || looked != (s.Fence > before.Fence) {
			t.Errorf("%v: %d renewals, the fence moved from %d to %d", source.renew, s.Renewals, before.Fence, s.Fence)
		}
	}
}

// A brief source first grants a tick or two.
type brief struct{ *fickle }

func (b brief) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	asked := ask()
	if len(b.asked) == 0 {
		asked.Window = 1
	}
	return b.fickle.Acquire(ctx, asked.always)
}

// A first grant that is over soon and cannot be renewed is given back. If it was lost, another is taken,
// whatever becomes of the first. If not, both errors are reported.
func TestAFirstGrantThatCannotBeRenewed(t *testing.T) {
	errFull := errors.New("the source is full")
	for _, c := range []struct{ renew, want error }{{ErrLost, nil}, {errFull, errFull}} {
		source := brief{&fickle{leaver: &leaver{give: []int64{1, 2}, fail: func(context.Context, int64) error { return errAway }}, renew: c.renew}}
		l, err := start(context.Background(), source, Config{Generator: firn.Config{Time: newMachine()}})
		if !errors.Is(err, c.want) || c.want != nil && !errors.Is(err, errAway) || !slices.Equal(source.asked, []int64{1}) {
			t.Errorf("%v: %v; asked to take back are %v", c.renew, err, source.asked)
		}
		if err == nil && l.State().Worker != 2 {
			t.Errorf("%v: on worker %d", c.renew, l.State().Worker)
		}
	}
}

// After a loss a virtual clock goes on where it was: the time that has passed is not added.
func TestAVirtualClockGoesOnWhereItWasAfterALoss(t *testing.T) {
	source, clock := &fickle{leaver: &leaver{give: []int64{1, 2}}}, newMachine()
	l := must(start(t.Context(), source, Config{Generator: firn.Config{Time: clock, Clock: firn.ClockVirtual, Ahead: 5 * time.Second}}))
	must(l.Next(t.Context()))
	before := l.gen.State().Last
	clock.Pass(time.Second) // less than it is ahead
	source.look = ErrLost
	l.turn(t.Context())
	after := partsOf(l.gen.Layout(), must(l.Next(t.Context())))
	if after.Worker != 2 || after.Tick < before || after.Tick > before+1 {
		t.Errorf("worker %d goes on at tick %d after %d", after.Worker, after.Tick, before)
	}
}

// A program may give its generator a worker of its own. It is not taken for one of the lease.
func TestAWorkerFromElsewhereIsNotOneOfTheLease(t *testing.T) {
	l, _ := switching(t, &leaver{give: []int64{1}})
	before := l.grant
	if err := l.gen.Replace(firn.Grant{Worker: 9, After: before.Through, Through: before.Through + 10}); err != nil {
		t.Fatal(err)
	}
	if l.grant != before {
		t.Errorf("it keeps %+v, not %+v", l.grant, before)
	}
}

// A source may grant the worker of an overlap again, above the ticks used, though its release has failed here.
func TestTheWorkerOfAnOverlapMayBeGrantedAgain(t *testing.T) {
	source := &fickle{leaver: &leaver{give: []int64{1, 1}, fail: func(context.Context, int64) error { return errAway }}}
	l := must(start(t.Context(), source, Config{Generator: firn.Config{Time: newMachine()}}))
	must(l.Next(t.Context()))
	source.look = errors.Join(ErrLost, ErrOverlap)
	before := l.grant
	l.turn(t.Context())
	if _, err := l.Next(t.Context()); err != nil || l.grant.Worker != 1 || l.grant.After < before.After {
		t.Errorf("on %+v: %v", l.grant, err)
	}
}

// The same within one call: another is granted the worker before the release reads what became of it.
func TestAReleaseThatReadsALaterGrantLeavesItAlone(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(t.Context(), ask))
	last := grant.After + 1
	other, ask := w.slots(t, func(c *Config) { c.Store = w.mem })
	applied, taken := false, false
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch {
		case c.Op == storetest.OpCompareAndSwap && !applied:
			applied = true
			return storetest.FailApplied
		case c.Op == storetest.OpGet && applied && !taken:
			taken = true
			w.time.Pass(time.Second)
			must(other.Acquire(t.Context(), ask))
		}
		return storetest.Pass
	}
	if err := s.Release(t.Context(), grant, last); err != nil || !taken {
		t.Fatal(err, taken)
	}
	if w.closed() || s.setBacks.Load() != 0 {
		t.Errorf("closed: %t, %d losses", w.closed(), s.setBacks.Load())
	}
}

// A switch ends the outage that it follows: the next failure is news.
func TestAFailureAfterASwitchIsLogged(t *testing.T) {
	source := &nowhere{leaver: &leaver{give: []int64{1}}}
	l, clock := switching(t, source)
	var log strings.Builder
	l.cfg.Log = logTo(&log)
	for round := range 3 {
		clock.Step(-10 * time.Second)
		if _, err := l.Next(t.Context()); !errors.Is(err, errAway) {
			t.Fatal(err)
		}
		source.give = []int64{int64(round) + 2}
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "could not switch worker"); n != round+1 {
			t.Errorf("%d failures are logged %d times:\n%s", round+1, n, log.String())
		}
		if n := strings.Count(log.String(), `level=WARN msg="the clock went back, switching worker" worker=`); n != round+1 {
			t.Errorf("%d switches are logged %d times:\n%s", round+1, n, log.String())
		}
	}
}

// The claim of the new worker may be some calls old: its first look begins at once.
func TestASwitchHurriesTheNextLook(t *testing.T) {
	l, clock := switching(t, &leaver{give: []int64{1, 2}})
	for _, want := range []bool{false, true} {
		pause, end := l.awaited(t.Context())
		if want {
			goBack(t, l, clock)
			if pause.Err() == nil {
				t.Error("the pause that was under way goes on")
			}
			end()
			pause, end = l.awaited(t.Context())
		}
		if ended := pause.Err() != nil; ended != want {
			t.Errorf("after a switch: %t; the pause has ended: %t", want, ended)
		}
		end()
	}
}

// The answer of a release was lost, and another was granted the worker since: the next try does not take that for a loss of
// the store.
func TestARepeatedReleaseLeavesALaterGrantAlone(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(t.Context(), ask))
	applied := false
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch {
		case applied:
			return storetest.FailUnapplied
		case c.Op == storetest.OpCompareAndSwap:
			applied = true
			return storetest.FailApplied
		}
		return storetest.Pass
	}
	last := grant.After + 1
	if err := s.Release(t.Context(), grant, last); err == nil {
		t.Fatal("its answer was lost")
	}
	w.store.Script = nil
	w.time.Pass(time.Second)
	other, ask := w.slots(t)
	later := must(other.Acquire(t.Context(), ask))
	must(0, s.Release(t.Context(), grant, last))
	must(0, other.Look(t.Context(), later))
	if w.closed() || s.setBacks.Load() != 0 {
		t.Errorf("closed: %t, %d losses", w.closed(), s.setBacks.Load())
	}
}
