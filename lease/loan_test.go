package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

// A program borrows a worker, and never looks at a clock.
type program struct {
	handle       string
	worker       int64
	after, fence firn.Tick
	lost         bool
}

// A lender is a server: it keeps the loans that it holds, by handle, until it is restarted.
type lender struct {
	cfg   Config
	loans map[string]*Loan
}

// lenders returns servers over the store of a world.
func (w *world) lenders(n int, change ...func(*Config)) []*lender {
	all := make([]*lender, n)
	for i := range all {
		all[i] = &lender{w.config(append(change, w.shared)...), map[string]*Loan{}}
	}
	return all
}

func (l *lender) lend(t *testing.T) *program {
	t.Helper()
	loan, grant, err := Lend(background, l.cfg, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	l.loans[loan.Handle()] = loan
	return &program{loan.Handle(), grant.Worker, grant.After, grant.Through, false}
}

// renew does what a server does when a program asks for a renewal.
func (l *lender) renew(p *program) (firn.Tick, error) {
	loan := l.loans[p.handle]
	if loan == nil {
		var err error
		if loan, err = NewLoan(l.cfg, p.handle); err != nil {
			return 0, err
		}
	}
	do := loan.Look
	if loan.Due(p.fence) {
		do = loan.Renew
	}
	before := loan.Now()
	fence, err := do(background, p.fence)
	if clock := loan.Clock(); err == nil && clock < before { // a program would take that for the loss of its lease
		err = fmt.Errorf("the clock of the answer is %d, that of the request %d", clock, before)
	}
	if loan.Held() >= 0 {
		l.loans[p.handle] = loan
	}
	return fence, err
}

// renewed is renew for a program that hears the answer.
func (l *lender) renewed(t *testing.T, p *program) {
	t.Helper()
	fence, err := l.renew(p)
	if err != nil || fence < p.fence {
		t.Fatalf("renewed from %d to %d, %v", p.fence, fence, err)
	}
	p.fence = fence
}

// stops expects a loss.
func (l *lender) stops(t *testing.T, p *program, why string) {
	t.Helper()
	if fence, err := l.renew(p); !errors.Is(err, ErrLost) {
		t.Errorf("%s: %d, %v", why, fence, err)
	}
}

// recorded returns the slots of the pool of a world.
func (w *world) recorded() []Slot { return must(Inspect(background, w.mem, "default")).Slots }

var background = context.Background()

func TestALoanIsShortUntilItIsRenewed(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(1)
	p := s[0].lend(t)
	now := must(firn.DefaultLayout().Tick(w.time.Wall()))
	if left := p.fence - now; left < 20_000 || left > 20_030 {
		t.Errorf("the first grant lasts %d ms, want 10 s and the tolerance", left)
	}
	if p.after < now {
		t.Errorf("it begins at tick %d, which another may have used: it is %d", p.after+1, now)
	}
	s[0].renewed(t, p)
	if left := p.fence - now; left < 60_000 || left > 60_030 {
		t.Errorf("renewed, it lasts %d ms; want a window", left)
	}
	for passed, moves := range map[time.Duration]bool{20 * time.Second: false, 15 * time.Second: true} {
		w := newWorld(t)
		s := w.lenders(2)
		p := s[0].lend(t)
		s[0].renewed(t, p)
		fence, writes := p.fence, w.store.Counts().CompareAndSwap
		w.time.Pass(20 * time.Second)
		if moves {
			w.time.Pass(passed)
		}
		for i := range s {
			q := *p
			w.time.Pass(time.Second) // at the same time a second server would have nothing to add
			s[i].renewed(t, &q)
			if (q.fence > fence) != moves || (w.store.Counts().CompareAndSwap > writes+i) != moves {
				t.Errorf("server %d after %v: the fence moved from %d to %d with %d writes; due: %v", i, passed, fence, q.fence, w.store.Counts().CompareAndSwap-writes, moves)
			}
		}
	}
	loan := s[0].loans[p.handle]
	for left, due := range map[firn.Tick]bool{30_000: true, 30_001: false} { // half of the window of a minute
		if known := loan.Now() + left; loan.Due(known) != due {
			t.Errorf("a renewal is due %d ms before the fence: %t", left, !due)
		}
	}
	w.time.Step(time.Hour) // no answer shows a clock that was not compared
	if got := loan.Now(); got != now {
		t.Errorf("the clock shows %d after a step, want %d", got, now)
	}
}

func TestAnInitialTimeOutOfRangeIsRefusedAndALongOneIsAWindow(t *testing.T) {
	for initial, want := range map[time.Duration]firn.Tick{ // 0: refused
		math.MinInt64: 0, -time.Minute: 0, -1: 0, maxWindow + 1: 0, math.MaxInt64: 0,
		0: 10_000, 5 * time.Second: 15_000, time.Minute: 60_000, time.Hour: 60_000, maxWindow: 60_000,
	} {
		w := newWorld(t)
		_, grant, err := Lend(background, w.lenders(1)[0].cfg, initial)
		now := must(firn.DefaultLayout().Tick(w.time.Wall()))
		left := grant.Through - now
		if want == 0 && (!errors.Is(err, firn.ErrRange) || !strings.Contains(err.Error(), "initial time")) || want > 0 && (err != nil || left < want || left > want+30) {
			t.Errorf("%v: %d ms are left, %v, want %d", initial, left, err, want)
		}
	}
}

func TestAHandleNamesTheDatacenter(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(1, func(c *Config) { c.Generator.Layout, c.Generator.Datacenter = layout("41/5/5/12"), 21 })
	p := s[0].lend(t)
	if !strings.HasSuffix(p.handle, fmt.Sprintf(".21.%d", p.worker)) {
		t.Errorf("handle %q, of worker %d", p.handle, p.worker)
	}
	clear(s[0].loans)
	s[0].renewed(t, p)
}

func TestTheStoreDoesNotShowHowToRenewALoan(t *testing.T) {
	w := newWorld(t)
	p := w.lenders(1)[0].lend(t)
	secret, _, _ := strings.Cut(p.handle, ".")
	if owner := w.recorded()[0].Owner; owner == secret || len(owner) != len(secret) {
		t.Errorf("the owner is %s, the secret %s", owner, secret)
	}
}

func TestALoanGoesOnAtAnotherServer(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(3, func(c *Config) { c.Generator.Layout = layout("40/1/2/12") })
	s[1].cfg.Generator.Datacenter = 1 // the loan keeps its own
	p := s[0].lend(t)
	s[1].renewed(t, p)
	// The first finds its holding replaced, and writes nothing.
	before := w.store.Counts().CompareAndSwap
	s[0].renewed(t, p)
	late := s[0].loans[p.handle].Held()
	if _, err := s[0].loans[p.handle].Look(background, late); err != nil {
		t.Error(err)
	}
	if n, held := w.store.Counts().CompareAndSwap-before, s[0].loans[p.handle].Held(); n != 0 || held >= 0 {
		t.Errorf("it wrote %d times, and holds it up to %d", n, held)
	}
	// A server that only reads has nothing in memory, and answers no more than the program knows.
	fence := p.fence
	if s[2].renewed(t, p); p.fence != fence || s[2].loans[p.handle] != nil {
		t.Errorf("the fence moved from %d to %d, or the server holds the loan", fence, p.fence)
	}
	w.time.Pass(40 * time.Second)
	if s[2].renewed(t, p); s[2].loans[p.handle].Held() != p.fence || p.fence <= fence {
		t.Errorf("it did not take the loan over")
	}
}

func TestTwoServersMayRenewALoanAtTheSameTime(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	other := *p
	race := true
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if race && c.Op == storetest.OpCompareAndSwap {
			race = false
			inner := w.lenders(1)[0]
			inner.cfg.Store = remote{w.mem, w.time.Wall, nil}
			inner.renewed(t, &other)
		}
		return storetest.Pass
	}
	s[0].renewed(t, p) // while it is taken over
	if race || p.fence <= other.fence {
		t.Fatalf("fences %d, %d: the later writer's begins after the other's", p.fence, other.fence)
	}
	for i := range s {
		q := *p
		if s[i].renewed(t, &q); q.fence != p.fence {
			t.Errorf("the fence is %d, want %d", q.fence, p.fence)
		}
	}
	slots := s[0].loans[p.handle].slots
	h, _ := s[0].loans[p.handle].holding()
	earlier := h
	earlier.after--
	if slots.hold(earlier); s[0].loans[p.handle].Held() != h.fence {
		t.Error("of two takeovers at one server, the earlier is held")
	}
}

