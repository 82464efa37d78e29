package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

func logTo(text *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(text, nil)) }

// raw returns a slot's record as the store has it, by field.
func (w *world) raw(key string) map[string]any {
	w.t.Helper()
	entry, err := w.mem.Get(context.Background(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	record := map[string]any{}
	if err := json.Unmarshal(entry.Value, &record); err != nil {
		w.t.Fatal(err)
	}
	return record
}

// put writes what it likes over a key.
func (w *world) put(key string, value []byte) {
	w.t.Helper()
	entry, err := w.mem.Get(context.Background(), key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		w.t.Fatal(err)
	}
	if _, err := w.mem.CompareAndSwap(context.Background(), key, entry.Revision, value); err != nil {
		w.t.Fatal(err)
	}
}

const theSlot = "firn/default/slot/0/0"

// The record is read by other versions of Firn, and by people.
func TestTheRecordsInTheStore(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	s, ask := w.slots(t, func(c *Config) { c.PID = 4711 })
	now := must(s.cfg.Generator.Layout.Tick(noon))
	grant := must(s.Acquire(ctx, ask))
	pool := must(w.mem.Get(ctx, "firn/default/pool"))
	if got, want := string(pool.Value), `{"layout":"41/0/0/12","made":"2026-11-20T12:00:00Z","open":true,"grace":"12s","tolerance":"10s","life":"first"}`; got != want {
		t.Errorf("the pool: %s, want %s", got, want)
	}
	if p := must(Inspect(ctx, w.mem, "default")); p.Name != "default" || !p.Made.Equal(noon) || !p.Open || time.Duration(p.Grace) != grace || p.Layout != s.cfg.Generator.Layout {
		t.Errorf("%+v", p)
	}
	slot := must(w.mem.Get(ctx, theSlot))
	want := `{"after":"59486399999","fence":"59486460001","until":"2026-11-20T12:01:00.001Z","owner":"` + s.rules.token + `","write":1,"host":"host","pid":4711,"since":"2026-11-20T12:00:00Z","at":"2026-11-20T12:00:00Z"}`
	if string(slot.Value) != want {
		t.Errorf("the slot: %s, want %s", slot.Value, want)
	}
	w.time.Pass(time.Second)
	if err := s.Release(ctx, grant, now+500); err != nil {
		t.Fatal(err)
	}
	slot = must(w.mem.Get(ctx, theSlot))
	want = `{"after":"59486399999","fence":"59486400500","until":"2026-11-20T12:00:00.5Z","free":true,"owner":"` + s.rules.token + `","write":2,"host":"host","pid":4711,"since":"2026-11-20T12:00:00Z","at":"2026-11-20T12:00:01Z"}`
	if string(slot.Value) != want {
		t.Errorf("given back: %s, want %s", slot.Value, want)
	}
	// The writes are numbered from owner to owner.
	other, ask := w.slots(t)
	must(other.Acquire(ctx, ask))
	if got := w.raw(theSlot)["write"]; got != 3.0 {
		t.Errorf("the next owner's is write %v", got)
	}
}

// Once its ticks were granted to another, a worker is lost for good, even if the store
// forgets that grant as well: what was issued under it is not known here.
func TestAnOverlapIsNotForgotten(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(ctx, ask))
	mine := must(w.mem.Get(ctx, theSlot)).Value
	w.put(theSlot, must(register.Encode(Slot{After: grant.Through - 1, Fence: grant.Through + 1000, Owner: "another"})))
	for range 2 {
		if err := s.Look(ctx, grant); !errors.Is(err, ErrLost) || !errors.Is(err, ErrOverlap) || !strings.Contains(err.Error(), `lease: keep worker 0 of pool "default"`) {
			t.Fatalf("after its ticks were granted again: %v", err)
		}
		w.put(theSlot, mine)
	}
	if _, err := s.Renew(ctx, grant, ask()); !errors.Is(err, ErrOverlap) {
		t.Errorf("a renewal: %v", err)
	}
	if err := s.Release(ctx, grant, grant.After+5); err != nil {
		t.Fatal(err)
	}
	w.mem.Delete(theSlot)
	if err := s.Look(ctx, grant); !errors.Is(err, ErrLost) || errors.Is(err, ErrOverlap) {
		t.Errorf("after it was given back: %v", err)
	}
}

// After a loss without an overlap the slot is looked at again: the store may forget who took it.
func TestALossMayBeForgotten(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(ctx, ask))
	mine := must(w.mem.Get(ctx, theSlot)).Value
	w.put(theSlot, must(register.Encode(Slot{After: grant.Through, Fence: grant.Through + 1000, Owner: "another"})))
	if err := s.Look(ctx, grant); !errors.Is(err, ErrLost) || errors.Is(err, ErrOverlap) {
		t.Fatalf("after it was taken: %v", err)
	}
	w.put(theSlot, mine)
	if err := s.Look(ctx, grant); err != nil {
		t.Errorf("after that was forgotten: %v", err)
	}
}

