package registrar_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/cosid/registrar"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

var (
	firstSeed = flag.Uint64("seed", 1, "seed of the first history")
	seeds     = flag.Uint64("seeds", 400, "number of histories")
)

const (
	histBits  = 3
	histSteps = 1500
)

// stepper is a store that yields before each call.
type stepper struct {
	store.Store
	yield func()
}

func (s *stepper) Get(ctx context.Context, key string) (store.Entry, error) {
	s.yield()
	return s.Store.Get(ctx, key)
}

func (s *stepper) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	s.yield()
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

func (s *stepper) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	s.yield()
	return s.Store.List(ctx, prefix)
}

// server is a registrar with at most one call in progress.
type server struct {
	*registrar.Registrar
	gate *stepper
	next func() (struct{}, bool) // nil: idle
}

// member is an instance and what it knows about its number.
type member struct {
	of      registrar.Instance
	guard   int64
	using   bool
	machine int
	until   int64 // it must keep the number at least until then
	leaving int   // calls of Revert in progress
	left    int   // how often it has called Revert or given up its number
}

// history is one run from a seed.
type history struct {
	t       testing.TB
	random  *rand.Rand
	clock   *firntest.Clock
	inner   *memstore.Store
	servers []*server
	members []*member
	stamps  [1 << histBits]int64 // the greatest one returned with each number
	calls   map[string]int
	quiet   bool // no faults
	failed  string
}

func newHistory(t testing.TB, seed uint64) *history {
	h := &history{t: t, random: rand.New(rand.NewPCG(seed, 7)), clock: firntest.NewClock(start), calls: map[string]int{}}
	h.inner = memstore.New(h.random.Uint64)
	for range 4 {
		faulty := storetest.NewFaulty(h.inner)
		faulty.Script = h.outcome
		gate := &stepper{Store: faulty}
		r := registrar.New(registrar.Config{Store: gate, Time: h.clock, Random: h.random.Uint64})
		h.servers = append(h.servers, &server{Registrar: r, gate: gate})
	}
	for i := range 11 {
		m := &member{of: instance(fmt.Sprint("i", i)), guard: fiveMinutes}
		if i%4 == 0 {
			m.of.Stable = true
		}
		h.members = append(h.members, m)
	}
	return h
}

func (h *history) outcome(storetest.Call) storetest.Outcome {
	if h.quiet {
		return storetest.Pass
	}
	switch n := h.random.IntN(100); {
	case n < 5:
		return storetest.FailApplied
	case n < 10:
		return storetest.FailUnapplied
	case n < 15:
		return storetest.FailLate
	case n < 16:
		return storetest.Refuse
	default:
		return storetest.Pass
	}
}

func (h *history) now() int64 { return h.clock.Wall().UnixMilli() }

func (h *history) fail(format string, args ...any) {
	if h.failed == "" {
		h.failed = fmt.Sprintf(format, args...)
	}
}

// step lets a server make one call of the store, and begins an operation if it has none.
func (h *history) step() {
	s := h.servers[h.random.IntN(len(h.servers))]
	if s.next == nil {
		h.begin(s)
	}
	if _, more := s.next(); !more {
		s.next = nil
	}
	switch n := h.random.IntN(1000); {
	case n < 3:
		h.clock.Pass(time.Duration(h.random.IntN(400)) * time.Second)
	case n < 200:
		h.clock.Pass(time.Duration(h.random.IntN(2000)) * time.Millisecond)
	}
}

func (h *history) begin(s *server) {
	m := h.members[h.random.IntN(len(h.members))]
	var call func()
	switch n := h.random.IntN(10); {
	case n < 5 || !m.using:
		call = func() { h.distribute(s, m) }
	case n < 9:
		call = func() { h.guard(s, m) }
	default:
		call = func() { h.revert(s, m) }
	}
	s.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		s.gate.yield = func() { yield(struct{}{}) }
		call()
	})
}

func (h *history) distribute(s *server, m *member) {
	h.lapse(m)
	began, stamps, left, leaving := h.now(), h.stamps, m.left, m.leaving
	got, err := s.Distribute(ctx, m.of, histBits, m.guard)
	h.calls["distribute"]++
	if errors.Is(err, registrar.ErrOverflow) {
		h.calls["overflow"]++
	}
	if err != nil {
		h.lapse(m)
		return
	}
	h.calls["assigned"]++
	if got.Machine < 0 || got.Machine >= 1<<histBits {
		h.fail("%s has number %d", m.of.Name, got.Machine)
		return
	}
	if got.Stamp < stamps[got.Machine] {
		h.fail("number %d has stamp %d after %d", got.Machine, got.Stamp, stamps[got.Machine])
	}
	h.stamps[got.Machine] = max(h.stamps[got.Machine], got.Stamp)
	if leaving > 0 || m.left != left {
		return // Revert ran concurrently: the number may be returned already
	}
	for _, other := range h.members {
		if other != m && other.using && other.machine == got.Machine && other.until > h.now() {
			h.fail("number %d is assigned to %s while %s has it", got.Machine, m.of.Name, other.of.Name)
		}
	}
	if m.using && m.until > h.now() && m.machine != got.Machine {
		h.fail("%s has number %d and gets %d", m.of.Name, m.machine, got.Machine)
	}
	m.using, m.machine = true, got.Machine
	m.extend(began)
}

