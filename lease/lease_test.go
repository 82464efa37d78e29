package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// machine is the time of one machine.
type machine = firntest.Clock

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newMachine() *machine { return firntest.NewClock(noon) }

// world is several processes over one store, on one machine unless said
// otherwise, with every id they make.
type world struct {
	t     *testing.T
	time  *machine
	mem   *memstore.Store
	store *storetest.Faulty
	seed  uint64
	ids   map[firn.ID]string
	ticks map[[2]int64]*Lease // which lease has used a tick of a worker
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, time: newMachine(), mem: memstore.New(nil), ids: map[firn.ID]string{}, ticks: map[[2]int64]*Lease{}}
	w.store = storetest.NewFaulty(w.mem)
	return w
}

func (w *world) config(change ...func(*Config)) Config {
	w.seed++
	random := rand.New(rand.NewPCG(w.seed, 1))
	cfg := Config{
		Store: w.store, Host: "host", PID: 1,
		Generator: firn.Config{Time: w.time, Random: random.Uint64},
		Window:    time.Minute,
	}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// try starts a process whose background work the test drives with turn. It goes on up to its fence without a look, since
// its clock is one for tests: see overdue_test.go.
func (w *world) try(change ...func(*Config)) (*Lease, error) {
	cfg := w.config(change...)
	slots, err := newPoolSource(cfg)
	if err != nil {
		return nil, err
	}
	l, err := start(context.Background(), slots, cfg)
	if err == nil {
		l.cancel = func() {}
		close(l.done)
	}
	return l, err
}

func (w *world) start(change ...func(*Config)) *Lease {
	w.t.Helper()
	l, err := w.try(change...)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// take makes n ids and fails on one that was made before by anyone, or in a tick
// in which another lease has made some of that worker: grants are disjoint.
func (w *world) take(l *Lease, n int) error {
	w.t.Helper()
	ids := make([]firn.ID, n)
	n, err := l.Fill(context.Background(), ids)
	for _, id := range ids[:n] {
		if by, ok := w.ids[id]; ok {
			w.t.Fatalf("id %d was made by %s and by %s", id, by, l.gen)
		}
		w.ids[id] = l.gen.String()
		used := [2]int64{partsOf(l.gen.Layout(), id).Worker, int64(partsOf(l.gen.Layout(), id).Tick)}
		if other := w.ticks[used]; other != nil && other != l {
			w.t.Fatalf("two leases have used tick %d of worker %d", used[1], used[0])
		}
		w.ticks[used] = l
	}
	return err
}

func (w *world) mustTake(l *Lease, n int) {
	w.t.Helper()
	if err := w.take(l, n); err != nil {
		w.t.Fatal(err)
	}
}

// always is an ask that never changes.
func (a Ask) always() Ask { return a }

func small(c *Config) { c.Generator.Layout = layout("41/0/1/12") }

func layout(text string) firn.Layout {
	l, err := firn.ParseLayout(text)
	if err != nil {
		panic(err)
	}
	return l
}

func TestEveryProcessHoldsAnotherWorker(t *testing.T) {
	w := newWorld(t)
	workers := map[int64]bool{}
	eight := func(c *Config) { c.Generator.Layout = layout("41/0/8/14") }
	for range 256 {
		l := w.start(eight)
		if workers[l.State().Worker] {
			t.Fatalf("worker %d twice", l.State().Worker)
		}
		workers[l.State().Worker] = true
		w.mustTake(l, 3)
	}
	_, err := w.try(eight)
	var full *FullError
	if !errors.As(err, &full) || !errors.Is(err, ErrFull) || full.Workers != 256 || full.Next.Before(w.time.Wall()) {
		t.Errorf("a 257th process: %v", err)
	}
}

func TestNeverUsedWorkersAreChosenAtRandom(t *testing.T) {
	first := map[int64]bool{}
	for seed := range uint64(20) {
		w := newWorld(t)
		w.seed = seed * 100
		first[w.start().State().Worker] = true
	}
	if len(first) < 15 {
		t.Errorf("20 first processes of 20 pools took only %d different workers", len(first))
	}
}

func TestTheSlotIdleLongestIsTakenFirst(t *testing.T) {
	w := newWorld(t)
	tiny := func(c *Config) { w.shared(c); c.Generator.Layout = layout("41/0/5/12") }
	var all []*Lease
	for range 32 {
		all = append(all, w.start(tiny))
	}
	order := map[int64]int{}
	for i, l := range all {
		order[l.State().Worker] = i
		w.mustTake(l, 1)
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		w.time.Pass(time.Second)
	}
	for i := range 32 {
		got := order[w.start(tiny).State().Worker]
		if got >= i+fewOldest {
			t.Errorf("taker %d got the slot left as number %d, not one of the %d idle longest", i, got, fewOldest)
		}
	}
}

func TestACloseThatFailedIsRepeated(t *testing.T) {
	w := newWorld(t)
	one := func(c *Config) { c.Generator.Layout = layout("41/0/0/12") }
	l := w.start(one)
	w.mustTake(l, 1)
	w.store.SetDown(true)
	if err := l.Close(context.Background()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the worker could not be released: %v", err)
	}
	w.store.SetDown(false)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Errorf("the third time: %v", err)
	}
	w.time.Pass(15 * time.Millisecond) // the lead that ids were ahead of the clock, and much less than the fence
	w.mustTake(w.start(one), 1)
}

func TestAReleasedWorkerIsFreeAtOnceAndItsIDsStayUnique(t *testing.T) {
	w := newWorld(t)
	one := func(c *Config) { c.Generator.Layout = layout("41/0/0/12") }
	for range 50 {
		l := w.start(one)
		w.mustTake(l, 5000)
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("closing twice: %v", err)
		}
		if _, err := l.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("an id after Close: %v", err)
		}
		w.time.Pass(15 * time.Millisecond) // the lead that ids were ahead of the clock
	}
}