// What is known of an earlier claim does not touch a later one of the same worker.
func TestAnEarlierClaimDoesNotTouchALaterOne(t *testing.T) {
	s, _ := newWorld(t).slots(t)
	earlier, later := holding{after: 1, fence: 10}, holding{after: 20, fence: 30}
	s.hold(later)
	s.change(earlier, func(h *holding) { h.fence = 99 })
	s.forget(earlier)
	if got, err := s.holding(firn.Grant{After: 20}); err != nil || got != later {
		t.Errorf("%+v, %v", got, err)
	}
	s.change(holding{worker: 1}, func(h *holding) { h.fence = 99 })
	if _, err := s.holding(firn.Grant{Worker: 1}); !errors.Is(err, ErrLost) {
		t.Errorf("a worker that was never held: %v", err)
	}
	s.change(later, func(h *holding) { h.fence = 40 })
	if got, err := s.holding(firn.Grant{After: 20}); err != nil || got.fence != 40 {
		t.Errorf("%+v, %v", got, err)
	}
	s.forget(later)
	if _, err := s.holding(firn.Grant{After: 20}); !errors.Is(err, ErrLost) {
		t.Errorf("after it has ended: %v", err)
	}
}

// A wish by a clock that has been put right since moves no fence, and is no reason not to look.
func TestAWishByAClockThatWasAheadMovesNoFence(t *testing.T) {
	ctx := context.Background()
	for _, vanished := range []bool{false, true} {
		w := newWorld(t)
		s, ask := w.slots(t)
		grant := must(s.Acquire(ctx, ask))
		ahead := ask()
		ahead.Now += 10_001
		ahead.From = ahead.Now
		if vanished {
			w.mem.Delete(theSlot)
		}
		got, err := s.Renew(ctx, grant, ahead)
		if !errors.Is(err, ErrClock) || got != grant || w.fence() != grant.Through {
			t.Errorf("vanished %t: %+v, %v; the fence stands at %d", vanished, got, err, w.fence())
		}
	}
}

// What passes between a wish and its write moves the fence by as much. A clock that is put right in
// between is no time that has passed: the worker would stay unused for as long as it was behind.
func TestAWishByAClockThatWasBehindMovesTheFenceNoFurther(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(context.Background(), ask))
	behind := ask()
	behind.From = behind.Now + 100
	want := behind.fence(grant.After, s.cfg.Generator.Layout)
	behind.Now -= 3_600_000
	got, err := s.Renew(context.Background(), grant, behind)
	if err != nil || got.Through != want {
		t.Errorf("%+v, %v, want a fence of %d", got, err, want)
	}
}

// slowWrites takes its time with each write.
type slowWrites struct {
	remote
	on    *machine
	takes time.Duration
}

func (s *slowWrites) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	s.on.Pass(s.takes)
	return s.remote.CompareAndSwap(ctx, key, old, value)
}

// Another may have been granted the worker before a renewal came through.
func TestAStrictRenewalThatComesTooLateIsALoss(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		before time.Duration // the fence, when the write has come through
		lost   bool
	}{{9 * time.Second, false}, {8*time.Second + time.Millisecond, true}} {
		w := newWorld(t)
		slow := &slowWrites{remote{w.store, w.time.Wall, nil}, w.time, 0}
		s, ask := w.slots(t, func(c *Config) { c.Store, c.Tolerance, c.Strict = slow, 2*time.Second, 80*time.Second })
		grant := must(s.Acquire(ctx, ask))
		fence := s.cfg.Generator.Layout.Time(grant.Through)
		w.time.Set(fence.Add(-30 * time.Second))
		slow.takes = 30*time.Second - c.before
		got, err := s.Renew(ctx, grant, ask())
		if errors.Is(err, ErrLost) != c.lost || err != nil != c.lost {
			t.Errorf("%v before its fence: %+v, %v", c.before, got, err)
		}
		if c.lost && got != grant {
			t.Errorf("a renewal that failed returns %+v, not the grant that it was for", got)
		}
		slow.takes = 0
		if err := s.Look(ctx, got); errors.Is(err, ErrLost) != c.lost {
			t.Errorf("after that: %v", err)
		}
	}
}

