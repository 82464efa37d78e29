package lease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

// slots returns a source over the world's store, and what to ask it for.
func (w *world) slots(t *testing.T, change ...func(*Config)) (*poolSource, func() Ask) {
	t.Helper()
	cfg := Config{Store: w.store, Host: "host", PID: 1, Generator: firn.Config{Layout: layout("41/0/0/12"), Time: w.time}}
	for _, c := range change {
		c(&cfg)
	}
	s, err := newPoolSource(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, func() Ask {
		now, err := cfg.Generator.Layout.Tick(w.time.Wall())
		if err != nil {
			t.Fatal(err)
		}
		return Ask{Now: now, From: now + 1, Window: firn.Tick(time.Minute / cfg.Generator.Layout.Unit())}
	}
}

// fence reads worker 0 as the store has it.
func (w *world) fence() firn.Tick {
	w.t.Helper()
	p, err := Inspect(context.Background(), w.mem, "default")
	if err != nil || len(p.Slots) != 1 {
		w.t.Fatal(p, err)
	}
	return p.Slots[0].Fence
}

// A process that lost a worker and was granted it again still has to release the first
// grant.
func TestTheEndOfALostClaimDoesNotTouchALaterClaimOfTheSameWorker(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	s, ask := w.slots(t)
	first, err := s.Acquire(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Reclaim(ctx, w.mem, "default", 0, 0, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Look(ctx, first); !errors.Is(err, ErrLost) {
		t.Fatalf("after the slot was taken back: %v", err)
	}
	w.time.Pass(2 * time.Minute)
	second, err := s.Acquire(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	if first.After == second.After {
		t.Errorf("two claims begin after %d", first.After)
	}
	if err := s.Release(ctx, first, first.After); err != nil {
		t.Errorf("the release of the first claim: %v", err)
	}
	if got := w.fence(); got != second.Through {
		t.Errorf("the fence stands at %d, want %d, that of the second claim", got, second.Through)
	}
	if _, err := s.Renew(ctx, first, ask()); !errors.Is(err, ErrLost) {
		t.Errorf("a renewal of the first claim: %v", err)
	}
	if err := s.Look(ctx, first); !errors.Is(err, ErrLost) {
		t.Errorf("a look at the first claim: %v", err)
	}
	if err := s.Look(ctx, second); err != nil {
		t.Errorf("a look at the second claim: %v", err)
	}
}

// An earlier holder's ids ran ahead of the clock, and the last one began above them, made ids or none.
func TestAFenceAheadOfWhichAHolderBeganStays(t *testing.T) {
	ctx := context.Background()
	pinned := int64(0)
	for _, twice := range []bool{false, true} { // taken back without the guarantee first
		w := newWorld(t)
		s, ask := w.slots(t, func(c *Config) { c.Pinned, c.PinnedAhead = &pinned, true })
		ahead := must(s.Acquire(ctx, ask))
		used := ahead.After + 30_000
		if err := s.Release(ctx, ahead, used); err != nil {
			t.Fatal(err)
		}
		gone := must(s.Acquire(ctx, ask))
		if gone.After < used {
			t.Fatalf("it begins after %d, and ticks up to %d are used", gone.After, used)
		}
		if twice {
			must(Reclaim(ctx, w.mem, "default", 0, 0, time.Time{}))
		}
		if slot := must(Reclaim(ctx, w.mem, "default", 0, 0, w.time.Wall())); slot.Fence != gone.Through {
			t.Errorf("twice %v: the fence is at %d, and ticks up to %d may be used", twice, slot.Fence, gone.Through)
		}
		must(Reclaim(ctx, w.mem, "default", 0, 0, w.time.Wall()))
		if got := w.fence(); got != gone.Through {
			t.Errorf("once more: the fence is at %d, and ticks up to %d may be used", got, gone.Through)
		}
	}
}

// A claim that is not used leaves a slot to be claimed when it could be before.
func TestAClaimThatIsNotUsedLeavesAWorkerTakenBackAsItWas(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t)
	holder, ask := w.slots(t)
	grant := must(holder.Acquire(ctx, ask))
	before := must(Reclaim(ctx, w.mem, "default", 0, grant.Worker, w.time.Wall().Add(time.Second)))
	w.time.Pass(time.Minute)
	s, ask := w.slots(t)
	h := must(s.begin(before, ask(), -1))
	must(replace(ctx, s.slot(grant.Worker), before.revision, func() ([]byte, error) { return s.encode(move{holding: h}, &before) }))
	if err := s.unclaim(ctx, h, before); err != nil {
		t.Fatal(err)
	}
	after := must(Inspect(ctx, w.mem, "default")).Slots[0]
	if after.Fence != before.Fence || after.After != h.after || !after.Free || !after.Taken || !after.Gone || !s.rules.idle(after, after.Fence+1) {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
}

// TestAnUnknownWorkerStartsAtThePresent: the store may have forgotten a
// holder that is gone, which used ticks up to the present.
func TestAnUnknownWorkerStartsAtThePresent(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	s, ask := w.slots(t, func(c *Config) { c.Store = remote{c.Store, w.time.Wall, nil} })
	asked := ask()
	got, err := s.Acquire(ctx, asked.always) // waits out the grace of the new pool
	if err != nil {
		t.Fatal(err)
	}
	if now := ask(); got.After < now.From-1 || now.Now-asked.Now < firn.Tick(grace/time.Millisecond) {
		t.Errorf("granted from %d, asked for %d on, after the grace it is %d", got.After+1, asked.From, now.From)
	}
}

// TestTheWaitForAPinnedWorkerLastsAsLongAsItsContext: its holder may renew more
// often than any number of tries.
func TestTheWaitForAPinnedWorkerLastsAsLongAsItsContext(t *testing.T) {
	w := newWorld(t)
	holder, ask := w.slots(t)
	held, err := holder.Acquire(context.Background(), ask)
	if err != nil {
		t.Fatal(err)
	}
	worker, waits := int64(0), 0
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("waited long enough")
	newcomer, _ := w.slots(t, func(c *Config) {
		c.Pinned = &worker
		c.Generator.Time = &during{machine: w.time, do: func() {
			if waits++; waits == 4*4*maxTries { // during has four parts of a wait
				cancel(enough)
			}
			if held, err = holder.Renew(context.Background(), held, ask()); err != nil {
				t.Error(err)
			}
		}}
	})
	if _, err := newcomer.Acquire(ctx, ask); !errors.Is(err, enough) || !strings.Contains(err.Error(), "is held by process 1 on host and can be leased from") {
		t.Errorf("after %d waits: %v", waits, err)
	}
}

func (w *world) strictly(c *Config) {
	c.Store, c.Tolerance, c.Strict = remote{c.Store, w.time.Wall, nil}, 5*time.Second, 80*time.Second
}

// TestAStrictClaimThatVanishesInItsWaitIsRepeated: others may have claimed after
// it vanished, and have waited less.
func TestAStrictClaimThatVanishesInItsWaitIsRepeated(t *testing.T) {
	w := newWorld(t)
	waits := 0
	s, ask := w.slots(t, w.strictly, func(c *Config) {
		c.Generator.Time = &during{machine: w.time, do: func() {
			if waits++; waits == 26 { // in the middle of the first claim's wait, after that of the new pool
				w.mem.Restore(nil)
			}
		}}
	})
	began := w.time.Wall()
	if _, err := s.Acquire(context.Background(), ask); err != nil {
		t.Fatal(err)
	}
	if took := w.time.Wall().Sub(began); took < 160*time.Second {
		t.Errorf("granted after %v; the claim that stands has waited less than 80s", took)
	}
}

// The copy has an earlier claim of the same process in place of this one.
func TestAStrictClaimThatIsSetBackToAnEarlierOneInItsWaitIsRepeated(t *testing.T) {
	w := newWorld(t)
	on := &sleeper{machine: w.time, wake: func() {}}
	s, ask := w.slots(t, w.strictly, func(c *Config) { c.Generator.Time = on })
	first := must(s.Acquire(t.Context(), ask))
	older := w.mem.Snapshot()
	must(0, s.Release(t.Context(), first, first.After))
	w.time.Pass(5 * time.Minute)
	on.wake = func() {
		on.wake = func() {}
		w.mem.Restore(older)
	}
	began := w.time.Monotonic()
	must(s.Acquire(t.Context(), ask))
	if took := w.time.Monotonic() - began; took < 160*time.Second {
		t.Errorf("granted after %v; the claim that stands has waited less than 80s", took)
	}
}

// A slow claim asks for a longer window, but no claim may reach further than newcomers wait.
func TestAStrictClaimIsBoundedHoweverLateItComes(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t, w.strictly)
	asked := ask()
	asked.Window *= 10
	got, err := s.Acquire(context.Background(), asked.always)
	if err != nil {
		t.Fatal(err)
	}
	if reach := s.cfg.Generator.Layout.Time(got.Through).Sub(w.time.Wall()); reach > 60*time.Second {
		t.Errorf("its fence is %v ahead; newcomers wait 80s, and clocks differ by 20s at most", reach)
	}
}

func TestAStrictPoolRefusesWhatItCannotKeep(t *testing.T) {
	worker := int64(0)
	if _, err := newPoolSource(Config{Store: remote{newWorld(t).store, time.Now, nil}, Strict: time.Minute, Pinned: &worker, PinnedAhead: true}); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("a pinned worker ahead of its fence: %v", err)
	}
	if _, err := newPoolSource(Config{Store: newWorld(t).store, Strict: time.Hour}); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("a store without a clock: %v", err)
	}
	for name, change := range map[string]func(*Config){
		"a window that ends before it is renewed": func(c *Config) { c.Window = 160 * time.Second },
		"a wait that covers the tolerance once":   func(c *Config) { c.Strict = 5*time.Minute + 30*time.Second },
		"no wait to speak of":                     func(c *Config) { c.Strict = 1 },
		"a switch, which would wait as well": func(c *Config) {
			c.Generator.Clock, c.Generator.Rollback = firn.ClockWall, firn.Rollback{firn.SwitchWorker()}
		},
		"a clock that does not run": func(c *Config) { c.Generator.Clock = firn.ClockVirtual },
	} {
		w := newWorld(t)
		good := func(c *Config) {
			w.shared(c)
			c.Window, c.Strict = 5*time.Minute, 5*time.Minute+40*time.Second+20*time.Millisecond
		}
		if _, err := w.try(good); err != nil {
			t.Fatal(err)
		}
		if _, err := w.try(good, change); !errors.Is(err, firn.ErrRange) && !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// twice is a source with one worker, which it grants again and again.
type twice struct{ Source }

func (twice) Traits() Traits { return Traits{} }

func (twice) Acquire(_ context.Context, ask func() Ask) (firn.Grant, error) {
	return firn.Grant{Worker: 3, After: max(ask().From-1, -1), Through: endless}, nil
}

func TestAWorkerGrantedAgainAndAgainIsUsedOnce(t *testing.T) {
	clock := newMachine()
	cfg := Config{Generator: firn.Config{Time: clock, Clock: firn.ClockWall, Rollback: firn.Rollback{firn.History(64, time.Second), firn.SwitchWorker()}}}
	if _, err := Keep(context.Background(), Fixed(3), cfg); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("a fixed worker with the policy switch: %v", err)
	}
	l, err := start(context.Background(), twice{Fixed(3)}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.cancel = func() {}
	close(l.done)
	seen := map[firn.ID]bool{}
	refused := 0
	for i := range 3000 {
		clock.Pass(5 * time.Millisecond)
		if i%100 == 50 {
			clock.Step(-300 * time.Millisecond)
		}
		id, err := l.Next(t.Context())
		if errors.Is(err, firn.ErrClockBack) {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if seen[id] {
			t.Fatalf("id %d twice", id)
		}
		seen[id] = true
	}
	if refused == 0 || len(seen) < 300 {
		t.Errorf("%d refused, %d ids", refused, len(seen))
	}
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// A switch would wait for ever, for the worker's own fence.
func TestAPinnedWorkerHasNoOtherToSwitchTo(t *testing.T) {
	worker := int64(0)
	_, err := Open(context.Background(), Config{
		Store: newWorld(t).store, Pinned: &worker,
		Generator: firn.Config{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}},
	})
	if !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("accepted: %v", err)
	}
}

// TestAWorkerThatComesAfterTheEndIsGivenBack: a switch may be under way when the
// lease is closed.
func TestAWorkerThatComesAfterTheEndIsGivenBack(t *testing.T) {
	w := newWorld(t)
	l := w.start(small)
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	if g, err := l.other(context.Background(), l.ask); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("%+v, %v", g, err)
	}
	p, err := Inspect(context.Background(), w.mem, "default")
	if err != nil || slices.ContainsFunc(p.Slots, func(s Slot) bool { return !s.Free && s.Worker != l.State().Worker }) {
		t.Errorf("another is left behind: %+v, %v", p, err)
	}
}

// TestALookIsNeverRarerThanTheWindowAllows: also where the window is a tick or less.
func TestALookIsNeverRarerThanTheWindowAllows(t *testing.T) {
	for _, test := range []struct {
		layout string
		want   time.Duration
	}{
		{"41/0/10/12", 25 * time.Millisecond}, {"41/0/10/12,unit=100ms", 25 * time.Millisecond},
		{"32/0/10/12,unit=1s", 250 * time.Millisecond}, {"20/0/10/12,unit=1h", defaultLook},
	} {
		w := newWorld(t)
		l := w.start(func(c *Config) {
			c.Generator.Layout = layout(test.layout)
			c.Window = minWindow
		})
		if l.cfg.Look != test.want {
			t.Errorf("layout %s, window %v: a look every %v, want %v", test.layout, minWindow, l.cfg.Look, test.want)
		}
	}
}

// TestAHolderWhoseTicksWereGrantedAgainStopsAtOnce: it could not protect them any
// more if the store forgot the other claim too.
func TestAHolderWhoseTicksWereGrantedAgainStopsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.seed = 3
	l := w.start(small)
	w.mustTake(l, 10)
	s, ask := w.slots(t, func(c *Config) { c.Generator.Layout, c.Pinned = l.gen.Layout(), &l.grant.Worker })
	w.mem.Delete(slotKey("default", l.gen.Layout(), 0, l.grant.Worker))
	g, err := s.Acquire(context.Background(), ask)
	if err != nil || g.Worker != l.grant.Worker {
		t.Fatal(g, err)
	}
	lost := l.grant.Worker
	l.turn(context.Background())
	if state := l.State(); state.Worker == lost || state.Losses != 1 {
		t.Errorf("it goes on with the worker: %+v", state)
	}
	w.time.Pass(time.Second)
	w.mustTake(l, 100)
	if err := l.source.Look(context.Background(), firn.Grant{Worker: lost, After: l.grant.After}); !errors.Is(err, ErrLost) {
		t.Errorf("a look at what was lost: %v", err)
	}
}

func TestASlotCanBeLeasedFromWhenItIsFree(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t, func(c *Config) { c.Store = remote{c.Store, w.time.Wall, nil} })
	must(s.Acquire(t.Context(), ask))
	p := must(Inspect(t.Context(), w.mem, "default"))
	for _, test := range []struct {
		gone  bool
		later time.Duration
	}{{false, 20*time.Second + time.Millisecond}, {true, 0}} {
		var last time.Time
		if test.gone {
			last = w.time.Wall()
		}
		slot := must(Reclaim(t.Context(), w.mem, "default", 0, 0, last))
		free := p.FreeAt(remote{w.mem, w.time.Wall, nil}, slot)
		if want := slot.Until.Add(test.later); !free.Equal(want) {
			t.Errorf("gone %v: free at %v, want %v", test.gone, free, want)
		}
		at := tickOf(p.Layout, free)
		if s.rules.idle(slot, at-1) || !s.rules.idle(slot, at) {
			t.Errorf("gone %v: it is not idle from %v on", test.gone, free)
		}
	}
}

