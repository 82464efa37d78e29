package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// counted counts the readings of a clock.
type counted struct {
	slowClock
	calls *int
}

func (c counted) Traits() store.Traits { return store.Traits{Clock: c} }

func (c counted) Now(ctx context.Context) (time.Time, error) {
	*c.calls++
	return c.slowClock.Now(ctx)
}

// The answer may have been made at any moment of the round trip. One that says nothing is
// asked for again; one that says that the clock here is wrong is not.
func TestAClockIsJudgedByTheMiddleOfTheRoundTrip(t *testing.T) {
	const tolerance = time.Second
	for _, c := range []struct {
		leg, off time.Duration
		want     error
		calls    int
	}{
		{0, tolerance, nil, 1},
		{0, -tolerance, nil, 1},
		{0, tolerance + 1, ErrClock, 1},
		{0, -tolerance - 1, ErrClock, 1},
		{tolerance, 0, nil, 1}, // half of it off, and half of it unknown
		{tolerance, 2, store.ErrUnavailable, 3},
		{tolerance, -tolerance, nil, 1},
		{tolerance, -tolerance - 2, store.ErrUnavailable, 3},
		{tolerance, tolerance / 2, store.ErrUnavailable, 3},
		{tolerance, tolerance/2 + 1, store.ErrUnavailable, 3}, // it may be right
		{tolerance, tolerance, store.ErrUnavailable, 3},
		{tolerance, tolerance + 1, ErrClock, 1},
		{2 * tolerance, -tolerance, nil, 1}, // all of it unknown
	} {
		w := newWorld(t)
		calls := 0
		s := must(newPoolSource(Config{Store: counted{slowClock{remote{w.store, w.time.Wall, nil}, c.leg, w.time}, &calls}, Tolerance: tolerance, Generator: firn.Config{Time: skewed{w.time, c.off}}}))
		before, asked := *s.checked.Load(), w.time.Wall()
		here, err := s.checkClock(context.Background())
		if !errors.Is(err, c.want) || calls != c.calls {
			t.Errorf("%v off, an answer of %v: %v after %d calls, want %v after %d", c.off, c.leg, err, calls, c.want, c.calls)
		}
		if e := (*ClockError)(nil); errors.As(err, &e) && (e.Whose != "the store's" || e.Tolerance != tolerance || !e.There.Equal(asked) || !e.Here.Equal(asked.Add(c.leg/2+c.off))) {
			t.Errorf("%v off, an answer of %v: %+v", c.off, c.leg, e)
		}
		if errors.Is(err, store.ErrUnavailable) && !strings.Contains(err.Error(), "took 1s to answer") {
			t.Errorf("%v off, an answer of %v: %v", c.off, c.leg, err)
		}
		if checked := *s.checked.Load(); err == nil && checked != here || err != nil && checked != before {
			t.Errorf("%v off, an answer of %v: %+v counts as checked", c.off, c.leg, checked)
		}
		if latest := asked.Add(c.leg / 2); err == nil && (!here.there.Equal(latest) || !here.wall.Equal(asked.Add(c.leg+c.off))) {
			t.Errorf("%v off, an answer of %v: %+v, the store's clock showed %v", c.off, c.leg, here, latest)
		}
	}
}