// A pool's record that does not answer must not hold up a look for longer than newcomers wait.
func TestTheCallsOfAnAlarmAreBoundedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		time.Sleep(time.Until(noon))
		mem := memstore.New(nil)
		var log strings.Builder
		hangs := &deafTo{Store: mem}
		s := must(newPoolSource(Config{Store: hangs, Log: logTo(&log), Generator: firn.Config{Layout: layout("41/0/0/12")}}))
		now := must(s.cfg.Generator.Layout.Tick(time.Now()))
		ask := Ask{Now: now, From: now, Window: 60_000}
		grant := must(s.Acquire(ctx, ask.always))
		before := must(Inspect(ctx, mem, "default"))
		before.From = 17
		if _, err := mem.CompareAndSwap(ctx, poolKey("default"), must(mem.Get(ctx, poolKey("default"))).Revision, must(register.Encode(before))); err != nil {
			t.Fatal(err)
		}
		mem.Delete(theSlot)
		hangs.key = "firn/default/pool"
		began := time.Now()
		if err := s.Look(ctx, grant); err == nil || time.Since(began) != maxPatience {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if _, err := mem.Get(ctx, theSlot); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("its slot is written before the pool is closed: %v", err)
		}
		hangs.key = ""
		if err := s.Look(ctx, grant); err != nil {
			t.Error(err)
		}
		p := must(Inspect(ctx, mem, "default"))
		if p.Open || p.Slots[0].Fence != grant.Through {
			t.Errorf("%+v", p)
		}
		before.Open, before.Slots, before.revision = false, p.Slots, p.revision
		if !reflect.DeepEqual(p, before) {
			t.Errorf("it is closed as %+v, not %+v", p, before)
		}
		if n := strings.Count(log.String(), "the store has less than it had confirmed"); n != 2 {
			t.Errorf("it is logged %d times: %s", n, log.String())
		}
		if n := s.setBacks.Load(); n != 2 {
			t.Errorf("it is counted %d times", n)
		}
	})
}

// An operator who took back the worker of a holder that lives has lost nothing of the store.
func TestAWorkerTakenBackTooEarlyIsNoSetBack(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t)
	var log strings.Builder
	s, ask := w.slots(t, func(c *Config) { c.Log = logTo(&log) })
	grant := must(s.Acquire(ctx, ask))
	must(Reclaim(ctx, w.mem, "default", 0, grant.Worker, noon.Add(time.Second)))
	w.time.Set(noon.Add(2 * time.Second))
	if err := s.Release(ctx, grant, grant.Through); err != nil {
		t.Error(err)
	}
	if n := s.setBacks.Load(); n != 0 || !strings.Contains(log.String(), "an operator took back a worker") {
		t.Errorf("%d set backs: %s", n, log.String())
	}
}

// deafTo does not answer for one key until its caller gives up.
type deafTo struct {
	store.Store
	key string
}

func (*deafTo) Traits() store.Traits { return store.Traits{} }

func (h *deafTo) Get(ctx context.Context, key string) (store.Entry, error) {
	if key == h.key {
		<-ctx.Done()
		return store.Entry{}, store.ContextError(ctx)
	}
	return h.Store.Get(ctx, key)
}

// Where the store has a clock, that is the one that counts.
func TestHoldersDoNotOutvoteTheStoresClock(t *testing.T) {
	for _, clocked := range []bool{true, false} {
		w := newWorld(t)
		w.mustTake(w.start(), 1)
		w.time.Pass(time.Minute)
		for i := range 3 {
			w.put(slotKey("default", firn.DefaultLayout(), 0, int64(i)), must(register.Encode(Slot{After: 0, Fence: 59486600000, Owner: "o", Host: fmt.Sprint(i), At: noon.Add(time.Hour)})))
		}
		here := w.time.Wall()
		_, err := w.try(func(c *Config) {
			if clocked {
				w.shared(c)
			} else {
				w.timeless(c)
			}
		})
		if errors.Is(err, ErrClock) == clocked || clocked && err != nil {
			t.Errorf("with a clock %t: %v", clocked, err)
		}
		for i := range 3 {
			w.put(slotKey("default", firn.DefaultLayout(), 0, int64(i)), must(register.Encode(Slot{After: 0, Fence: 59486600000, Owner: "o", Host: fmt.Sprint(i), At: w.time.Wall().Add(10 * time.Second)})))
		}
		if _, err := w.try(w.timeless); err != nil {
			t.Errorf("with a clock %t, others a tolerance ahead: %v", clocked, err)
		}
		if e := (*ClockError)(nil); errors.As(err, &e) && (!e.Here.Equal(here) || !e.There.Equal(noon.Add(time.Hour)) || !strings.Contains(e.Whose, "default")) {
			t.Errorf("%+v", e)
		}
	}
}