func TestAProgramHearsTheFenceOfALostAnswer(t *testing.T) {
	for name, n := range map[string]int{"from the same server": 1, "from others": 3} {
		w := newWorld(t)
		s := w.lenders(3)
		p := s[0].lend(t)
		for i := range 3 {
			_, _ = s[i%n].renew(p) // its answer is lost
		}
		s[0].renewed(t, p)
		if got := w.recorded()[0].Fence; got != p.fence {
			t.Errorf("%s: the program knows %d, the store has %d", name, p.fence, got)
		}
		if now := s[0].loans[p.handle].Now(); p.fence > now+s[0].loans[p.handle].window+30 {
			t.Errorf("%s: lost answers moved the fence %d ticks ahead", name, p.fence-now)
		}
		w.time.Pass(20 * time.Second)
		s[n-1].renewed(t, p)
	}
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	w.store.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap {
			return storetest.FailApplied
		}
		return storetest.Pass
	}
	if _, err := s[1].renew(p); err == nil || errors.Is(err, ErrLost) {
		t.Errorf("the store's answers are lost: %v", err)
	}
	w.store.Script = nil
	s[0].renewed(t, p)
}

func TestALoanThatTheStoreHasForgotten(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	old := w.mem.Snapshot()
	s[0].renewed(t, p)
	for name, snapshot := range map[string]func(){"wiped": func() { w.mem.Restore(nil) }, "set back": func() { w.mem.Restore(old) }} {
		snapshot()
		before := w.store.Counts().CompareAndSwap
		s[1].stops(t, p, name+", at a server that does not hold it")
		if n := w.store.Counts().CompareAndSwap - before; n != 0 {
			t.Errorf("%s: it wrote %d times", name, n)
		}
		s[0].renewed(t, p)
		pool := must(Inspect(background, w.mem, "default"))
		if pool.Open || pool.Slots[0].Fence != p.fence {
			t.Errorf("%s: the pool is %+v: newcomers must wait, and the fence be %d", name, pool, p.fence)
		}
		s[1].stops(t, p, name+": others have not looked yet")
		s[1].lend(t) // it waits, and opens the pool
		s[1].renewed(t, p)
	}
}