func TestACrashedHoldersWorkerComesBackAfterItsFence(t *testing.T) {
	w := newWorld(t)
	one := func(c *Config) { c.Generator.Layout = layout("41/0/0/12") }
	crashed := w.start(one)
	w.mustTake(crashed, 10)
	if _, err := w.try(one); !errors.Is(err, ErrFull) {
		t.Fatalf("before the fence: %v", err)
	}
	w.time.Pass(time.Minute + 20*time.Millisecond) // the window and the lead
	heir := w.start(one)
	w.mustTake(heir, 10_000)
	if err := w.take(crashed, 1); !errors.Is(err, firn.ErrFence) {
		t.Errorf("the crashed one, come back: %v, want its fence", err)
	}
}

func TestRenewalKeepsAHolderGoingWithOneWriteAHalfWindow(t *testing.T) {
	w := newWorld(t)
	l := w.start()
	before := w.store.Counts() // Inspect below reads past the counting store
	for range 400 {            // 20 minutes in looks of 3 seconds
		w.time.Pass(3 * time.Second)
		l.turn(context.Background())
		w.mustTake(l, 2)
		p, err := Inspect(context.Background(), w.mem, "default")
		if err != nil || p.Slots[0].Fence != l.State().Fence {
			t.Fatalf("the generator's fence is %d, the store's %d, %v", l.State().Fence, p.Slots[0].Fence, err)
		}
	}
	after := w.store.Counts()
	writes, reads := after.CompareAndSwap-before.CompareAndSwap, after.Get-before.Get
	if writes < 34 || writes > 41 || reads > 402 {
		t.Errorf("20 minutes with a window of one: %d writes and %d reads, want one write in 30 to 33 seconds and one read a look", writes, reads)
	}
	if s := l.State(); s.Renewals != int64(writes) || s.Left <= 20*time.Second || s.Err != nil {
		t.Errorf("state %+v", s)
	}
}

func TestAnUnavailableStoreIsAnErrorAtOnce(t *testing.T) {
	for _, key := range []string{"firn/default/pool", "firn/default/slot"} {
		w := newWorld(t)
		locked := &lockedStore{Faulty: w.store, key: key}
		_, err := w.try(func(c *Config) { c.Store = locked })
		if !errors.Is(err, store.ErrUnavailable) || locked.tries > 5 {
			t.Errorf("%s: %v after %d tries; each may have waited for seconds", key, err, locked.tries)
		}
	}
}

// lockedStore can be read and not written, as a database that another holds locked.
type lockedStore struct {
	*storetest.Faulty
	key   string
	tries int
}