// No two claims of a worker in one process have the same start, whatever became of them: the
// start identifies a claim.
func TestNoTwoClaimsOfAWorkerHaveTheSameStart(t *testing.T) {
	s, ask := newWorld(t).slots(t)
	slot := Slot{Fence: 5, revision: 1}
	for want := firn.Tick(5); want < 8; want++ {
		if h, err := s.begin(slot, ask(), -1); err != nil || h.after != want {
			t.Errorf("%+v, %v, want one after %d", h, err, want)
		}
	}
	if h, err := s.begin(Slot{Worker: 1, Fence: 0, revision: 1}, ask(), -1); err != nil || h.after != 0 {
		t.Errorf("the first claim of another worker: %+v, %v", h, err)
	}
	s.hold(holding{after: 50, fence: 60}) // it began later than it was claimed, as in a strict pool
	if h, err := s.begin(slot, ask(), -1); err != nil || h.after != 51 {
		t.Errorf("%+v, %v", h, err)
	}
	s.hold(holding{after: 20, fence: 60})
	if h, err := s.begin(slot, ask(), -1); err != nil || h.after != 52 {
		t.Errorf("%+v, %v", h, err)
	}
	if h := s.held[0]; h.after != 50 { // the program uses the ticks of the later of two takeovers of its loan
		t.Errorf("an earlier claim that is confirmed later replaces the one held: %+v", h)
	}
	s.hold(holding{after: 50, fence: 70}) // two takeovers of a loan may have one start: the program has the later fence
	if h := s.held[0]; h.fence != 70 {
		t.Errorf("a takeover with the same start as the one held is not recorded: %+v", h)
	}
	s.unbegin(holding{after: 51}) // it was never written, but a later claim has begun
	if h, err := s.begin(slot, ask(), -1); err != nil || h.after != 53 {
		t.Errorf("%+v, %v", h, err)
	}
	s.unbegin(holding{after: 53})
	if h, err := s.begin(slot, ask(), -1); err != nil || h.after != 53 {
		t.Errorf("after one that was never written: %+v, %v", h, err)
	}
	end := s.cfg.Generator.Layout.MaxTick()
	if h, err := s.begin(Slot{Fence: end, revision: 2}, Ask{Now: end, From: end, Window: 1}, -1); !errors.Is(err, firn.ErrTimeExhausted) {
		t.Fatalf("%+v, %v", h, err)
	}
	if h, err := s.begin(slot, ask(), -1); err != nil || h.after != 54 {
		t.Errorf("after one that was refused: %+v, %v", h, err)
	}
}

// A look that cannot read is over: newcomers wait for so many calls of a look, and no more.
func TestALookThatCannotReadEnds(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	fails := 0
	s, ask := w.slots(t, func(c *Config) {
		c.Store = &scripted{Store: w.mem, call: func(what, key string) error {
			if what == "get" && key == theSlot && fails > 0 {
				fails--
				return errAway
			}
			return nil
		}}
	})
	grant := must(s.Acquire(ctx, ask))
	fails = 1
	if err := s.Look(ctx, grant); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "lease: look at worker 0") {
		t.Errorf("%v", err)
	}
	if err := s.Look(ctx, grant); err != nil {
		t.Errorf("the next: %v", err)
	}
	fails = 1
	if _, err := s.Renew(ctx, grant, ask()); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "lease: look at worker 0") {
		t.Errorf("a renewal: %v", err)
	}
}

// A strict claim whose wait, or clock, comes to nothing is undone.
func TestAStrictClaimWhoseWaitFailsIsUndone(t *testing.T) {
	for name, c := range map[string]struct {
		asleep func(w *world, cancel func(), fails *string)
		want   error
		says   string
	}{
		"called off":       {func(_ *world, cancel func(), _ *string) { cancel() }, context.Canceled, "wait 1m22s, as the pool is strict"},
		"by a wrong clock": {func(w *world, _ func(), _ *string) { w.time.Set(w.time.Wall().Add(time.Hour)) }, ErrClock, "lease: claim worker 0"},
		"without a clock":  {func(_ *world, _ func(), fails *string) { *fails = "clock" }, errAway, "lease: claim worker 0"},
		"without its slot": {func(_ *world, _ func(), fails *string) { *fails = "get" }, errAway, "lease: claim worker 0"},
	} {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(context.Background())
		wall, fails := w.time.Wall(), ""
		on := &sleeper{machine: w.time, wake: func() {}}
		st := &scripted{Store: w.mem, call: func(what, _ string) error {
			if what == fails {
				fails = "" // once
				return errAway
			}
			return nil
		}}
		s, ask := w.slots(t, func(c *Config) {
			c.Store, c.Tolerance, c.Strict, c.Generator.Time = timed{st, func() time.Time { return wall.Add(w.time.Monotonic()) }}, 2*time.Second, 80*time.Second, on
		})
		wall = wall.Add(-w.time.Monotonic())
		first := must(s.Acquire(ctx, ask))
		if err := s.Release(ctx, first, first.After); err != nil {
			t.Fatal(err)
		}
		w.time.Pass(5 * time.Minute)
		on.wake = func() { c.asleep(w, cancel, &fails) }
		before := must(Inspect(context.Background(), w.mem, "default")).Slots[0]
		_, err := s.Acquire(ctx, ask)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if after := must(Inspect(context.Background(), w.mem, "default")).Slots[0]; !after.Free || after.Fence != before.Fence || after.revision == before.revision {
			t.Errorf("%s: the slot is left as %+v, and was %+v", name, after, before)
		}
		cancel()
	}
}