// lapse makes an instance give up its number if it has been silent for too long. It cannot rely
// on guards: CosId's guards do not name the number, so they also succeed for another number,
// assigned by a call whose answer was lost.
func (h *history) lapse(m *member) {
	if m.until <= h.now() {
		m.using = false
		m.left++
	}
}

// holds reports whether an instance holds the number that it uses, by the store.
func (h *history) holds(m *member) bool {
	e, err := h.inner.Get(ctx, fmt.Sprintf("firn/cosid:shop/machine/%08d", m.machine))
	if err != nil {
		h.t.Fatal(err)
	}
	var is struct {
		Instance string
		Held     bool
	}
	if err := json.Unmarshal(e.Value, &is); err != nil {
		h.t.Fatal(err)
	}
	return is.Held && is.Instance == m.of.Name
}

func (m *member) extend(from int64) {
	m.until = max(m.until, from+m.guard)
	if m.of.Stable {
		m.until = math.MaxInt64
	}
}

func (h *history) guard(s *server, m *member) {
	began, left, own := h.now(), m.left, m.until > h.now()
	leaving := m.leaving
	err := s.Guard(ctx, m.of, m.guard)
	h.calls["guard"]++
	switch {
	case leaving > 0 || m.left != left:
	case err == nil && m.using && !h.holds(m):
		m.using = false // the guard was for another number, see lapse
		m.left++
	case err == nil:
		h.calls["guarded"]++
		m.extend(began)
	case errors.Is(err, registrar.ErrLost), errors.Is(err, registrar.ErrNotFound):
		h.calls["lost"]++
		if own && m.until > h.now() {
			h.fail("%s lost number %d too early: %v", m.of.Name, m.machine, err)
		}
		m.using, m.until = false, 0
	}
}

func (h *history) revert(s *server, m *member) {
	m.left++
	m.leaving++
	stable := m.of.Stable && h.random.IntN(4) > 0
	if !stable || !m.of.Stable {
		m.using, m.until = false, 0
	}
	of := m.of
	of.Stable = stable
	if err := s.Revert(ctx, of); err == nil {
		h.calls["reverted"]++
	}
	m.leaving--
}

// end lets all calls finish without faults, and checks that no number is lost: all but those
// of stable instances can be assigned again.
func (h *history) end() {
	h.quiet = true
	for _, s := range h.servers {
		for s.next != nil {
			if _, more := s.next(); !more {
				s.next = nil
			}
		}
		s.gate.yield = func() {}
		for range 3 { // so that late writes are applied now
			if err := s.Guard(ctx, instance("unknown"), fiveMinutes); !errors.Is(err, registrar.ErrNotFound) {
				h.fail("guard of an unknown instance: %v", err)
			}
		}
	}
	h.clock.Pass(time.Hour)
	list, err := h.inner.List(ctx, "firn/cosid:shop/machine/")
	if err != nil {
		h.t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, e := range list {
		var m struct {
			Instance     string
			Held, Stable bool
		}
		if err := json.Unmarshal(e.Value, &m); err != nil {
			h.t.Fatal(err)
		}
		if m.Held && m.Stable {
			kept[m.Instance] = true
		}
	}
	for i := range 1<<histBits - len(kept) {
		if _, err := h.servers[0].Distribute(ctx, instance(fmt.Sprint("late", i)), histBits, fiveMinutes); err != nil {
			h.fail("%d numbers are stable, and only %d more can be assigned: %v", len(kept), i, err)
		}
	}
	if _, err := h.servers[1].Distribute(ctx, instance("one too many"), histBits, fiveMinutes); !errors.Is(err, registrar.ErrOverflow) {
		h.fail("one instance too many: %v", err)
	}
}

// TestNoTwoInstancesShareANumberUnderFaults runs random histories. Four servers interleave at
// each call of a store that loses answers, applies writes late and refuses calls, while the
// clock advances and instances fall silent, ask again at any server, and leave.
func TestNoTwoInstancesShareANumberUnderFaults(t *testing.T) {
	calls := map[string]int{}
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		h := newHistory(t, seed)
		for range histSteps {
			if h.step(); h.failed != "" {
				break
			}
		}
		if h.failed == "" {
			h.end()
		}
		if h.failed != "" {
			t.Errorf("%s; replay with -run %s -seed %d -seeds 1", h.failed, t.Name(), seed)
		}
		for what, n := range h.calls {
			calls[what] += n
		}
	}
	t.Log(calls)
	for _, what := range []string{"assigned", "overflow", "guarded", "lost", "reverted"} {
		if calls[what] < int(*seeds)/4 {
			t.Errorf("only %d calls were %s", calls[what], what)
		}
	}
}