func (l *lockedStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if strings.HasPrefix(key, l.key) {
		l.tries++
		return store.Entry{}, store.ErrUnavailable
	}
	return l.Faulty.CompareAndSwap(ctx, key, old, value)
}

func TestAnOutageIsSurvivedUpToTheFenceAndEndsByItself(t *testing.T) {
	w := newWorld(t)
	l := w.start()
	w.store.SetDown(true)
	start := w.time.Wall()
	fence := l.State().Until
	for w.time.Wall().Before(fence.Add(-3 * time.Second)) {
		w.time.Pass(time.Second)
		l.turn(context.Background())
		w.mustTake(l, 1)
	}
	if got := w.time.Wall().Sub(start); got < 50*time.Second {
		t.Errorf("survived %v of outage with a window of a minute", got)
	}
	w.time.Pass(5 * time.Second)
	l.turn(context.Background())
	if err := w.take(l, 1); !errors.Is(err, firn.ErrFence) {
		t.Errorf("after the fence: %v", err)
	} else if why := l.State().Err; why == nil || !strings.HasSuffix(err.Error(), "; the latest look at its slot failed: "+why.Error()) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the error must have the text of %v, and not match it: %v", why, err)
	}
	if s := l.State(); s.Errors == 0 || s.Err == nil || s.Left > 0 {
		t.Errorf("state in the outage: %+v", s)
	}
	w.store.SetDown(false)
	l.turn(context.Background())
	w.mustTake(l, 100)
}

func TestAClaimThatCameLateIsRenewedBeforeItIsUsed(t *testing.T) {
	w := newWorld(t)
	slow := map[int]bool{2: true, 3: true} // the claim and the first renewal; 1 is the pool's record
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && slow[c.N] {
			w.time.Pass(90 * time.Second) // longer than the window
		}
		return storetest.Pass
	}
	l := w.start()
	w.mustTake(l, 10)
	if s := l.State(); s.Left < 30*time.Second {
		t.Errorf("%v left after joining", s.Left)
	}
}