// A server holds a loan that another has renewed since, and the store is set back to before that: the program knows more
// than the store does.
func TestALoanRenewedElsewhereEndsInAnOlderCopy(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	old := w.mem.Snapshot()
	s[1].renewed(t, p)
	w.mem.Restore(old)
	s[0].stops(t, p, "the store was set back")
}

func TestAnotherServerSeesThatAFenceHasPassed(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	loan := must(NewLoan(s[1].cfg, p.handle))
	w.time.Set(loan.Layout().Time(p.fence))
	if fence, err := loan.Look(background, p.fence); err != nil || fence != p.fence {
		t.Errorf("in the last tick: %d, %v", fence, err)
	}
	q := *p
	s[1].renewed(t, &q)
	p = w.lenders(1)[0].lend(t)
	loan = must(NewLoan(s[1].cfg, p.handle))
	w.time.Set(loan.Layout().Time(p.fence + 1))
	if _, err := loan.Look(background, p.fence); !errors.Is(err, ErrLost) {
		t.Errorf("after it: %v", err)
	}
}

// Newcomers wait for this look, and no longer than its calls may take.
func TestATakeoverThatHangsEndsAfterThePatienceOfALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.lenders(2)
		p := s[0].lend(t)
		s[1].cfg.Store = hangingSlots{s[1].cfg.Store.(remote)}
		began := time.Now()
		if _, err := s[1].renew(p); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("a slot that cannot be read: %v", err)
		}
		if took := time.Since(began); took != patience(defaultLook) {
			t.Errorf("it ended after %v, want %v", took, patience(defaultLook))
		}
	})
}

// hangingSlots answers no read of a slot.
type hangingSlots struct{ remote }

func (h hangingSlots) Get(ctx context.Context, key string) (store.Entry, error) {
	if !strings.Contains(key, "/slot/") {
		return h.remote.Get(ctx, key)
	}
	<-ctx.Done()
	return store.Entry{}, store.ContextError(ctx)
}

func TestTheClockOfALoanWithoutAStoresClock(t *testing.T) {
	w := newWorld(t)
	p := w.lenders(1)[0].lend(t)
	loan := must(NewLoan(w.config(), p.handle))
	if got, want := loan.Now(), must(loan.Layout().Tick(w.time.Wall())); got != want {
		t.Errorf("it shows %d, want %d", got, want)
	}
	if got, want := loan.Clock(), loan.Now(); got != want {
		t.Errorf("before any look its clock is %d, want the present, %d", got, want)
	}
}