func TestAStrictClaimThatCannotBeUndoneSaysHowLongTheWorkerStaysUnused(t *testing.T) {
	w := newWorld(t)
	on := &sleeper{machine: w.time, wake: func() {
		_, err := w.mem.Get(context.Background(), theSlot)
		w.store.SetDown(err == nil) // once it is claimed
	}}
	s, ask := w.slots(t, w.shared, func(c *Config) { c.Tolerance, c.Strict, c.Generator.Time = 2*time.Second, 80*time.Second, on })
	_, err := s.Acquire(context.Background(), ask)
	until := s.cfg.Generator.Layout.Time(w.fence()).Format(time.RFC3339Nano)
	if want := "leave worker 0 as it was (it stays unused until " + until + "): "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// A claim in a strict pool may begin only when its wait is over, however long the machine slept: the
// grant is what its last write says.
func TestAStrictClaimAfterALongSleepIsGrantedFromThePresent(t *testing.T) {
	for _, lost := range []bool{false, true} { // lost: the answer of that write
		w := newWorld(t)
		writes := 0
		on := &sleeper{machine: w.time, wake: func() {
			if writes < 2 {
				w.time.Pass(5 * time.Minute)
			}
		}}
		s, ask := w.slots(t, w.shared, func(c *Config) { c.Tolerance, c.Strict, c.Generator.Time = 2*time.Second, 80*time.Second, on })
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Op == storetest.OpCompareAndSwap && c.Key == theSlot {
				if writes++; lost && writes == 2 {
					return storetest.FailApplied
				}
			}
			return storetest.Pass
		}
		grant := must(s.Acquire(context.Background(), ask))
		slot := must(Inspect(context.Background(), w.mem, "default")).Slots[0]
		now, slack, want := ask().Now, firn.Tick(0), 2
		if lost { // it was written again, a few milliseconds later, without another wait
			slack, want = 10, 3
		}
		if late := now - 1 - grant.After; late < 0 || late > slack || grant.After != slot.After || grant.Through != slot.Fence || writes != want {
			t.Errorf("at %d it is granted %+v after %d writes, and the store has %+v", now, grant, writes, slot)
		}
	}
}

// timed is a store with a clock of its own.
type timed struct {
	*scripted
	now func() time.Time
}

func (s timed) Traits() store.Traits { return store.Traits{Clock: s} }

func (s timed) Now(context.Context) (time.Time, error) { return s.now(), s.call("clock", "") }

// sleeper has something happen at the end of each sleep.
type sleeper struct {
	*machine
	wake func()
}

func (s *sleeper) Sleep(ctx context.Context, d time.Duration) error {
	if err := s.machine.Sleep(ctx, d); err != nil {
		return err
	}
	s.wake()
	return context.Cause(ctx)
}

// What another has written meanwhile in the place of a vanished slot is not Firn's to replace.
func TestAVanishedSlotIsNotWrittenOverForeignContent(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	meanwhile := func() {}
	s, ask := w.slots(t, func(c *Config) {
		c.Store = &scripted{Store: w.mem, call: func(what, key string) error {
			if what == "write" && key == theSlot {
				meanwhile()
			}
			return nil
		}}
	})
	grant := must(s.Acquire(ctx, ask))
	w.mem.Delete(theSlot)
	meanwhile = func() {
		meanwhile = func() {}
		w.put(theSlot, []byte("{}"))
	}
	if err := s.Look(ctx, grant); !errors.Is(err, store.ErrForeign) {
		t.Errorf("%v", err)
	}
	if got := string(must(w.mem.Get(ctx, theSlot)).Value); got != "{}" {
		t.Errorf("it was replaced by %s", got)
	}
}

// hasty is a store with a clock that wants all calls to be urgent.
type hasty struct {
	remote
	t *testing.T
}

func (h hasty) Traits() store.Traits { return store.Traits{Clock: h} }

func (h hasty) see(ctx context.Context, what string) {
	h.t.Helper()
	if !store.IsUrgent(ctx) {
		h.t.Errorf("%s waits behind calls that are not urgent", what)
	}
}

func (h hasty) Get(ctx context.Context, key string) (store.Entry, error) {
	h.see(ctx, "a read of "+key)
	return h.remote.Get(ctx, key)
}

func (h hasty) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	h.see(ctx, "a list of "+prefix)
	return h.remote.List(ctx, prefix)
}

