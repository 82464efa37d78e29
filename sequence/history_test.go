package sequence_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/order"
)

var seeds = flag.Int("seeds", someSeeds, "how many histories to play")

// A history is what the callers of all processes received.
type history struct {
	*world
	t     *testing.T
	calls []order.Call
	errs  map[string]int
	asked int // callers so far
	whose map[int]*program
}

// A program is a process with its sequence.
type program struct {
	*process
	all    *sequence.Sequences
	txn    *sequence.Namespace
	client *client
}

func (h *history) start(cfg sequence.Config) *program {
	h.t.Helper()
	p := &program{process: &process{w: h.world}}
	p.client = &client{Store: h.store, p: p.process}
	cfg.Store, cfg.Time, cfg.Random = p.client, p.process, h.random.Uint64
	var err error
	if p.all, err = sequence.New(cfg); err != nil {
		h.t.Fatal(err)
	}
	if p.txn, err = p.all.Namespace("txn"); err != nil {
		h.t.Fatal(err)
	}
	return p
}

// call has a process ask for ids once, in one of three ways, and takes down what
// it received.
func (h *history) call(p *program, who int, patience time.Duration) error {
	ctx, cancel := p.WithTimeout(context.Background(), patience)
	defer cancel()
	n := int64(1)
	var first firn.ID
	var err error
	begin := h.now
	switch h.random.IntN(4) {
	case 0:
		n = 1 + h.random.Int64N(9)
		first, err = p.txn.Reserve(ctx, int(n))
	case 1:
		ids := make([]firn.ID, 1+h.random.IntN(9))
		n = int64(len(ids))
		_, err = p.txn.Fill(ctx, ids)
		first = ids[0]
	default:
		first, err = p.txn.Next(ctx)
	}
	if err != nil {
		h.note(err)
		return err
	}
	h.calls = append(h.calls, order.Call{Begin: begin, End: h.now, First: int64(first), N: n, Who: who})
	return nil
}

func (h *history) note(err error) {
	for _, known := range []error{context.DeadlineExceeded, store.ErrUnavailable, firn.ErrClosed} {
		if errors.Is(err, known) {
			h.errs[known.Error()]++
			return
		}
	}
	h.t.Errorf("an undocumented error: %v", err)
}

// callers have a process ask for ids so many times, several at once.
func (h *history) callers(p *program, callers, times int) {
	for range callers {
		h.asked++
		who := h.asked
		h.whose[who] = p
		p.Go(func() {
			for range times {
				patience := time.Hour
				if h.random.IntN(5) == 0 {
					patience = h.some(2 * h.trip)
				}
				if h.call(p, who, patience) != nil || h.random.IntN(3) == 0 {
					_ = p.Sleep(context.Background(), h.some(3*h.trip)) // it does not end early
				}
			}
		})
	}
}

func newHistory(t *testing.T, seed uint64) *history {
	return &history{world: newWorld(seed), t: t, errs: map[string]int{}, whose: map[int]*program{}}
}

// TestIdsIncreaseInRealTimeWhateverFails plays histories of processes that crash
// and come back over a network that loses calls and answers or delivers them late.
func TestIdsIncreaseInRealTimeWhateverFails(t *testing.T) {
	calls, errs := 0, map[string]int{}
	for seed := range uint64(*seeds) {
		h := newHistory(t, seed)
		h.chaos = seed%5 != 0
		for range 1 + h.random.IntN(5) {
			p := h.start(sequence.Config{Timeout: 50 * time.Millisecond})
			h.callers(p, 1+h.random.IntN(8), 40)
			if h.random.IntN(2) == 0 {
				h.after(time.Duration(h.random.Int64N(int64(300*time.Millisecond))), func() {
					p.kill()
					h.callers(h.start(sequence.Config{Timeout: 50 * time.Millisecond}), 3, 40)
				})
			}
		}
		if h.random.IntN(3) == 0 {
			h.after(100*time.Millisecond, func() { h.away = true })
			h.after(200*time.Millisecond, func() { h.away = false })
		}
		h.run()
		if err := order.Check(h.calls); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		h.chaos = false
		p := h.start(sequence.Config{})
		p.Go(func() {
			if err := h.call(p, 0, time.Hour); err != nil {
				t.Errorf("seed %d: when all is well again: %v", seed, err)
			}
		})
		h.run()
		if err := order.Check(h.calls); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		calls += len(h.calls)
		for name, n := range h.errs {
			errs[name] += n
		}
	}
	t.Logf("%d calls; errors: %v", calls, errs)
	if calls < 100**seeds || errs[store.ErrUnavailable.Error()] == 0 || errs[context.DeadlineExceeded.Error()] == 0 {
		t.Error("too little happened")
	}
}