// The program may use its ticks while the store is away, but the store may have forgotten the loan since the last look.
func TestALookThatFailsNeitherEndsALoanNorMovesItsClock(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(1)
	p := s[0].lend(t)
	loan := s[0].loans[p.handle]
	must(loan.Look(background, p.fence))
	before := loan.Clock()
	w.time.Pass(time.Second)
	w.store.Script = func(storetest.Call) storetest.Outcome { return storetest.Refuse }
	for what, do := range map[string]func(context.Context, firn.Tick) (firn.Tick, error){"a look": loan.Look, "a renewal": loan.Renew} {
		if _, err := do(background, p.fence); !errors.Is(err, store.ErrRefused) || errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", what, err)
		}
		if got := loan.Clock(); got != before || loan.Now() != before+1000 {
			t.Errorf("after %s that failed its clock is %d, want %d, and the present %d", what, got, before, loan.Now())
		}
	}
}

// The program waits 2 s for an answer, and a call of the store may take as long.
func TestALookIsFinishedAlthoughItsProgramGivesUp(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(1)
	p := s[0].lend(t)
	w.mem.Restore(nil)
	gaveUp, cancel := context.WithCancel(background)
	cancel()
	if _, err := s[0].loans[p.handle].Look(gaveUp, p.fence); err != nil {
		t.Error(err)
	}
	if slots := w.recorded(); len(slots) != 1 || slots[0].Fence != p.fence {
		t.Errorf("the slots are %+v, want one with fence %d", slots, p.fence)
	}
}

// Another has the worker by then.
func TestAnOverlapStopsAProgram(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2, func(c *Config) { c.Generator.Layout = layout("41/0/0/12") })
	empty := w.mem.Snapshot()
	p := s[0].lend(t)
	s[0].renewed(t, p)
	w.mem.Restore(empty)
	q := s[1].lend(t) // it waits, but nobody has looked
	writes := w.store.Counts().CompareAndSwap
	for range 2 {
		s[0].stops(t, p, "at the server that holds it")
		s[1].stops(t, p, "at another")
	}
	if n := w.store.Counts().CompareAndSwap - writes; n != 0 {
		t.Errorf("%d writes to a slot of another", n)
	}
	s[1].renewed(t, q)
}

func TestAForgedHandleWritesNothingAndHoldsNothing(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(1)
	p := s[0].lend(t)
	_, numbers, _ := strings.Cut(p.handle, ".")
	writes := w.store.Counts().CompareAndSwap
	for _, known := range []firn.Tick{0, p.fence, p.fence + 1000, s[0].loans[p.handle].Layout().MaxTick()} {
		forged := &program{handle: strings.Repeat("A", 26) + "." + numbers, fence: known}
		s[0].stops(t, forged, fmt.Sprint("forged, known ", known))
		s[0].stops(t, &program{handle: strings.Repeat("A", 26) + ".0.1023", fence: known}, "of a worker never used")
	}
	if n := w.store.Counts().CompareAndSwap - writes; n != 0 || len(s[0].loans) != 1 {
		t.Errorf("%d writes, %d loans", n, len(s[0].loans))
	}
	for _, handle := range []string{
		"", "7", "A.0.7", strings.Repeat("A", 26), strings.Repeat("A", 26) + ".7", strings.Repeat("A", 26) + ".0.x",
		strings.Repeat("A", 26) + ".0.-1", strings.Repeat("A", 26) + ".0.1024", strings.Repeat("A", 26) + ".1.7",
		strings.Repeat("A", 26) + ".0.+7", strings.Repeat("A", 26) + ".0.07", strings.Repeat("A", 26) + ".00.7", strings.Repeat("A", 26) + ".0.7 ", strings.Repeat("A", 26) + ".0.7.",
	} {
		if l, err := NewLoan(w.config(), handle); err == nil || !strings.Contains(err.Error(), "give the one that was granted") {
			t.Errorf("handle %q: %+v, %v", handle, l, err)
		}
	}
}

func TestALoanOfAFullPoolIsRenewed(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2, small)
	p, q := s[0].lend(t), s[0].lend(t)
	if _, _, err := Lend(background, s[1].cfg, time.Second); !errors.Is(err, ErrFull) {
		t.Errorf("a third: %v", err)
	}
	s[1].renewed(t, p)
	s[1].renewed(t, q)
}

