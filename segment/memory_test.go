package segment_test

import (
	"context"
	"errors"
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
		close(answer)
		if r := fetch(t, s, 1); r.First != 16 {
			t.Error(r)
		}
	})
}