func (h hasty) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	h.see(ctx, "a write of "+key)
	return h.remote.CompareAndSwap(ctx, key, old, value)
}

func (h hasty) Now(ctx context.Context) (time.Time, error) {
	h.see(ctx, "the clock")
	return h.remote.Now(ctx)
}

// Newcomers wait for no more than the grace, so looks must not queue behind ranges and sequences.
func TestAllCallsOfSlotsAreUrgent(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	s, ask := w.slots(t, func(c *Config) { c.Store = hasty{remote{c.Store, w.time.Wall, nil}, t} })
	grant := must(s.Acquire(ctx, ask))
	w.time.Pass(30 * time.Second)
	grant = must(s.Renew(ctx, grant, ask()))
	w.mem.Delete(theSlot) // so that the look writes it, and the pool
	must(0, s.Look(ctx, grant))
	must(0, s.Release(ctx, grant, grant.After))
}

func TestARenewalThatIsNotConfirmedMovesNoFence(t *testing.T) {
	w := newWorld(t)
	confirms := true
	s, ask := w.slots(t, func(c *Config) {
		c.Store = &scripted{Store: w.mem, call: func(what, _ string) error {
			if what == "write" && !confirms {
				return store.ErrUnavailable // what stores say of a write that is not confirmed
			}
			return nil
		}}
	})
	granted := must(s.Acquire(background, ask))
	confirms = false
	w.time.Pass(time.Second)
	if renewed, err := s.Renew(background, granted, ask()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a renewal up to %d, %v", renewed.Through, err)
	}
	if held := must(s.holding(granted)); held.fence != granted.Through {
		t.Errorf("the fence moved from %d to %d", granted.Through, held.fence)
	}
	confirms = true
	if renewed := must(s.Renew(background, granted, ask())); renewed.Through <= granted.Through {
		t.Errorf("a confirmed renewal moved the fence from %d to %d", granted.Through, renewed.Through)
	}
}

// A look that read before a renewal, and ends after it, does not take the fence back.
func TestALookBesideARenewalKeepsTheFurtherFence(t *testing.T) {
	w := newWorld(t)
	hooks := &hooked{Store: w.mem}
	s, ask := w.slots(t, func(c *Config) { c.Store = hooks })
	grant := must(s.Acquire(t.Context(), ask))
	w.time.Pass(40 * time.Second)
	var renewed firn.Grant
	hooks.afterRead = func() { renewed = must(s.Renew(t.Context(), grant, ask())) }
	if err := s.Look(t.Context(), grant); err != nil || renewed.Through <= grant.Through {
		t.Fatalf("%v, renewed up to %d", err, renewed.Through)
	}
	if h := must(s.holding(grant)); h.fence != renewed.Through {
		t.Errorf("it holds up to %d, confirmed are ticks up to %d", h.fence, renewed.Through)
	}
}

// The restored slot comes through only after newcomers have stopped waiting: another may have been granted the worker, and
// be forgotten too.
func TestAForgottenSlotThatIsWrittenTooLateIsAnOverlap(t *testing.T) {
	for late, want := range map[time.Duration]error{time.Second: nil, 5 * time.Second: ErrOverlap} {
		w := newWorld(t)
		slow := &slowWrites{remote{w.store, w.time.Wall, nil}, w.time, 0}
		s, ask := w.slots(t, func(c *Config) { c.Store = slow })
		grant := must(s.Acquire(t.Context(), ask))
		w.time.Pass(3 * time.Second)
		w.forgets("0")
		slow.takes = late
		if err := s.Look(t.Context(), grant); !errors.Is(err, want) {
			t.Errorf("writes that take %v: %v", late, err)
		}
	}
}

// The first try of the write loses a race, and finds less than was confirmed again: one loss is counted, and logged once.
func TestALossOfTheStoreIsAnnouncedOnce(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	hooks := &hooked{Store: w.mem}
	s, ask := w.slots(t, func(c *Config) { c.Store, c.Log = hooks, logTo(&log) })
	grant := must(s.Acquire(t.Context(), ask))
	older := must(register.Encode(Slot{Owner: s.rules.token, After: grant.After, Fence: grant.Through - 1, Write: 1}))
	w.forgets("0")
	wrote := false
	hooks.beforeWrite = func() { wrote = true; w.put(theSlot, older) }
	if err := s.Look(t.Context(), grant); err != nil || !wrote {
		t.Fatalf("%v, a race: %t", err, wrote)
	}
	if n := strings.Count(log.String(), "the store has less"); n != 1 || s.setBacks.Load() != 1 {
		t.Errorf("logged %d times, counted as %d:\n%s", n, s.setBacks.Load(), log.String())
	}
}

