package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// scripted asks a function before each store call what its outcome is.
type scripted struct {
	store.Store
	call func(what, key string) error // an error is the answer
	life func() string
}

func (*scripted) Traits() store.Traits { return store.Traits{} }

func (s *scripted) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := s.call("get", key); err != nil {
		return store.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s *scripted) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if err := s.call("list", prefix); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, prefix)
}

func (s *scripted) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if err := s.call("write", key); err != nil {
		return store.Entry{}, err
	}
	e, err := s.Store.CompareAndSwap(ctx, key, old, value)
	if s.life != nil {
		e.Life = s.life()
	}
	return e, err
}

// clocked is such a store with a clock.
type clocked struct{ *scripted }

func (c clocked) Traits() store.Traits { return store.Traits{Clock: c} }

func (c clocked) Now(context.Context) (time.Time, error) {
	if err := c.call("clock", ""); err != nil {
		return time.Time{}, err
	}
	return time.Now(), nil
}

// Joining an open pool takes three round trips, a look one, a renewal two: the clock is
// compared beside them.
func TestRoundTripsOfJoiningLookingAndRenewing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		time.Sleep(time.Until(noon))
		s := clocked{&scripted{Store: memstore.New(nil), call: func(string, string) error { time.Sleep(time.Second); return nil }}}
		first := must(newPoolSource(Config{Store: s}))
		now := must(first.cfg.Generator.Layout.Tick(time.Now()))
		ask := func() Ask {
			now = must(first.cfg.Generator.Layout.Tick(time.Now()))
			return Ask{Now: now, From: now, Window: 60_000}
		}
		must(first.Acquire(ctx, ask))
		took := func(do func() error) time.Duration {
			began := time.Now()
			if err := do(); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		var grant firn.Grant
		second := must(newPoolSource(Config{Store: s}))
		for _, c := range []struct {
			what  string
			trips time.Duration
			do    func() error
		}{
			{"joining", 3, func() (err error) { grant, err = second.Acquire(ctx, ask); return err }},
			{"a look", 1, func() error { return second.Look(ctx, grant) }},
			{"a renewal", 2, func() (err error) { grant, err = second.Renew(ctx, grant, ask()); return err }},
			{"a release", 2, func() error { return second.Release(ctx, grant, now) }},
		} {
			if got := took(c.do); got != c.trips*time.Second {
				t.Errorf("%s takes %v, want %d trips of a second", c.what, got, c.trips)
			}
		}
	})
}

