package segment_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

// fetch takes a range and returns its first id.
func fetch(t *testing.T, from segment.Source, n int64) segment.Range {
	t.Helper()
	r, err := from.Fetch(t.Context(), "orders", segment.Ask{Step: n, Above: -1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func source(t *testing.T, s store.Store, m *register.Memory) segment.Source {
	t.Helper()
	made, err := segment.NewSource(segment.Config{Store: s, Memory: m})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func giveBack(ctx context.Context, to segment.Source, r segment.Range) (bool, error) {
	taker, ok := to.(segment.Returner)
	if !ok {
		return false, errors.New("it takes nothing back")
	}
	return taker.Return(ctx, "orders", r)
}

func TestSourcesThatShareAMemoryGoOnAboveEachOther(t *testing.T) {
	mem, memory := memstore.New(nil), &register.Memory{}
	a, b := source(t, mem, memory), source(t, mem, memory)
	fetch(t, a, 10)
	older := mem.Snapshot()
	fetch(t, a, 1) // the counter is set back by this one alone
	mem.Restore(older)
	if r := fetch(t, b, 5); r.First != 12 || memory.SetBacks()["orders"] != 1 {
		t.Errorf("%v, %d set backs", r, memory.SetBacks()["orders"])
	}
	mem.Restore(nil)
	if r := fetch(t, a, 5); r.First != 17 || memory.SetBacks()["orders"] != 2 {
		t.Errorf("%v, %d set backs", r, memory.SetBacks()["orders"])
	}
}

func TestTheFirstIDIsMissed(t *testing.T) {
	mem, memory := memstore.New(nil), &register.Memory{}
	s := source(t, mem, memory)
	fetch(t, s, 1)
	mem.Restore(nil)
	if r, n := fetch(t, s, 1), memory.SetBacks()["orders"]; r.First != 2 || n != 1 {
		t.Errorf("%v, %d set backs", r, n)
	}
}

// Ids that were given back are not missed, whether or not the answer to that came.
func TestWhatIsGivenBackIsNoSetBack(t *testing.T) {
	for _, lost := range []bool{false, true} {
		mem, memory := memstore.New(nil), &register.Memory{}
		s := &losing{Store: mem}
		all, err := segment.New(segment.Config{Store: s, Memory: memory, MinStep: 10, MaxStep: 10, Ahead: 1e-9})
		if err != nil {
			t.Fatal(err)
		}
		for want := firn.ID(1); want < 4; want++ {
			if id, err := all.Next(t.Context(), "orders"); id != want || err != nil {
				t.Fatal(id, err)
			}
		}
		s.lose = lost
		if err := all.Close(context.Background()); lost != (err != nil) {
			t.Error(err)
		}
		s.lose = false
		if r, n := fetch(t, source(t, mem, memory), 5), memory.SetBacks()["orders"]; r.First != 4 || n != 0 {
			t.Errorf("answer lost %v: %v, %d set backs", lost, r, n)
		}
	}
}

// Ids that were not taken back, since the store refused or another process has gone on, were had.
func TestWhatIsNotTakenBackIsASetBack(t *testing.T) {
	for _, refused := range []bool{false, true} {
		mem, memory := memstore.New(nil), &register.Memory{}
		f := storetest.NewFaulty(mem)
		s := source(t, f, memory)
		r := fetch(t, s, 10)
		if refused {
			f.Script = func(storetest.Call) storetest.Outcome { return storetest.Refuse }
		} else {
			fetch(t, source(t, mem, nil), 10)
		}
		given, err := giveBack(t.Context(), s, r)
		if given || refused != errors.Is(err, store.ErrRefused) || !refused && err != nil {
			t.Errorf("refused %v: %v, %v", refused, given, err)
		}
		f.Script = nil
		mem.Restore(nil)
		if r, n := fetch(t, s, 5), memory.SetBacks()["orders"]; r.First != 11 || n != 1 {
			t.Errorf("refused %v: %v, %d set backs", refused, r, n)
		}
	}
}

// A caller's own source may hand out a range in parts, each with all that the range has.
func TestOnlyTheEndOfARangeIsTakenBack(t *testing.T) {
	for _, stripe := range []segment.Stripe{whole, odd} {
		mem := memstore.New(nil)
		s, err := segment.NewSource(segment.Config{Store: mem, Offset: stripe.Offset, Stride: stripe.Stride})
		if err != nil {
			t.Fatal(err)
		}
		r := fetch(t, s, 100)
		part := func(first firn.ID, count, stride int64) segment.Range {
			p := r
			p.First, p.Count, p.Stride = r.First+first*firn.ID(r.Stride), count, stride
			return p
		}
		for _, p := range []segment.Range{
			part(0, 10, r.Stride), part(10, 89, r.Stride), part(99, 0, r.Stride), part(100, 0, r.Stride), part(99, 2, r.Stride), part(105, -4, r.Stride),
			part(0, 1, 0), part(0, math.MaxInt64, r.Stride), part(0, 1, 100*r.Stride), part(0, 50, 2*r.Stride), part(-1000, 1100, r.Stride),
		} {
			if given, err := giveBack(t.Context(), s, p); given || err != nil {
				t.Errorf("%v: %+v of %v was taken back: %t, %v", stripe, p, r, given, err)
			}
		}
		rest := part(10, 90, r.Stride)
		if given, err := giveBack(t.Context(), s, rest); !given || err != nil {
			t.Errorf("%v: the end was not taken back: %v", stripe, err)
		}
		if next := fetch(t, s, 5); next.First != rest.First {
			t.Errorf("%v: then %v was granted, want from %d", stripe, next, rest.First)
		}
		if given, err := giveBack(t.Context(), s, part(99, 1, r.Stride)); given || err != nil {
			t.Errorf("%v: the end was taken back twice: %v", stripe, err)
		}
	}
}

// splitting is a source that hands ranges of another out in parts of ten, to all who use it.
type splitting struct {
	segment.Source
	rest segment.Range
}

func (s *splitting) Fetch(ctx context.Context, name string, _ segment.Ask) (segment.Range, error) {
	if s.rest.Count == 0 {
		var err error
		if s.rest, err = s.Source.Fetch(ctx, name, segment.Ask{Step: 100, Above: -1}); err != nil {
			return segment.Range{}, err
		}
	}
	part := s.rest
	part.Count = 10
	s.rest.First, s.rest.Count = part.Last()+1, s.rest.Count-10
	return part, nil
}

func (s *splitting) Return(ctx context.Context, _ string, unused segment.Range) (bool, error) {
	return giveBack(ctx, s.Source, unused)
}

func TestWhoeverHasAPartGivesNothingOfOthersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New(nil)
		shared := &splitting{Source: source(t, mem, nil)}
		holders := map[firn.ID]string{}
		take := func(who string, n int, from *segment.Segments) {
			for range n {
				id, err := from.Next(t.Context(), "orders")
				if by, held := holders[id]; held || err != nil {
					t.Fatalf("%s got %d, %v, which %q has", who, id, err, by)
				}
				holders[id] = who
				synctest.Wait()
			}
		}
		open := func(cfg segment.Config) *segment.Segments {
			cfg.MinStep, cfg.MaxStep = 10, 10
			s, err := segment.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		a, b, c := open(segment.Config{Source: shared}), open(segment.Config{Source: shared}), open(segment.Config{Store: mem})
		take("a", 3, a)
		take("b", 35, b)
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		take("c", 50, c)
		take("b", 100, b)
	})
}

// losing applies writes and loses the answers.
type losing struct {
	*memstore.Store
	lose bool
}

func (s *losing) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	e, err := s.Store.CompareAndSwap(ctx, key, old, value)
	if s.lose && err == nil {
		return store.Entry{}, errors.Join(store.ErrUnavailable, errors.New("no answer"))
	}
	return e, err
}

// Another source of the process hangs at the store. Who gives up its turn does not touch the counter.
func TestASourceWaitsForOthersOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, memory := memstore.New(nil), &register.Memory{}
		s := source(t, mem, memory)
		r := fetch(t, s, 10)
		answer := make(chan struct{})
		other := source(t, before{mem, func() { <-answer }}, memory)
		go func() {
			if _, err := other.Fetch(t.Context(), "orders", segment.Ask{Step: 5, Above: -1}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, fetched := s.Fetch(gone, "orders", segment.Ask{Step: 1, Above: -1})
		given, returned := giveBack(gone, s, r)
		for what, err := range map[string]error{"fetch a range of": fetched, "give back ids of": returned} {
			want := `segment: ` + what + ` "orders": wait for others of this process that use the counter: context canceled`
			if given || err == nil || err.Error() != want || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%v, %v, want %s", given, err, want)
			}
		}
		mem.Restore(nil) // a look would raise the counter, and waits for its turn as well
		gone, leave = context.WithCancel(t.Context())
		_, n := orders(t, segment.Config{Store: mem, Memory: memory})
		looked := make(chan error, 1)
		go func() { looked <- n.Look(gone) }()
		synctest.Wait()
		leave()
		if err := <-looked; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "look at") || !strings.Contains(err.Error(), "wait for others of this process") {
			t.Error(err)
		}
		close(answer)
		if r := fetch(t, s, 1); r.First != 16 {
			t.Error(r)
		}
	})
}