// A pool that this process did not make strict may have been made so since.
func TestAnAlarmKeepsALongerStrictWait(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	must(s.Acquire(t.Context(), ask))
	record := must(Inspect(t.Context(), w.mem, "default"))
	record.Strict = Duration(time.Hour)
	w.put("firn/default/pool", must(register.Encode(record)))
	must(0, s.alarm(t.Context()))
	if got := must(Inspect(t.Context(), w.mem, "default")); got.Strict != record.Strict || got.Open {
		t.Errorf("%+v", got)
	}
}

// Newcomers cannot be held off where somebody else's text is in the place of the pool's record.
func TestASlotIsNotWrittenBesideAForeignPool(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(t.Context(), ask))
	w.forgets("0")
	w.put("firn/default/pool", []byte("mine"))
	if err := s.Look(t.Context(), grant); !errors.Is(err, store.ErrForeign) {
		t.Errorf("%v", err)
	}
	if _, err := w.mem.Get(t.Context(), theSlot); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the slot was written: %v", err)
	}
}

// The claim may have been applied, and may be so later: no other claim of this process may look like it.
func TestAClaimWithoutAnAnswerKeepsItsStart(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	tried := false
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch {
		case tried:
			return storetest.FailUnapplied
		case c.Op == storetest.OpCompareAndSwap && strings.Contains(c.Key, "/slot/"):
			tried = true
			return storetest.FailApplied
		}
		return storetest.Pass
	}
	if _, err := s.Acquire(t.Context(), ask); err == nil || !tried {
		t.Fatal(err)
	}
	var slot Slot
	must(0, json.Unmarshal(must(w.mem.Get(t.Context(), theSlot)).Value, &slot))
	if s.starts[0] != slot.After {
		t.Errorf("the claim in the store begins after %d, and the process remembers %d", slot.After, s.starts[0])
	}
	// Another has written the slot by the time it is read again. That is a conflict, but the claim may have been there before.
	w = newWorld(t)
	s, ask = w.slots(t)
	slot = Slot{}
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch {
		case c.Key != theSlot || slot.Owner == "another":
		case c.Op == storetest.OpCompareAndSwap:
			return storetest.FailApplied
		case c.Op == storetest.OpGet:
			must(0, json.Unmarshal(must(w.mem.Get(t.Context(), theSlot)).Value, &slot))
			tried := slot.After
			w.put(theSlot, must(register.Encode(Slot{Fence: 5, Owner: "another", Free: true})))
			slot = Slot{After: tried, Owner: "another"}
		}
		return storetest.Pass
	}
	if grant, err := s.Acquire(t.Context(), ask); err != nil || slot.Owner == "" || s.starts[0] <= slot.After {
		t.Errorf("%v; after a claim from %d on it was granted %+v", err, slot.After, grant)
	}
	// Another was quicker, and the slot cannot be read again: the claim is still to be undone, which must not undo a later one.
	w = newWorld(t)
	s, ask = w.slots(t)
	raced, start := false, ask().Now-1
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch {
		case raced:
			return storetest.FailUnapplied
		case c.Op == storetest.OpCompareAndSwap && c.Key == theSlot:
			raced = true
			w.put(theSlot, must(register.Encode(Slot{Fence: 5, Owner: "another", Free: true})))
		}
		return storetest.Pass
	}
	if _, err := s.Acquire(t.Context(), ask); err == nil || s.starts[0] != start {
		t.Errorf("%v; the claim began after %d, and the process remembers %d", err, start, s.starts[0])
	}
}

// A claim whose answer was lost is there: it is written again, and no other worker is taken.
func TestAClaimWhoseAnswerWasLostIsKept(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t) // of a pool with one worker
	lost := false
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && c.Key == theSlot && !lost {
			lost = true
			return storetest.FailApplied
		}
		return storetest.Pass
	}
	if grant, err := s.Acquire(t.Context(), ask); err != nil || !lost || grant.Through != w.fence() {
		t.Errorf("%+v, %v", grant, err)
	}
}

// A claim that was refused is not in the store: nothing is to be undone, and the error does not say that a worker stays unused.
func TestAClaimThatWasRefusedIsNotUndone(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	reads, refused := 0, false
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		switch {
		case c.Key != theSlot:
		case c.Op == storetest.OpCompareAndSwap:
			refused = true
			return storetest.Refuse
		case refused:
			reads++
			return storetest.FailUnapplied
		}
		return storetest.Pass
	}
	if _, err := s.Acquire(t.Context(), ask); !errors.Is(err, store.ErrRefused) || strings.Contains(err.Error(), "stays unused") || reads != 0 {
		t.Errorf("%v after %d reads", err, reads)
	}
}