// What a store fails ends joining, unless another try may do; and nothing is granted or
// left behind.
func TestStoreErrorsWhileJoining(t *testing.T) {
	lost := errors.New("no answer")
	for name, c := range map[string]struct {
		what, key string
		from, to  int // which of these calls fail, from 1
		err, want error
		says      string
	}{
		"the list":                      {"list", "", 1, 1, errAway, errAway, `lease: join pool "default"`},
		"the clock":                     {"clock", "", 1, 1, errAway, errAway, "lease: read the store's clock"},
		"a claim that is refused":       {"write", theSlot, 1, 1, store.ErrRefused, store.ErrRefused, `lease: claim worker 0 of pool "default"`},
		"a store that is not to be had": {"write", theSlot, 1, 5, store.ErrUnavailable, store.ErrUnavailable, `lease: claim worker 0 of pool "default"`},
		"claims without an answer":      {"write", theSlot, 1, 5, lost, nil, ""},
		"the last read":                 {"get", poolKey("default"), 2, 2, errAway, errAway, `lease: claim worker 0 of pool "default"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(noon))
			mem := memstore.New(nil)
			armed, calls := false, 0
			s := clocked{&scripted{Store: mem, call: func(what, key string) error {
				if !armed || what != c.what || c.key != "" && key != c.key {
					return nil
				}
				if calls++; calls < c.from || calls > c.to {
					return nil
				}
				return c.err
			}}}
			slots := must(newPoolSource(Config{Store: s, Generator: firn.Config{Layout: layout("41/0/0/12")}}))
			now := must(slots.cfg.Generator.Layout.Tick(time.Now()))
			ask := Ask{Now: now, From: now, Window: 60_000}
			grant := must(slots.Acquire(t.Context(), ask.always))
			if err := slots.Release(t.Context(), grant, grant.After); err != nil {
				t.Fatal(err)
			}
			before := must(Inspect(t.Context(), mem, "default"))
			armed, calls = true, 0
			if c.what == "get" {
				c.from, c.to = 1, 1
			}
			_, err := slots.Acquire(t.Context(), ask.always)
			if !errors.Is(err, c.want) || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "leave worker")) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
			p := must(Inspect(t.Context(), mem, "default"))
			if held := !p.Slots[0].Free; held != (c.want == nil) || !held && p.Slots[0].Fence != before.Slots[0].Fence {
				t.Errorf("%s: the slot is left as %+v", name, p.Slots[0])
			}
		})
	}
}

// A newcomer that is canceled while it waits for forgotten holders has claimed nothing.
func TestANewcomerCanceledWhileItWaits(t *testing.T) {
	errStop := errors.New("SIGTERM")
	ctx, cancel := context.WithCancelCause(context.Background())
	w := newWorld(t)
	var reads int // before it was canceled
	s, ask := w.slots(t, func(c *Config) {
		c.Store, c.Generator.Time = remote{c.Store, w.time.Wall, nil}, endsAsleep{w.time, func() { reads = w.store.Counts().Get; cancel(errStop) }}
	})
	_, err := s.Acquire(ctx, ask)
	if n := w.store.Counts().Get - reads; n != 0 {
		t.Errorf("canceled, it has read %d times", n)
	}
	if !errors.Is(err, context.Canceled) || !errors.Is(err, errStop) || !strings.Contains(err.Error(), "wait 12s, as the pool is new") || strings.Contains(err.Error(), "each try") {
		t.Errorf("%v", err)
	}
	if errors.Is(err, store.ErrConflict) {
		t.Errorf("nobody was quicker: %v", err)
	}
	if p := must(Inspect(context.Background(), w.mem, "default")); p.Open || len(p.Slots) > 0 {
		t.Errorf("%+v", p)
	}
}

// The error of a newcomer whose deadline passes says how much time it needs.
func TestANewcomerWithTooLittleTime(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorld(t)
	s, ask := w.slots(t, func(c *Config) {
		c.Store, c.Generator.Time = remote{c.Store, w.time.Wall, nil}, endsAsleep{w.time, cancel}
	})
	_, err := s.Acquire(overdue{ctx}, ask)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), "each try starts the wait again and may need two of them: allow more than 24s") {
		t.Error(err)
	}
}

// overdue is a context that ends as one whose deadline has passed.
type overdue struct{ context.Context }

func (o overdue) Err() error {
	if o.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

type endsAsleep struct {
	*machine
	cancel func()
}

func (c endsAsleep) Sleep(ctx context.Context, _ time.Duration) error {
	c.cancel()
	return context.Cause(ctx)
}

// Where each write begins another life of the store, the pool cannot be opened in any.
func TestAStoreThatStartsANewLifeAtEachWrite(t *testing.T) {
	w := newWorld(t)
	lives, writes := 0, 0
	var log strings.Builder
	st := &scripted{Store: w.mem, call: func(what, _ string) error {
		if what == "write" {
			writes++
		}
		return nil
	}, life: func() string { lives++; return fmt.Sprint(lives) }}
	s, ask := w.slots(t, func(c *Config) { c.Store, c.Log = st, logTo(&log) })
	if _, err := s.Acquire(context.Background(), ask); !errors.Is(err, store.ErrUnavailable) || writes != 4 {
		t.Errorf("%v after %d writes", err, writes)
	}
	// Two lives: the newcomer in between notices, and starts again.
	st.life = func() string { return "one" }
	grant := must(s.Acquire(context.Background(), ask))
	if err := s.Release(context.Background(), grant, grant.After); err != nil {
		t.Fatal(err)
	}
	w.time.Pass(time.Minute)
	writes = 0
	st.life = func() string { return "two" }
	must(s.Acquire(context.Background(), ask))
	if n := strings.Count(log.String(), "the store was restarted or replaced"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, log.String())
	}
	if p := must(Inspect(context.Background(), w.mem, "default")); !p.Open || *p.Life != "two" {
		t.Errorf("%+v in life %s", p, *p.Life)
	}
	if writes != 11 { // a claim, its undoing, the pool closed, six that change nothing while it waits, opened; a claim
		t.Errorf("%d writes", writes)
	}
}

// A read slower than a holder's look proves nothing.
func TestALastReadThatIsAlwaysSlowGrantsNothing(t *testing.T) {
	for _, made := range []bool{false, true} { // made: the pool is open, so the read after the claim is the only slow one
		w := newWorld(t)
		if made {
			w.start(small)
		}
		gets := 0
		s, ask := w.slots(t, func(c *Config) {
			small(c)
			c.Store = &scripted{Store: w.mem, call: func(what, _ string) error {
				if what == "get" {
					if gets++; gets > 2*maxTries {
						return errAway // rather than that the test never ends
					}
					w.time.Pass(2*time.Second + 1)
				}
				return nil
			}}
		})
		if _, err := s.Acquire(t.Context(), ask); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "took longer than 2s to read") || gets > maxTries+1 {
			t.Errorf("a pool that is there: %t: %v after %d reads", made, err, gets)
		}
	}
}

// The claim was confirmed: one slow answer does not undo it.
func TestALastReadThatIsSlowOnceIsRepeated(t *testing.T) {
	w := newWorld(t)
	must(0, w.start(small).Close(t.Context()))
	slow := true
	s, ask := w.slots(t, func(c *Config) {
		small(c)
		c.Store = &scripted{Store: w.mem, call: func(what, _ string) error {
			if what == "get" && slow {
				slow = false
				w.time.Pass(2*time.Second + 1)
			}
			return nil
		}}
	})
	if _, err := s.Acquire(t.Context(), ask); err != nil || slow {
		t.Errorf("a slow read: %t; %v", !slow, err)
	}
}

// deaf answers reads though their context has ended.
type deaf struct{ store.Store }

func (d deaf) Get(ctx context.Context, key string) (store.Entry, error) {
	return d.Store.Get(context.WithoutCancel(ctx), key)
}

// A program that canceled a call must not take the store for unavailable.
func TestACallThatIsCanceledWhileTheStoreIsSlowSaysSo(t *testing.T) {
	why := errors.New("the caller left")
	for n := 1; ; n++ {
		w := newWorld(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		calls := 0
		s, ask := w.slots(t, func(c *Config) {
			c.Store = &scripted{Store: deaf{w.mem}, call: func(string, string) error {
				if calls++; calls == n {
					w.time.Pass(2*time.Second + 1) // longer than a look may take
					cancel(why)
				}
				return nil
			}}
		})
		_, err := s.Acquire(ctx, ask)
		cancel(nil)
		if calls < n {
			if n < 6 {
				t.Errorf("only %d calls", calls)
			}
			return
		}
		if err != nil && (!errors.Is(err, context.Canceled) || !errors.Is(err, why) || errors.Is(err, store.ErrUnavailable)) {
			t.Errorf("canceled at call %d: %v", n, err)
		}
	}
}

// Near the end of a layout no tick may be left to claim.
func TestAWorkerWithoutTicksIsNotGranted(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	pinned := int64(0)
	s, ask := w.slots(t, func(c *Config) { c.Pinned, c.PinnedAhead = &pinned, true })
	first := must(s.Acquire(ctx, ask))
	if err := s.Release(ctx, first, first.After+500); err != nil {
		t.Fatal(err)
	}
	grant := must(s.Acquire(ctx, ask))
	if err := s.Release(ctx, grant, grant.After-1); err != nil || w.fence() != grant.After {
		t.Fatalf("%v; the fence stands at %d, of a claim after %d", err, w.fence(), grant.After)
	}
	last := s.cfg.Generator.Layout.MaxTick()
	w.put(theSlot, must(register.Encode(Slot{After: 0, Fence: last, Owner: "another"})))
	var exhausted *firn.TimeExhaustedError
	if _, err := s.Acquire(ctx, ask); !errors.As(err, &exhausted) || exhausted.Layout != s.cfg.Generator.Layout || !exhausted.End.Equal(s.cfg.Generator.Layout.End()) {
		t.Errorf("%v", err)
	}
	if got := w.raw(theSlot)["owner"]; got != "another" {
		t.Errorf("it was written by %v", got)
	}
	w.put(theSlot, must(register.Encode(Slot{After: 0, Fence: last - 1, Owner: "another"})))
	if grant := must(s.Acquire(ctx, ask)); grant.After != last-1 || grant.Through != last {
		t.Errorf("%+v", grant)
	}
	full, ask := w.slots(t)
	var e *FullError
	if _, err := full.Acquire(ctx, ask); !errors.As(err, &e) || e.Workers != 1 || e.Pool != "default" || !e.Next.Equal(s.cfg.Generator.Layout.End()) {
		t.Errorf("%v", err)
	}
}

// A cancel between two tries returns the context's error and the reason for the retry.
func TestANewcomerCanceledBetweenTwoTries(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorld(t)
	w.hold(t) // so that the pool is open
	s, ask := w.slots(t, func(c *Config) {
		c.Generator.Time = endsAsleep{w.time, cancel}
		c.Store = &scripted{Store: w.mem, call: func(what, key string) error {
			if what == "write" && key == theSlot {
				return store.ErrConflict
			}
			return nil
		}}
	})
	w.put(theSlot, must(register.Encode(Slot{Fence: 5, Owner: "another", Free: true})))
	if _, err := s.Acquire(ctx, ask); !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v", err)
	}
	// The claim was written, and the pool has changed meanwhile: the first wait is the one before the next try.
	ctx, cancel = context.WithCancel(context.Background())
	w.put(theSlot, must(register.Encode(Slot{Fence: 5, Owner: "another", Free: true})))
	s, ask = w.slots(t, func(c *Config) {
		c.Generator.Time = endsAsleep{w.time, cancel}
		c.Store = &scripted{Store: w.mem, call: func(what, key string) error {
			if what == "get" && key == poolKey("default") {
				w.put(key, must(w.mem.Get(t.Context(), key)).Value)
			}
			return nil
		}}
	})
	if grant, err := s.Acquire(ctx, ask); !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrConflict) {
		t.Errorf("%+v, %v", grant, err)
	}
}

func TestAcquireGivesUpAfterTooManyLostRaces(t *testing.T) {
	w := newWorld(t)
	claims := 0
	s, ask := w.slots(t, func(c *Config) {
		c.Store = &scripted{Store: w.mem, call: func(what, key string) error {
			if what == "write" && key == theSlot {
				claims++
				w.put(theSlot, must(register.Encode(Slot{Fence: firn.Tick(claims), Owner: "another", Free: true})))
			}
			return nil
		}}
	})
	_, err := s.Acquire(context.Background(), ask)
	if !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "after 64 tries") || claims != 62 { // one made the pool, and one opened it
		t.Errorf("%v, after %d claims", err, claims)
	}
}

// An ask by a clock that was corrected since is not granted.
func TestANewcomerWhoseClockWasAheadIsRefused(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	s, ask := w.slots(t)
	ahead := ask()
	ahead.Now += 10_001
	if _, err := s.Acquire(ctx, ahead.always); !errors.Is(err, ErrClock) {
		t.Errorf("%v", err)
	}
	w.time.Set(s.cfg.Generator.Layout.Time(s.cfg.Generator.Layout.MaxTick()))
	var exhausted *firn.TimeExhaustedError
	if _, err := s.Acquire(ctx, Ask{}.always); !errors.As(err, &exhausted) || exhausted.Layout != s.cfg.Generator.Layout || !exhausted.End.Equal(s.cfg.Generator.Layout.End()) {
		t.Errorf("at the last tick: %v", err)
	}
	w = newWorld(t)
	s, _ = w.slots(t)
	w.time.Set(s.cfg.Generator.Layout.End())
	if _, err := s.Acquire(ctx, Ask{}.always); !errors.As(err, &exhausted) || w.store.Counts().CompareAndSwap != 0 {
		t.Errorf("after the last tick, and after %d writes: %v", w.store.Counts().CompareAndSwap, err)
	}
}

func TestInvalidRecordsAreRefused(t *testing.T) {
	if _, err := register.Encode(Pool{Layout: layout("41/0/0/12"), Made: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil || !strings.Contains(err.Error(), "encode a record") {
		t.Errorf("a year that JSON has not: %v", err)
	}
	for text, want := range map[string]string{"{": "unexpected end", "{}": "it names no layout", `{"layout":"9"}`: "layout"} {
		if _, err := readRecord(store.Entry{Value: []byte(text)}); !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for s, want := range map[Slot]bool{{Free: true, Fence: -1}: true, {Free: true}: false, {Fence: -1}: false} {
		if s.blank() != want {
			t.Errorf("%+v", s)
		}
	}
}

// Where others are quicker each time, a newcomer waits a little longer before each try, and ends with its context.
func TestANewcomerThatLosesEachRaceWaitsBetweenItsTries(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the caller left")
	var at []time.Duration
	s, ask := w.slots(t, func(c *Config) {
		c.Store = &scripted{Store: w.mem, call: func(what, key string) error {
			if what != "write" || !strings.Contains(key, "/slot/") {
				return nil
			}
			if at = append(at, w.time.Monotonic()); len(at) == 10 {
				cancel(why)
			}
			return store.ErrConflict
		}}
	})
	if _, err := s.Acquire(ctx, ask); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if len(at) != 10 || at[9]-at[0] < 5*time.Millisecond {
		t.Errorf("its tries were at %v", at)
	}
}

// Processes of one machine have one clock: slots that say otherwise were written before it was corrected.
func TestAnEmbeddedStoreDoesNotCompareClocks(t *testing.T) {
	for embedded, want := range map[bool]error{true: nil, false: ErrClock} {
		w := newWorld(t)
		s, ask := w.slots(t, func(c *Config) {
			small(c)
			c.Generator.Layout = layout("41/0/4/12")
			if !embedded {
				w.timeless(c)
			}
		})
		opener := must(s.Acquire(t.Context(), ask))
		must(0, s.Release(t.Context(), opener, opener.After))
		w.time.Pass(time.Second)
		for worker := range int64(3) {
			w.put(slotKey("default", s.rules.layout, 0, worker+10), must(register.Encode(Slot{
				Fence: ask().Now + 60_000, Owner: fmt.Sprint(worker), Host: fmt.Sprint(worker), At: noon.Add(time.Hour)})))
		}
		_, err := s.Acquire(t.Context(), ask)
		if e := (*ClockError)(nil); !errors.Is(err, want) || errors.As(err, &e) && e.Tolerance != s.cfg.Tolerance {
			t.Errorf("embedded %t: %v", embedded, err)
		}
	}
}

// Who does not wait says nothing of waiting.
func TestTheFirstProcessOfAnEmbeddedPoolDoesNotWait(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	s, ask := w.slots(t, func(c *Config) { c.Log = logTo(&log) })
	must(s.Acquire(t.Context(), ask))
	if strings.Contains(log.String(), "waiting before") {
		t.Error(log.String())
	}
}

// A newcomer has waited, and opened the pool. The store is set back to the same copy again before it claims: what it wrote
// is gone, and holders have not looked since.
func TestASecondReturnToTheSameCopyIsWaitedForToo(t *testing.T) {
	w := newWorld(t)
	w.mustTake(w.start(w.timeless, small), 1) // and it crashed
	w.time.Pass(time.Hour)
	older := w.mem.Snapshot()
	again := false
	s, ask := w.slots(t, func(c *Config) {
		small(c)
		c.Store = &scripted{Store: w.mem, life: func() string { return "1" }, call: func(what, _ string) error {
			if p := must(Inspect(t.Context(), w.mem, "default")); what == "list" && p.Open && p.Settled > 0 && !again {
				again = true
				w.mem.Restore(older)
			}
			return nil
		}}
	})
	began := w.time.Monotonic()
	must(s.Acquire(t.Context(), ask))
	if took := w.time.Monotonic() - began; !again || took < 2*grace {
		t.Errorf("set back again: %t; it took %v", again, took)
	}
}