// A program that canceled a call must not take the store for unavailable.
func TestACallThatIsCanceledWhileTheClockIsSlowSaysSo(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	why, calls := errors.New("the caller left"), 0
	there := func() time.Time {
		if calls == maxClockTries {
			cancel(why)
		}
		return w.time.Wall()
	}
	s := must(newPoolSource(Config{Store: counted{slowClock{remote{w.store, there, nil}, defaultTolerance, w.time}, &calls}, Generator: firn.Config{Time: skewed{w.time, 2}}}))
	if _, err := s.checkClock(ctx); calls != maxClockTries || !errors.Is(err, context.Canceled) || !errors.Is(err, why) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// Differences between times saturate at 292 years.
func TestAClockThatIsCenturiesAwayIsRefused(t *testing.T) {
	for _, year := range []int{1, 1600, 2400, 10_000} {
		w := newWorld(t)
		there := func() time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
		var calls int
		s := must(newPoolSource(Config{Store: counted{slowClock{remote{w.store, there, nil}, time.Millisecond, w.time}, &calls}, Generator: firn.Config{Time: w.time}}))
		if _, err := s.checkClock(context.Background()); !errors.Is(err, ErrClock) {
			t.Errorf("in the year %d: %v", year, err)
		}
	}
}

// What was asked is asked as of now by the clock that was checked, whatever the wall clock
// shows by then.
func TestAnAskIsMovedToThePresent(t *testing.T) {
	w := newWorld(t)
	s, _ := w.slots(t)
	now := must(s.cfg.Generator.Layout.Tick(noon))
	end := s.cfg.Generator.Layout.MaxTick()
	checked := s.read()
	for _, c := range []struct {
		passes time.Duration
		ask    Ask
		want   Ask
	}{
		{0, Ask{Now: now, From: now + 5}, Ask{Now: now, From: now + 5}},
		{time.Second, Ask{Now: now, From: now + 5}, Ask{Now: now + 1000, From: now + 1005}},
		{0, Ask{Now: now + 2000, From: now + 2005}, Ask{Now: now + 1000, From: now + 2005}}, // the clock was ahead
		{0, Ask{Now: now - 2000, From: now + 1005}, Ask{Now: now + 1000, From: now + 1005}}, // it was behind
		{0, Ask{Now: now + 1000, From: end - 1}, Ask{Now: now + 1000, From: end - 1}},
		{0, Ask{Now: now + 1000, From: end + 1}, Ask{Now: now + 1000, From: end}}, // an earlier life may have used the last tick
		{2 * time.Second, Ask{Now: now + 1000, From: now + 1500}, Ask{Now: now + 3000, From: now + 3005}},
		{0, Ask{Now: now + 3000, From: now + 9000}, Ask{Now: now + 3000, From: now + 9000}}, // its last id
	} {
		w.time.Pass(c.passes)
		present, err := s.present(c.ask, checked)
		if got := c.ask.at(present, 5, s.cfg.Generator.Layout); err != nil || got != c.want {
			t.Errorf("%+v is asked as %+v, %v, want %+v", c.ask, got, err, c.want)
		}
	}
	// A claim keeps the whole lead, which may end in the tick after those that it has, and no more. That of the tick under way is
	// not kept: the store is embedded.
	for _, more := range []firn.Tick{0, 1, 1000} {
		w := newWorld(t)
		s, _ := w.slots(t)
		lead := s.rules.ticks(fencedLead(s.cfg.Generator))
		present := must(s.cfg.Generator.Layout.Tick(w.time.Wall()))
		behind := Ask{Now: present - 2000, From: present - 2000 + lead + 2 + more, Window: 60_000}
		if grant := must(s.Acquire(t.Context(), behind.always)); grant.After != present+lead {
			t.Errorf("a claim at %d with a lead of %d ticks, which asks for %d more, begins after %d", present, lead, more, grant.After)
		}
	}
	late := Ask{Now: must(s.cfg.Generator.Layout.Tick(s.wall(checked).Add(s.cfg.Tolerance)))}
	if _, err := s.present(late, checked); err != nil {
		t.Errorf("a tolerance ahead: %v", err)
	}
	late.Now++
	var wrong *ClockError
	if _, err := s.present(late, checked); !errors.As(err, &wrong) || !wrong.There.Equal(s.wall(checked)) || !wrong.Here.Equal(s.cfg.Generator.Layout.Time(late.Now)) || wrong.Tolerance != s.cfg.Tolerance || wrong.Whose != "itself a moment later" {
		t.Errorf("further ahead: %v", err)
	}
	// Whether a fence has passed is judged by what is later.
	shown := must(s.cfg.Generator.Layout.Tick(s.wall(checked)))
	w.time.Set(noon.Add(-time.Hour))
	if got := s.latest(checked); got != shown {
		t.Errorf("the wall clock went back: %d, want %d", got, shown)
	}
	w.time.Set(noon.Add(time.Hour))
	if got := s.latest(checked); got != now+3_600_000 {
		t.Errorf("the wall clock is ahead: %d, want %d", got, now+3_600_000)
	}
}

func TestATimeOutsideALayoutCountsAsItsEdge(t *testing.T) {
	l := layout("20/0/4/8")
	for _, c := range []struct {
		at   time.Time
		want firn.Tick
	}{
		{l.Epoch().Add(-1), 0}, {l.Epoch(), 0}, {l.Time(7), 7}, {l.End().Add(-1), l.MaxTick()}, {l.End(), l.MaxTick()}, {l.End().Add(time.Hour), l.MaxTick()},
	} {
		if got := tickOf(l, c.at); got != c.want {
			t.Errorf("%v: %d, want %d", c.at, got, c.want)
		}
	}
}

// A program may wrap its store, to trace or count calls. The clock is compared as before.
func TestAWrappedStoreKeepsItsClock(t *testing.T) {
	type traced struct{ store.Store }
	w := newWorld(t)
	there := remote{w.store, func() time.Time { return w.time.Wall().Add(-24 * time.Hour) }, nil}
	for name, s := range map[string]store.Store{"plain": there, "wrapped": traced{there}} {
		if _, err := w.try(func(c *Config) { c.Store = s }); !errors.Is(err, ErrClock) {
			t.Errorf("%s, a day behind: %v", name, err)
		}
	}
}