func TestTheWaitOfAStrictClaimIsAnnounced(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	s, ask := w.slots(t, w.strictly, func(c *Config) { c.Log = logTo(&log) })
	must(s.Acquire(t.Context(), ask))
	if !strings.Contains(log.String(), "waiting for holders that the store may have forgotten") || !strings.Contains(log.String(), "for=1m25s") {
		t.Error(log.String())
	}
}

// A slot is found forgotten, and before it is written another has it, from the fence on. That no other was granted these ticks
// is not certain: the store has forgotten something.
func TestALookThatFoundItsSlotForgottenDoesNotCountIfTheWorkerIsLostThen(t *testing.T) {
	w := newWorld(t)
	hooks := &hooked{Store: w.mem}
	s, ask := w.slots(t, func(c *Config) { c.Store = hooks })
	grant := must(s.Acquire(t.Context(), ask))
	w.forgets("0")
	hooks.beforeWrite = func() {
		w.put(theSlot, must(register.Encode(Slot{Owner: "another", After: grant.Through, Fence: grant.Through + 10, Write: 1})))
	}
	if err := s.Look(t.Context(), grant); !errors.Is(err, ErrLost) || errors.Is(err, ErrOverlap) {
		t.Fatal(err)
	}
	if !s.held[0].forgot {
		t.Error("the look counts")
	}
}

// An operator guaranteed that an earlier holder is gone, and a later one finds that record again: the store was set back.
func TestACopyFromBeforeAClaimOfAWorkerTakenBackIsASetBack(t *testing.T) {
	w := newWorld(t)
	gone, ask := w.slots(t)
	must(gone.Acquire(t.Context(), ask))
	must(Reclaim(t.Context(), w.mem, "default", 0, 0, w.time.Wall().Add(time.Second)))
	copied := w.mem.Snapshot()
	w.time.Pass(2 * time.Second)
	var log strings.Builder
	s, ask := w.slots(t, func(c *Config) { c.Log = logTo(&log) })
	grant := must(s.Acquire(t.Context(), ask))
	w.mem.Restore(copied)
	if err := s.Look(t.Context(), grant); err != nil {
		t.Error(err)
	}
	if n := s.setBacks.Load(); n != 1 || !strings.Contains(log.String(), "the store has less than it had confirmed") {
		t.Errorf("%d set backs: %s", n, log.String())
	}
}

// The release of a worker that is lost calls no store: its number may be that of another grant.
func TestAReleaseOfALostWorkerCallsNoStore(t *testing.T) {
	w := newWorld(t)
	s, ask := w.slots(t)
	grant := must(s.Acquire(t.Context(), ask))
	before := w.store.Counts()
	grant.After--
	if err := s.Release(t.Context(), grant, grant.After); err != nil || w.store.Counts() != before {
		t.Errorf("%v, %+v after %+v", err, w.store.Counts(), before)
	}
}

// A release finds that the store has forgotten the slot, and newcomers cannot be made to wait: the next release tries that again.
// Another process may have claimed the worker by then. Its claim is not one that the first release allowed.
func TestAReleaseThatCannotHoldNewcomersOffIsRepeated(t *testing.T) {
	for name, claimedBefore := range map[string]bool{"claimed before the first": true, "claimed between the two": false} {
		w := newWorld(t)
		s, ask := w.slots(t)
		grant := must(s.Acquire(t.Context(), ask))
		last := grant.After + 10
		claim := func() {
			w.put(theSlot, must(register.Encode(Slot{Owner: "another", After: last, Fence: last + 10, Write: 1})))
		}
		if w.forgets("0"); claimedBefore {
			claim()
		}
		w.store.Script = func(c storetest.Call) storetest.Outcome {
			if c.Key == "firn/default/pool" {
				return storetest.Refuse
			}
			return storetest.Pass
		}
		if err := s.Release(t.Context(), grant, last); !errors.Is(err, store.ErrRefused) || w.closed() {
			t.Fatalf("%s: %v, closed: %t", name, err, w.closed())
		}
		w.store.Script = nil
		if !claimedBefore {
			claim()
		}
		if err := s.Release(t.Context(), grant, last); err != nil || !w.closed() {
			t.Errorf("%s: %v, closed: %t", name, err, w.closed())
		}
	}
}

// No two writes of a process have one number. A slot that has vanished gets one above all before: a newcomer takes a smaller
// one, with an earlier fence, for an older copy.
func TestTheNumbersOfWritesGrow(t *testing.T) {
	s, _ := newWorld(t).slots(t)
	var last uint64
	for _, over := range []*Slot{nil, {Write: 100}, {Write: 5}, nil} {
		var slot Slot
		must(0, json.Unmarshal(must(s.encode(move{}, over)), &slot))
		if slot.Write <= last || over != nil && slot.Write <= over.Write {
			t.Errorf("over %+v: number %d after %d", over, slot.Write, last)
		}
		last = slot.Write
	}
}