func TestALoanEndsWithItsLayout(t *testing.T) {
	w := newWorld(t)
	end := layout("41/0/1/12").End()
	w.time.Set(end.Add(-30 * time.Second))
	s := w.lenders(2, small)
	p := s[0].lend(t)
	for i := range s {
		s[i].renewed(t, p)
		if most := layout("41/0/1/12").MaxTick(); p.fence != most {
			t.Fatalf("the fence is %d, want the last tick, %d", p.fence, most)
		}
	}
	w.time.Pass(time.Minute)
	for i := range s {
		_, err := s[i].renew(p)
		var exhausted *firn.TimeExhaustedError
		if !errors.As(err, &exhausted) || errors.Is(err, ErrLost) {
			t.Fatalf("server %d after the end: %v", i, err)
		}
		if exhausted.Layout != layout("41/0/1/12") || !exhausted.End.Equal(end) {
			t.Errorf("server %d after the end, %v: %+v", i, end, exhausted)
		}
	}
}

// A server whose clock is refused makes no wish.
func TestAServerWithAWrongClockDoesNotEndALayout(t *testing.T) {
	w := newWorld(t)
	w.time.Set(layout("41/0/1/12").End().Add(-30 * time.Second))
	s := w.lenders(2, small)
	p := s[0].lend(t)
	q := *p
	s[0].renewed(t, &q) // the program does not hear it
	s[1].cfg.Generator.Time = skewed{w.time, -15 * time.Second}
	loan := must(NewLoan(s[1].cfg, p.handle))
	if fence, err := loan.Renew(background, p.fence); fence != p.fence || !errors.Is(err, ErrClock) || errors.Is(err, firn.ErrTimeExhausted) {
		t.Errorf("%d, known %d: %v", fence, p.fence, err)
	}
}

func TestATakeoverThatComesAfterItsFenceIsALoss(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	s[1].cfg.Store = &slowWrites{remote: s[1].cfg.Store.(remote), on: w.time, takes: 21 * time.Second}
	// Another may have been granted the worker meanwhile.
	if _, err := s[1].renew(p); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), fmt.Sprintf("worker %d of pool %q", p.worker, "default")) {
		t.Errorf("not the loss of worker %d: %v", p.worker, err)
	}
}

func TestALoanIsNotTakenOverInAnotherLifeOfTheStore(t *testing.T) {
	w := newWorld(t)
	life := "one"
	s := w.lenders(3)
	for i := range s {
		s[i].cfg.Store = remote{w.store, w.time.Wall, &life}
	}
	p := s[0].lend(t)
	life = "two"
	s[1].stops(t, p, "the store may have forgotten others")
	q := s[2].lend(t) // it waits, and opens the pool
	s[2].renewed(t, q)
	s[1].renewed(t, q)
}

func TestNoServerWithAWrongClockRenewsALoan(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	s[0].renewed(t, p)
	for _, offset := range []time.Duration{-time.Hour, time.Hour} {
		s[1].cfg.Generator.Time = skewed{w.time, offset}
		if _, err := s[1].renew(p); !errors.Is(err, ErrClock) || errors.Is(err, ErrLost) {
			t.Errorf("%v: %v", offset, err)
		}
	}
}