func TestAWorkerNeverUsedIsNotReclaimed(t *testing.T) {
	w := newWorld(t)
	w.start(small)
	free := 1 - must(Inspect(t.Context(), w.mem, "default")).Slots[0].Worker
	if _, err := Reclaim(t.Context(), w.mem, "default", 0, free, time.Time{}); !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "never used") {
		t.Errorf("%v", err)
	}
	if slots := must(Inspect(t.Context(), w.mem, "default")).Slots; len(slots) != 1 {
		t.Errorf("it has made a slot: %+v", slots)
	}
}

// A worker was taken back without the guarantee first: the guarantee that comes later counts as much.
func TestALaterGuaranteeFreesAWorkerThatWasTakenBack(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	must(s.Acquire(t.Context(), ask))
	w.time.Pass(10 * time.Second)
	must(Reclaim(t.Context(), w.mem, "default", 0, 0, time.Time{}))
	slot := must(Reclaim(t.Context(), w.mem, "default", 0, 0, w.time.Wall()))
	if want := must(s.cfg.Generator.Layout.Tick(w.time.Wall())); slot.Fence != want {
		t.Errorf("the fence is at %d, want %d, when its holder had certainly ended", slot.Fence, want)
	}
}

// A store that is away does not show whether it has the pool.
func TestAPoolThatCannotBeReadIsNotAMissingOne(t *testing.T) {
	w := newWorld(t)
	w.start(small)
	w.store.Script = func(storetest.Call) storetest.Outcome { return storetest.FailUnapplied }
	if _, err := Inspect(t.Context(), w.store, "default"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestRelaxWritesNothingOverWhatItDoesNotUnderstand(t *testing.T) {
	w := newWorld(t)
	const text = `{"strict":"1m0s","open":true}`
	w.put("firn/default/pool", []byte(text))
	if _, err := Relax(t.Context(), w.mem, "default"); !errors.Is(err, store.ErrForeign) {
		t.Errorf("%v", err)
	}
	if got := string(must(w.mem.Get(t.Context(), "firn/default/pool")).Value); got != text {
		t.Errorf("it has written %s", got)
	}
}

// In a store whose processes share one clock a worker is free when its fence has passed.
func TestWhenAWorkerOfAnEmbeddedStoreIsFree(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	must(s.Acquire(t.Context(), ask))
	p := must(Inspect(t.Context(), w.mem, "default"))
	if here, far := p.FreeAt(w.mem, p.Slots[0]), p.FreeAt(remote{w.store, w.time.Wall, nil}, p.Slots[0]); !here.Equal(p.Slots[0].Until) || far.Sub(here) < 2*time.Duration(p.Tolerance) {
		t.Errorf("free at %v here, and at %v in a store of many machines; the fence is %v", here, far, p.Slots[0].Until)
	}
}