// TestAProcessNeverGoesBackInAForgetfulStore has the store wiped and set back,
// and looks at what each process received by itself.
func TestAProcessNeverGoesBackInAForgetfulStore(t *testing.T) {
	setBacks := int64(0)
	for seed := range uint64(*seeds) {
		h := newHistory(t, seed)
		h.chaos = true
		var programs []*program
		for range 3 {
			p := h.start(sequence.Config{Timeout: 50 * time.Millisecond})
			programs = append(programs, p)
			h.callers(p, 4, 40)
		}
		older := h.store.Snapshot()
		for at := time.Duration(0); at < 400*time.Millisecond; at += h.some(40 * time.Millisecond) {
			do := h.random.IntN(3)
			h.after(at, func() {
				switch do {
				case 0:
					older = h.store.Snapshot()
				case 1:
					h.store.Restore(older)
				default:
					h.store.Restore(nil)
				}
			})
		}
		h.run()
		for _, p := range programs {
			var own []order.Call
			for _, c := range h.calls {
				if h.whose[c.Who] == p {
					own = append(own, c)
				}
			}
			if err := order.Check(own); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			setBacks += p.txn.State().SetBacks
		}
	}
	if setBacks < int64(*seeds) {
		t.Errorf("the store was found set back %d times only", setBacks)
	}
}

// TestAHistoryIsReplayedByItsSeed compares two runs.
func TestAHistoryIsReplayedByItsSeed(t *testing.T) {
	play := func() string {
		h := newHistory(t, 7)
		h.chaos = true
		for range 3 {
			h.callers(h.start(sequence.Config{Timeout: 50 * time.Millisecond}), 4, 50)
		}
		h.run()
		return fmt.Sprint(h.now, h.calls, h.errs)
	}
	if a, b := play(), play(); a != b {
		t.Errorf("two histories of one seed differ:\n%.300s\n%.300s", a, b)
	}
}

// TestProcessesShareTheStoreFairly counts what each gets out of a crowd, and how
// long the slowest call took.
func TestProcessesShareTheStoreFairly(t *testing.T) {
	for _, crowd := range fairCrowds {
		h := newHistory(t, uint64(crowd))
		served := make([]int, crowd)
		slowest := time.Duration(0)
		end := int64(fairTime)
		var programs []*program
		for i := range crowd {
			p := h.start(sequence.Config{})
			programs = append(programs, p)
			for range 4 {
				p.Go(func() {
					for h.now < end {
						begin := h.now
						if h.call(p, i, time.Hour) == nil {
							served[i]++
						}
						slowest = max(slowest, time.Duration(h.now-begin))
					}
				})
			}
		}
		h.run()
		if err := order.Check(h.calls); err != nil {
			t.Fatal(err)
		}
		sum, squares, least := 0.0, 0.0, served[0]
		for _, n := range served {
			sum += float64(n)
			squares += float64(n) * float64(n)
			least = min(least, n)
		}
		additions, tries := int64(0), 0
		for _, p := range programs {
			additions += p.txn.State().Additions
			tries += p.client.calls
		}
		fair := sum * sum / squares / float64(crowd) // Jain's index: 1 is even
		t.Logf("%d processes: %d additions in %d trips, %.1f calls of the store each, fairness %.3f, least %d of mean %.0f, slowest %v",
			crowd, additions, end/int64(h.trip), float64(tries)/float64(additions), fair, least, sum/float64(crowd), slowest)
		if len(h.errs) > 0 || fair < 0.97 || slowest > time.Duration(max(crowd, 2))*40*h.trip {
			t.Errorf("%d processes: fairness %.3f, slowest %v, errors: %v", crowd, fair, slowest, h.errs)
		}
	}
}

// TestABusyProcessLetsOthersIn has one come to a process that was alone and
// writes without a pause: one as near to the store, and one much further away.
func TestABusyProcessLetsOthersIn(t *testing.T) {
	for seed := range uint64(busySeeds) {
		h := newHistory(t, seed)
		busy := h.start(sequence.Config{})
		done := false
		for range 4 {
			busy.Go(func() {
				for !done {
					if err := h.call(busy, 0, time.Hour); err != nil {
						t.Error(err)
					}
				}
			})
		}
		come := func(at, away, patience time.Duration) {
			h.after(at, func() {
				newcomer := h.start(sequence.Config{})
				newcomer.client.away = away
				newcomer.Go(func() {
					begin := h.now
					if err := h.call(newcomer, 1, time.Hour); err != nil {
						t.Error(err)
					}
					if took := time.Duration(h.now - begin); took > patience {
						t.Errorf("seed %d: a newcomer waited %v", seed, took)
					}
				})
			})
		}
		come(time.Second, 0, 500*time.Millisecond)
		come(2*time.Second, 4*time.Millisecond, 25*time.Second)
		h.after(30*time.Second, func() { done = true })
		h.run()
		if state := busy.txn.State(); state.Additions < 27_000 {
			t.Errorf("seed %d: %d additions in 30000 trips", seed, state.Additions)
		}
	}
}