func TestWorkersOfSomePoolsAreNotLent(t *testing.T) {
	w := newWorld(t)
	seven := int64(7)
	for name, change := range map[string]func(*Config){
		"Strict": func(c *Config) { c.Strict = time.Hour },
		"Pinned": func(c *Config) { c.Pinned = &seven },
		"Clock":  func(c *Config) { c.Generator.Clock = firn.ClockVirtual },
	} {
		if _, _, err := Lend(background, w.config(change), time.Second); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A first grant lasts as long as was asked for by the clock that it comes with, also from the middle of a tick and from a
// machine whose clock is behind.
func TestAFirstGrantLasts(t *testing.T) {
	seconds := func(c *Config) { c.Generator.Layout = layout("32/0/1/30,unit=1s") }
	for _, first := range []time.Duration{0, time.Second, 1500 * time.Millisecond, 10 * time.Second} {
		for _, in := range []time.Duration{0, 100 * time.Millisecond, 900 * time.Millisecond} {
			for _, offset := range []time.Duration{-defaultTolerance, -5 * time.Second, 0, defaultTolerance} {
				w := newWorld(t)
				w.start(w.shared, seconds) // it opens the pool
				w.time.Pass(in)
				off := func(c *Config) { c.Generator.Time = skewed{w.time, offset} }
				l, grant, err := Lend(background, w.config(w.shared, seconds, off), first)
				if err != nil {
					t.Fatal(err)
				}
				if lasts := l.Layout().Time(grant.Through + 1).Sub(w.time.Wall()); lasts < first || lasts > first+2*defaultTolerance+2*time.Second {
					t.Errorf("asked for %v, %v into a tick, by a clock %v off: it lasts %v", first, in, offset, lasts)
				}
			}
		}
	}
}

func TestAFirstGrantIsNoLongerThanAWindow(t *testing.T) {
	w := newWorld(t)
	l, grant, err := Lend(background, w.config(w.shared), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if left := grant.Through - l.Now(); left > 60_030 {
		t.Errorf("it lasts %d ms, and the window is a minute", left)
	}
}

func TestALoanThatCannotBeMadeIsNil(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(1)
	p := s[0].lend(t)
	if l := must(NewLoan(s[0].cfg, p.handle)); l.Held() != -1 {
		t.Errorf("the fence of a loan that this process does not hold is %d, want -1", l.Held())
	}
	cfg := s[0].cfg
	cfg.Generator.Retired = func(int64, int64, firn.Tick) {}
	made, err := NewLoan(cfg, p.handle)
	lent, _, lendErr := Lend(background, cfg, time.Second)
	if made != nil || lent != nil || err == nil || lendErr == nil {
		t.Errorf("with settings that are refused: %v, %v and %v, %v", made, err, lent, lendErr)
	}
	cfg = s[0].cfg
	cfg.Store = nil
	if made, err = NewLoan(cfg, p.handle); made != nil || err == nil || !strings.Contains(err.Error(), "Store") {
		t.Errorf("without a store: %v, %v", made, err)
	}
}

// A pause between two readings of the clock would let a grant begin before the present.
func TestAnAskReadsTheClockOnce(t *testing.T) {
	w := newWorld(t)
	loan := must(NewLoan(w.config(w.shared), w.lenders(1)[0].lend(t).handle))
	lead := firn.Tick(fencedLead(loan.slots.cfg.Generator) / time.Millisecond)
	if ask := loan.ask(); ask.From != ask.Now+lead+1 {
		t.Errorf("now is %d, and the ask is from %d, want %d ticks later", ask.Now, ask.From, lead+1)
	}
	loan.slots.cfg.Generator.Time = pausing{w.time}
	if ask := loan.ask(); ask.From <= ask.Now {
		t.Errorf("now is %d, and the ask is from %d", ask.Now, ask.From)
	}
}

// The process of a pausing clock is paused after each reading.
type pausing struct{ *machine }

func (p pausing) Wall() time.Time {
	defer p.Pass(time.Second)
	return p.machine.Wall()
}

// The record of a pool that nothing confirmed yet names no life.
func TestALoanIsNotTakenOverFromAPoolWithoutALife(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	pool := must(Inspect(background, w.mem, "default"))
	pool.Life = nil
	w.put(poolKey("default"), must(register.Encode(pool)))
	s[1].stops(t, p, "the store may have forgotten others")
}

// What a process does about a loan whose program knows the fence 200.
func TestATakeover(t *testing.T) {
	slot := func(owner string, after, fence firn.Tick) *Slot {
		return &Slot{Owner: owner, After: after, Fence: fence, Since: time.Unix(7, 0), revision: 8}
	}
	given := func(s *Slot) *Slot { s.Free = true; return s }
	for name, c := range map[string]struct {
		found     *Slot
		now, wish firn.Tick
		closed    bool
		want      string
	}{
		"as it should be":            {slot("me", 100, 200), 150, 300, false, "(200,300]"},
		"not due":                    {slot("me", 100, 200), 150, 0, false, "nothing"},
		"renewed, without an answer": {slot("me", 100, 250), 150, 300, false, "(250,300]"},
		"renewed further than here":  {slot("me", 100, 350), 150, 300, false, "nothing"},
		"at the fence":               {slot("me", 100, 200), 200, 300, false, "(200,300]"},
		"after the fence":            {slot("me", 100, 200), 201, 300, false, "lost"},
		"not due, after the fence":   {slot("me", 100, 200), 201, 0, false, "lost"},
		"an older copy":              {slot("me", 50, 199), 150, 300, false, "lost"},
		"not due, an older copy":     {slot("me", 50, 199), 150, 0, false, "lost"},
		"no record":                  {nil, 150, 300, false, "lost"},
		"another's":                  {slot("other", 200, 300), 150, 300, false, "lost"},
		"not due, another's":         {slot("other", 200, 300), 150, 0, false, "lost"},
		"taken back":                 {given(slot("operator", 200, 200)), 150, 300, false, "lost"},
		"free":                       {given(slot("me", 100, 200)), 150, 300, false, "lost"},
		"closed":                     {slot("me", 100, 200), 150, 300, true, "lost"},
		"not due, closed":            {slot("me", 100, 200), 150, 0, true, "lost"},
	} {
		m, err := easy().takeOver(takeover{worker: 3, known: 200, wish: c.wish, open: !c.closed}, c.found, c.now)
		if got := verdict(m, err); got != c.want || m.write && (m.worker != 3 || m.over != 8 || m.since != time.Unix(7, 0)) {
			t.Errorf("%s: %s, want %s (%+v)", name, got, c.want, m)
		}
	}
	if m, err := easy().takeOver(takeover{known: 0, wish: 300, open: true}, slot("me", 200, 300), 150); err != nil || m.write {
		t.Errorf("a program that says that it knows less than it does moved the fence beyond a window: %+v, %v", m, err)
	}
	most := easy().layout.MaxTick()
	_, err := easy().takeOver(takeover{known: most - 1, wish: most, open: true}, slot("me", 100, most), most-5)
	var exhausted *firn.TimeExhaustedError
	if !errors.As(err, &exhausted) || exhausted.Layout != easy().layout || !exhausted.End.Equal(easy().layout.End()) {
		t.Errorf("there are no more ticks: %v", err)
	}
}

// Programs borrow, renew at any server, lose answers and servers; no tick is granted to two of them.
func TestNoTickIsLentTwice(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { lendAtRandom(t, seed) })
	}
}

func lendAtRandom(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	w := newWorld(t)
	servers := w.lenders(3, func(c *Config) { c.Generator.Layout = layout("41/0/2/12"); c.Window = 15 * time.Second })
	for i, s := range servers {
		s.cfg.Generator.Time = skewed{w.time, time.Duration(i-1) * 9 * time.Second}
	}
	w.store.Script = func(storetest.Call) storetest.Outcome {
		if random.IntN(8) > 0 {
			return storetest.Pass
		}
		return storetest.Outcome(random.IntN(4))
	}
	var programs []*program
	renewed, elsewhere := 0, 0
	for range 600 {
		server := servers[random.IntN(len(servers))]
		if random.IntN(12) == 0 {
			server.loans = map[string]*Loan{} // restarted
		}
		w.time.Pass(time.Duration(random.IntN(4000)) * time.Millisecond)
		if random.IntN(4) == 0 || len(programs) == 0 {
			loan, grant, err := Lend(background, server.cfg, 10*time.Second)
			if err == nil {
				server.loans[loan.Handle()] = loan
				programs = append(programs, &program{loan.Handle(), grant.Worker, grant.After, grant.Through, false})
			}
			continue
		}
		p := programs[max(0, len(programs)-1-random.IntN(5))]
		if p.lost {
			continue
		}
		known := server.loans[p.handle] != nil
		fence, err := server.renew(p)
		switch {
		case errors.Is(err, ErrLost):
			p.lost = true
		case err == nil && random.IntN(8) > 0: // it hears the answer
			renewed++
			if fence > p.fence && !known {
				elsewhere++
			}
			p.fence = max(p.fence, fence)
		}
	}
	for i, p := range programs {
		for _, q := range programs[:i] {
			if p.worker == q.worker && p.after < q.fence && q.after < p.fence {
				t.Errorf("worker %d was lent from %d to %d and from %d to %d", p.worker, p.after+1, p.fence, q.after+1, q.fence)
			}
		}
	}
	if renewed < 10 || elsewhere < 2 || len(programs) < 10 {
		t.Errorf("%d programs, %d renewals, %d of them where the loan was not known: too few to find anything", len(programs), renewed, elsewhere)
	}
}

// What a server must not move it still looks at: newcomers wait for no longer than a program that looks takes to stop.
func TestALoanThatMustNotBeMovedIsStillLookedAt(t *testing.T) {
	seven := int64(7)
	for name, change := range map[string]func(*world, *Config){
		"a wrong clock":      func(w *world, c *Config) { c.Generator.Time = skewed{w.time, time.Hour} },
		"a clock behind":     func(w *world, c *Config) { c.Generator.Time = skewed{w.time, -time.Hour} },
		"a worker by number": func(_ *world, c *Config) { c.Pinned = &seven },
		"a virtual clock":    func(_ *world, c *Config) { c.Generator.Clock = firn.ClockVirtual },
	} {
		for _, due := range []bool{true, false} {
			w := newWorld(t)
			s := w.lenders(2)
			p := s[0].lend(t)
			s[0].renewed(t, p)
			if due {
				w.time.Pass(40 * time.Second)
			}
			change(w, &s[1].cfg)
			if fence, err := s[1].renew(p); err == nil && fence != p.fence || errors.Is(err, ErrLost) {
				t.Errorf("%s, due %v: %d, %v; the program has %d", name, due, fence, err, p.fence)
			}
			w.mem.Restore(nil)
			s[1].stops(t, p, name)
		}
	}
}

// As through a balancer. The server that answers may have held the loan long ago.
func TestTheClockOfALoanThatAnotherServerHolds(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	for i := range 40 {
		w.time.Pass(3 * time.Second)
		s[i%2].renewed(t, p)
	}
	// The server is stopped before it answers.
	loan := must(NewLoan(s[0].cfg, p.handle))
	before := loan.Now()
	must(loan.Look(background, p.fence))
	w.time.Pass(15 * time.Second)
	if got := loan.Clock(); got != before {
		t.Errorf("it shows %d after a stop, and the look began at %d", got, before)
	}
}

// The store may forget the loan while its answer is under way.
func TestTheClockOfALoanIsThatOfTheStartOfALook(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(1)
	hooks := &hooked{Store: s[0].cfg.Store}
	s[0].cfg.Store = hooks
	p := s[0].lend(t)
	loan := s[0].loans[p.handle]
	w.time.Pass(3 * time.Second)
	before := loan.Now()
	hooks.afterRead = func() { w.time.Pass(time.Second) }
	must(loan.Look(background, p.fence))
	if got := loan.Clock(); got != before || loan.Now() != before+1000 {
		t.Errorf("it shows %d after a look that began at %d and ended at %d", got, before, loan.Now())
	}
}

// Newcomers wait for looks that begin in time, so a slow takeover is as old as its beginning.
func TestATakeoverIsALookThatBeganWithIt(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(2)
	p := s[0].lend(t)
	hooks := &hooked{Store: s[1].cfg.Store}
	s[1].cfg.Store = hooks
	loan := must(NewLoan(s[1].cfg, p.handle))
	hooks.afterRead = func() { w.time.Pass(time.Second) }
	began := w.time.Monotonic()
	must(loan.Renew(background, p.fence))
	if h, ok := loan.holding(); !ok || h.looked.mono != began {
		t.Errorf("held: %t; the look began at %v, want %v", ok, h.looked.mono, began)
	}
}

// The error of the server's clock and that of the program's do not add up.
func TestAProgramSeesTheStoresClock(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(1)
	s[0].cfg.Store = remote{w.store, w.time.Wall, nil}
	s[0].cfg.Generator.Time = skewed{w.time, 8 * time.Second}
	loan, _, err := Lend(background, s[0].cfg, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := must(firn.DefaultLayout().Tick(w.time.Wall()))
	if got := loan.Clock(); got != want {
		t.Errorf("it sees %d, the store's clock shows %d", got, want)
	}
	// The server is stopped before it answers. Newcomers do not wait for it.
	w.time.Pass(15 * time.Second)
	if got := loan.Clock(); got != want {
		t.Errorf("after a stop it sees %d, and the worker was claimed at %d", got, want)
	}
	if got := loan.Now(); got != want+15_000 {
		t.Errorf("the present is %d, want %d", got, want+15_000)
	}
}

func TestALoanIsTakenOverByUrgentCallsOnlyAndFromAPoolThatCanBeRead(t *testing.T) {
	w := newWorld(t)
	s := w.lenders(3)
	p := s[0].lend(t)
	s[1].cfg.Store = hasty{remote{w.store, w.time.Wall, nil}, t}
	s[1].renewed(t, p)
	if loan := must(NewLoan(s[1].cfg, p.handle)); loan.Every() != defaultLook {
		t.Errorf("a look each %v", loan.Every())
	}
	away := fmt.Errorf("%w: away", store.ErrUnavailable)
	s[2].cfg.Store = clocked{&scripted{Store: w.mem, call: func(what, key string) error {
		if what == "get" && key == poolKey("default") {
			return away
		}
		return nil
	}}}
	w.time.Pass(40 * time.Second)
	if fence, err := s[2].renew(p); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, ErrLost) {
		t.Errorf("without the pool's record: %d, %v", fence, err)
	}
}