func TestAStolenSlotIsLeftForAnotherWithoutCallersNoticing(t *testing.T) {
	w := newWorld(t)
	l := w.start()
	worker := l.State().Worker
	w.mustTake(l, 100)
	// A thief with a clock far ahead, that nothing holds back.
	thief := w.start(func(c *Config) {
		fast := newMachine()
		fast.Set(noon.Add(2 * time.Minute))
		c.Generator.Time = fast
		c.Pinned = &worker
	})
	w.mustTake(thief, 100)
	w.mustTake(l, 100) // still within its own interval
	l.turn(context.Background())
	w.mustTake(l, 100)
	if s := l.State(); s.Worker == worker || s.Losses != 1 {
		t.Errorf("after the theft: %+v, want another worker than %d", s, worker)
	}
	w.mustTake(thief, 100)
	w.time.Pass(3 * time.Second)
	l.turn(context.Background()) // releases a slot that is not its own any more
	if s := l.State(); s.Errors != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAWipedStoreIsReassertedAtTheNextLook(t *testing.T) {
	w := newWorld(t)
	shared := func(c *Config) { small(c); w.shared(c) }
	a := w.start(shared)
	b := w.start(shared)
	w.mustTake(a, 10)
	w.mustTake(b, 10)
	w.mem.Restore(nil)
	a.turn(context.Background())
	w.mustTake(a, 10)
	// A newcomer finds the pool new, and waits; b comes back meanwhile.
	cfg := w.config(shared)
	cfg.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { b.turn(context.Background()) }}
	slots, err := newPoolSource(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := start(context.Background(), slots, cfg); !errors.Is(err, ErrFull) {
		t.Errorf("a newcomer after the wipe: %v, want a full pool: both holders are still there", err)
	}
	p, err := Inspect(context.Background(), w.mem, "default")
	if err != nil || len(p.Slots) != 2 || !p.Open {
		t.Errorf("the pool after the wipe: %+v, %v", p, err)
	}
	w.mustTake(b, 10)
}

// interrupted does something in the middle of one long sleep.
type interrupted struct {
	*machine
	at time.Duration
	do func()
}

func (i *interrupted) Sleep(ctx context.Context, d time.Duration) error {
	if d >= i.at && i.do != nil {
		do := i.do
		i.do = nil
		do()
	}
	return i.machine.Sleep(ctx, d)
}

func TestAStrictClaimOutwaitsAHolderThatTheStoreHasForgotten(t *testing.T) {
	w := newWorld(t)
	strict := func(c *Config) {
		c.Generator.Layout = layout("41/0/0/12")
		w.shared(c)
		c.Window, c.Tolerance = time.Minute, 2*time.Second
		c.Strict = 75 * time.Second
	}
	paused := w.start(strict) // it never looks again
	w.mustTake(paused, 10)
	fence := paused.State().Until
	w.mem.Restore(nil)
	begun := w.time.Wall()
	other := w.start(strict)
	if waited := w.time.Wall().Sub(begun); waited < 75*time.Second || w.time.Wall().Before(fence) {
		t.Errorf("it waited %v, until %v; the other's fence is %v", waited, w.time.Wall(), fence)
	}
	for range 60 {
		w.time.Pass(time.Second)
		w.mustTake(other, 50)
		if err := w.take(paused, 50); err != nil && !errors.Is(err, firn.ErrFence) {
			t.Fatal(err)
		}
	}
	if ahead := other.State().Until.Sub(w.time.Wall()); ahead > time.Minute+time.Second {
		t.Errorf("its ids run ahead: the fence is %v off", ahead)
	}
}

func TestAStrictPoolAdmitsOnlyStrictProcesses(t *testing.T) {
	w := newWorld(t)
	strict := func(d time.Duration) func(*Config) {
		return func(c *Config) {
			w.shared(c)
			c.Window, c.Tolerance, c.Strict = time.Minute, 2*time.Second, d
		}
	}
	w.mustTake(w.start(func(c *Config) { c.Tolerance = 2 * time.Second }), 10)
	var live *PoolError
	if _, err := w.try(strict(80 * time.Second)); !errors.As(err, &live) || !strings.Contains(err.Error(), "1 holders without a strict wait") {
		t.Errorf("beside a holder that is not strict: %v", err)
	}
	w.time.Pass(2 * time.Minute)
	w.mustTake(w.start(strict(80*time.Second)), 10) // turns it on
	for _, d := range []time.Duration{0, 90 * time.Second} {
		var other *PoolError
		if _, err := w.try(strict(d)); !errors.As(err, &other) || !strings.Contains(err.Error(), "strict wait 1m20s, not") {
			t.Errorf("strict wait %v: %v", d, err)
		}
	}
	w.mustTake(w.start(strict(80*time.Second)), 10)
	for _, change := range []func(*Config){
		strict(time.Minute), // no longer than the window
		strict(-1),
		func(c *Config) { strict(80 * time.Second)(c); c.Generator.Clock = firn.ClockVirtual },
	} {
		if _, err := w.try(change); !errors.Is(err, firn.ErrRange) && !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("an impossible strict wait: %v", err)
		}
	}
}

func TestARestoredSnapshotDoesNotLoseAHolder(t *testing.T) {
	w := newWorld(t)
	one := func(c *Config) { c.Generator.Layout = layout("41/0/0/12") }
	l := w.start(one)
	old := w.mem.Snapshot()
	for range 15 {
		w.time.Pass(3 * time.Second)
		l.turn(context.Background())
		w.mustTake(l, 10)
	}
	if l.State().Renewals == 0 {
		t.Fatal("no renewal to lose")
	}
	w.mem.Restore(old) // the last renewals are lost
	fence := l.State().Fence
	l.turn(context.Background())
	p, err := Inspect(context.Background(), w.mem, "default")
	if err != nil || p.Slots[0].Fence < fence {
		t.Errorf("after a look the store has the fence %d, which others must not pass before %d, %v", p.Slots[0].Fence, fence, err)
	}
	if n := l.State().SetBacks; n != 1 {
		t.Errorf("the store was set back once, and State says %d times", n)
	}
	w.time.Pass(30 * time.Second)
	l.turn(context.Background())
	w.mustTake(l, 10)
	if _, err := w.try(one); !errors.Is(err, ErrFull) {
		t.Errorf("the restored slot looks free to a newcomer after the holder looked: %v", err)
	}
}

func TestALostAnswerIsReadBack(t *testing.T) {
	for _, outcome := range []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate} {
		for target := 1; target <= 6; target++ {
			t.Run(fmt.Sprintf("outcome %v of write %d", outcome, target), func(t *testing.T) {
				w := newWorld(t)
				four := func(c *Config) { c.Generator.Layout = layout("41/0/2/12") }
				w.store.Script = func(c storetest.Call) storetest.Outcome {
					if c.Op == storetest.OpCompareAndSwap && c.N == target {
						return outcome
					}
					return storetest.Pass
				}
				a := w.start(four)
				b := w.start(four)
				for range 60 {
					w.time.Pass(3 * time.Second)
					a.turn(context.Background())
					b.turn(context.Background())
					w.mustTake(a, 20)
					w.mustTake(b, 20)
				}
				if err := errors.Join(a.Close(context.Background()), b.Close(context.Background())); err != nil {
					t.Error(err)
				}
				w.time.Pass(time.Second)
				c := w.start(four)
				w.mustTake(c, 20)
			})
		}
	}
}

func TestAPoolRemembersItsLayout(t *testing.T) {
	w := newWorld(t)
	w.start()
	_, err := w.try(func(c *Config) { c.Generator.Layout = layout("sonyflake") })
	var other *PoolError
	if !errors.As(err, &other) || !errors.Is(err, ErrPool) || !strings.Contains(err.Error(), "41/0/10/12") || !strings.Contains(err.Error(), "39/0/16/8") {
		t.Errorf("%v, want an error that names both layouts", err)
	}
}

func TestAWrongClockIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour, 11 * time.Second} {
		w := newWorld(t)
		timed := &clockStore{Faulty: w.store, now: func() time.Time { return w.time.Wall() }}
		l := w.start(func(c *Config) { c.Store = timed })
		before := w.store.Counts()
		wrong := newMachine()
		wrong.Set(noon.Add(off))
		_, err := w.try(func(c *Config) { c.Store = timed; c.Generator.Time = wrong })
		var clock *ClockError
		if !errors.As(err, &clock) || !errors.Is(err, ErrClock) || !clock.Here.Equal(wrong.Wall()) || !clock.There.Equal(w.time.Wall()) {
			t.Errorf("%v off: %v", off, err)
		}
		if after := w.store.Counts(); after.CompareAndSwap != before.CompareAndSwap {
			t.Errorf("%v off: it wrote", off)
		}
		// A holder whose wall clock goes wrong does not move its fence.
		w.time.Pass(40 * time.Second)
		timed.now = func() time.Time { return w.time.Wall().Add(-off) }
		fence := l.State().Fence
		l.turn(context.Background())
		if s := l.State(); s.Fence != fence || !errors.Is(s.Err, ErrClock) {
			t.Errorf("renewal with a clock %v off: fence %d after %d, %v", off, s.Fence, fence, s.Err)
		}
	}
}

// clockStore is a store with a clock.
type clockStore struct {
	*storetest.Faulty
	now func() time.Time
}

func (c *clockStore) Traits() store.Traits { return store.Traits{Clock: c, Embedded: true} }

func (c *clockStore) Now(context.Context) (time.Time, error) { return c.now(), nil }

func TestWithoutAStoreClockTheOtherHoldersClocksCount(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.start(w.timeless, func(c *Config) { c.Host = fmt.Sprint(i) })
	}
	late := newMachine()
	late.Set(noon.Add(-time.Hour))
	if _, err := w.try(w.timeless, func(c *Config) { c.Generator.Time = late }); !errors.Is(err, ErrClock) || !strings.Contains(err.Error(), "firn workers release") {
		t.Errorf("an hour behind the others: %v", err)
	}
}

// Holders of this host crashed while its clock was ahead. It is right again, and there is no other.
func TestOverAnEmbeddedStoreAClockThatWasAheadKeepsNoNewcomerOut(t *testing.T) {
	w := newWorld(t)
	early := newMachine()
	early.Set(noon.Add(24 * time.Hour))
	for range 3 {
		w.start(func(c *Config) { c.Generator.Time = early })
	}
	w.mustTake(w.start(), 10)
}

func TestAPinnedWorkerWaitsForItsFenceOrGoesAheadOfIt(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		w := newWorld(t)
		pinned := int64(7)
		pin := func(c *Config) { c.Pinned = &pinned; c.PinnedAhead = ahead }
		crashed := w.start(pin)
		w.mustTake(crashed, 10)
		fence := crashed.State().Until
		restarted := w.start(pin)
		w.mustTake(restarted, 10_000)
		if first, err := restarted.Next(t.Context()); err != nil || first.Time(firn.DefaultLayout()).Before(fence) {
			t.Errorf("ahead %v: an id at %v, the fence of its worker was %v, %v", ahead, first.Time(firn.DefaultLayout()), fence, err)
		}
		if restarted.State().Worker != 7 {
			t.Errorf("worker %d", restarted.State().Worker)
		}
		if waited := !w.time.Wall().Before(fence); waited == ahead {
			t.Errorf("ahead %v: waited %v", ahead, waited)
		}
	}
	w := newWorld(t)
	worker := int64(1024)
	if _, err := w.try(func(c *Config) { c.Pinned = &worker }); !errors.Is(err, firn.ErrRange) {
		t.Errorf("pinned to worker 1024: %v", err)
	}
}

func TestThePolicySwitchTakesASlotOfTheStoreAndGivesTheOldOneBack(t *testing.T) {
	w := newWorld(t)
	l := w.start(func(c *Config) {
		c.Generator.Clock = firn.ClockWall
		c.Generator.Rollback = firn.Rollback{firn.SwitchWorker()}
	})
	first := l.State().Worker
	for range 10 {
		w.time.Pass(time.Millisecond)
		w.mustTake(l, 100)
	}
	w.time.Step(-5 * time.Second)
	w.mustTake(l, 100)
	s := l.State()
	if s.Worker == first || s.Switches != 1 {
		t.Fatalf("%+v after worker %d", s, first)
	}
	w.time.Pass(3 * time.Second)
	l.turn(context.Background())
	p, err := Inspect(context.Background(), w.mem, "default")
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range p.Slots {
		if slot.Free != (slot.Worker == first) {
			t.Errorf("slot of worker %d: free %v", slot.Worker, slot.Free)
		}
	}
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestForeignContentIsRefusedWithItsKey(t *testing.T) {
	for _, key := range []string{"firn/default/pool", "firn/default/slot/0/0007"} {
		w := newWorld(t)
		if key != "firn/default/pool" {
			w.start()
		}
		w.mem.Delete(key)
		if _, err := w.mem.CompareAndSwap(context.Background(), key, 0, []byte("not ours")); err != nil {
			t.Fatal(err)
		}
		_, err := w.try()
		if !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestASlotWithoutAFenceOrAnOwnerOrWithAnImpossibleOneIsForeign(t *testing.T) {
	ctx := context.Background()
	const key = "firn/default/slot/0/0007"
	worker := int64(7)
	for _, value := range []string{
		`{}`, `null`, `{"fence":null,"owner":"x"}`, `{"fence":"5"}`, `{"owner":"x"}`, `{"fence":"5","owner":""}`,
		`{"fence":"9223372036854775807","owner":"x"}`, `{"fence":"-2","owner":"x"}`,
	} {
		w := newWorld(t)
		w.start()
		w.mem.Delete(key)
		if _, err := w.mem.CompareAndSwap(ctx, key, 0, []byte(value)); err != nil {
			t.Fatal(err)
		}
		_, joined := w.try()
		_, pinned := w.try(func(c *Config) { c.Pinned = &worker })
		_, inspected := Inspect(ctx, w.store, "default")
		_, taken := Reclaim(ctx, w.store, "default", 0, worker, time.Time{})
		for _, err := range []error{joined, pinned, inspected, taken} {
			if !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v", value, err)
			}
		}
	}
}

func TestAWorkerIsFreeWhenTheTickOfItsFenceHasEnded(t *testing.T) {
	hours := func(c *Config) {
		c.Generator.Layout = layout("41/0/0/22,unit=1h")
		c.Generator.Clock = firn.ClockWall
		c.Window = time.Minute
	}
	w := newWorld(t)
	w.time.Pass(43 * time.Minute)
	w.start(hours)
	_, err := w.try(hours)
	pool := must(Inspect(context.Background(), w.store, "default"))
	held := pool.Slots[0]
	free := pool.Layout.Time(held.Fence + 1)
	var full *FullError
	if !errors.As(err, &full) || !full.Next.Equal(free) || !held.Until.Equal(free) {
		t.Fatalf("%v, and the slot is held until %v; it is free at %v", err, held.Until, free)
	}
	w.time.Pass(free.Sub(w.time.Wall()) - 1)
	if _, err := w.try(hours); !errors.Is(err, ErrFull) {
		t.Errorf("just before: %v", err)
	}
	w.time.Pass(1)
	w.start(hours)
}

func TestTheLastFenceOfALayoutEndsWithIt(t *testing.T) {
	for _, text := range []string{"41/0/10/12", "63/0/0/0", "1/0/62/0,unit=2562047h"} {
		l := layout(text)
		if until := endOf(l.MaxTick(), l); !until.Equal(l.End()) {
			t.Errorf("%s: %v, not %v", text, until, l.End())
		}
		if until := endOf(-1, l); !until.Equal(l.Epoch()) {
			t.Errorf("%s: %v, not %v", text, until, l.Epoch())
		}
	}
}

func TestImpossibleSettingsAreRefusedBeforeTheStoreIsTouched(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*Config){
		"pool":       func(c *Config) { c.Pool = "a/b" },
		"long pool":  func(c *Config) { c.Pool = strings.Repeat("x", 65) },
		"window":     func(c *Config) { c.Window = -time.Second },
		"look":       func(c *Config) { c.Look = -1 },
		"datacenter": func(c *Config) { c.Generator.Datacenter = 1 },
		"rollback":   func(c *Config) { c.Generator.Rollback = firn.Rollback{firn.Refuse()} },
		"store":      func(c *Config) { c.Store = nil },
		"epoch": func(c *Config) {
			l, err := withEpoch(firn.DefaultLayout(), noon.Add(time.Hour))
			if err != nil {
				panic(err)
			}
			c.Generator.Layout = l
		},
	} {
		if _, err := w.try(change); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if err := w.config(change).Check(); (err == nil) != (name == "store") {
			t.Errorf("%s: Check returns %v", name, err)
		}
	}
	if c := w.store.Counts(); c.CompareAndSwap+c.Get+c.List != 0 {
		t.Errorf("the store was touched: %+v", c)
	}
}

func TestALeaseKeepsAndClosesInTheBackground(t *testing.T) {
	mem := memstore.New(nil)
	l, err := Open(context.Background(), Config{Store: mem, Window: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[firn.ID]bool{}
	for l.State().Renewals < 5 { // by the machine's own time
		id, err := l.Next(t.Context())
		if err != nil && !errors.Is(err, firn.ErrFence) { // a slow machine may miss so short a window
			t.Fatal(err)
		}
		if err == nil && seen[id] {
			t.Fatalf("id %d twice", id)
		}
		seen[id] = err == nil
	}
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
	p, err := Inspect(context.Background(), mem, "default")
	if slot := p.slot(0, l.State().Worker); err != nil || !slot.Free {
		t.Errorf("after Close: %+v, %v", p, err)
	}
}

func TestAFixedWorkerRestartedAtOnceMakesNoIDAgain(t *testing.T) {
	w := newWorld(t)
	for range 30 {
		cfg := w.config(func(c *Config) { c.Generator.Layout = layout("41/0/10/6"); c.Generator.Start = firn.StartZero })
		l, err := start(context.Background(), Fixed(5), cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.mustTake(l, 1000)
	}
}

func TestAnOwnSourceOfWorkersIsKept(t *testing.T) {
	l, err := Keep(context.Background(), Fixed(42), Config{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := l.Next(t.Context())
	if err != nil || partsOf(firn.DefaultLayout(), id).Worker != 42 {
		t.Errorf("id %d, %v", id, err)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := Inspect(context.Background(), memstore.New(nil), "default"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("inspect an empty store: %v", err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestAnOperatorTakesASlotBack(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	l := w.start()
	w.mustTake(l, 10)
	worker, fence := l.State().Worker, l.State().Fence
	slot, err := Reclaim(ctx, w.store, "default", 0, worker, time.Time{})
	if err != nil || !slot.Free || slot.Fence != fence || slot.Host != "host" {
		t.Fatalf("%+v, %v", slot, err)
	}
	l.turn(ctx)
	if l.State().Worker == worker || l.State().Losses != 1 {
		t.Errorf("the holder goes on with it: %+v", l.State())
	}
	w.mustTake(l, 10)

	crashed := w.start()
	w.mustTake(crashed, 10)
	worker = crashed.State().Worker
	last := w.time.Wall().Add(time.Second)
	slot, err = Reclaim(ctx, w.store, "default", 0, worker, last)
	if err != nil || slot.Fence != must(l.gen.Layout().Tick(last)) || !slot.Until.Equal(last.Add(time.Millisecond)) {
		t.Fatalf("%+v, %v", slot, err)
	}
	w.time.Pass(2 * time.Second)
	next := w.start(func(c *Config) { c.Pinned = &worker })
	w.mustTake(next, 10)

	for _, test := range []struct {
		pool               string
		datacenter, worker int64
		want               error
	}{
		{"missing", 0, 1, store.ErrNotFound},
		{"default", 1, 1, firn.ErrRange},
		{"default", 0, 1024, firn.ErrRange},
		{"default", 0, -1, firn.ErrRange},
		{"a b", 0, 1, firn.ErrSyntax},
	} {
		if _, err := Reclaim(ctx, w.store, test.pool, test.datacenter, test.worker, time.Time{}); !errors.Is(err, test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestASlotThatVanishedAfterItsFenceIsNotReasserted(t *testing.T) {
	w := newWorld(t)
	one := func(c *Config) { c.Generator.Layout = layout("41/0/0/12") }
	stopped := w.start(one)
	w.mustTake(stopped, 10)
	w.time.Pass(61 * time.Second)
	next := w.start(one) // has it by now, and the store forgets that
	w.mustTake(next, 10)
	w.mem.Restore(nil)
	stopped.turn(context.Background())
	if s := stopped.State(); s.Losses != 1 {
		t.Errorf("it goes on with a worker that was granted to another: %+v", s)
	}
}

// wiping is a store that is wiped just before a claim arrives.
type wiping struct {
	store.Store
	at   string
	wipe func()
}

func (*wiping) Traits() store.Traits { return store.Traits{} }

func (w *wiping) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if strings.HasPrefix(key, w.at) && w.wipe != nil {
		wipe := w.wipe
		w.wipe = nil
		wipe()
	}
	return w.Store.CompareAndSwap(ctx, key, old, value)
}

func TestAClaimInAStoreWipedMeanwhileWaitsForTheOthers(t *testing.T) {
	w := newWorld(t)
	one := func(c *Config) { c.Generator.Layout = layout("41/0/0/12"); w.shared(c) }
	// The pool exists and is empty. Another process is granted its only worker
	// after this one has read that, and then the store is wiped.
	first := w.start(one)
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.mem.Delete("firn/default/slot/0/0")
	var other *Lease
	slow := &wiping{Store: w.store, at: "firn/default/slot/", wipe: func() {
		other = w.start(one)
		w.mustTake(other, 10)
		w.mem.Restore(nil)
	}}
	cfg := w.config(one)
	cfg.Store = remote{slow, w.time.Wall, nil}
	cfg.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { other.turn(context.Background()) }}
	slots, err := newPoolSource(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := start(context.Background(), slots, cfg); !errors.Is(err, ErrFull) {
		t.Errorf("the late claim: %v, want a full pool", err)
	}
	// The claim was undone, and the slot is blank.
	for range 40 {
		w.time.Pass(3 * time.Second)
		other.turn(context.Background())
		w.mustTake(other, 10)
	}
	if s := other.State(); s.Losses != 0 {
		t.Errorf("the holder: %+v", s)
	}
}

// partsOf returns the parts of an id that the layout can have made.
func partsOf(l firn.Layout, id firn.ID) firn.Parts {
	p, err := l.Decompose(id)
	if err != nil {
		panic(err)
	}
	return p
}

func withEpoch(l firn.Layout, epoch time.Time) (firn.Layout, error) {
	cfg := l.Config()
	cfg.Epoch = epoch
	return firn.NewLayout(cfg)
}

func TestTheStateOfAClosedLeaseSaysThatItIsClosed(t *testing.T) {
	l, err := Open(t.Context(), Config{Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if s := l.State(); s.Err != nil || s.Left <= 0 {
		t.Errorf("before Close: %+v", s)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if s := l.State(); !errors.Is(s.Err, firn.ErrClosed) || s.Left != 0 {
		t.Errorf("after Close: %+v", s)
	}
}
