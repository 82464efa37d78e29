package registrar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

func TestANumberThatWasNeverUsedIsCounted(t *testing.T) {
	st := memstore.New(nil)
	r := New(Config{Store: st})
	counted, none := 0, errors.New("no more numbers")
	ask := func(name string) error {
		_, err := r.Distribute(context.Background(), Instance{Namespace: "shop", Name: name, New: func() (func(), error) {
			if counted == 2 {
				return nil, none
			}
			counted++
			return func() { counted-- }, nil
		}}, 2, 1000)
		return err
	}
	for _, name := range []string{"a", "b", "a"} {
		if err := ask(name); err != nil {
			t.Fatal(name, err)
		}
	}
	before, err := st.List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := ask("c"); !errors.Is(err, none) {
		t.Errorf("the third number: %v", err)
	}
	if after, err := st.List(context.Background(), ""); err != nil || len(after) != len(before) {
		t.Errorf("a refused call has written: %v, %v", after, err)
	}
	if err := r.Revert(context.Background(), Instance{Namespace: "shop", Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := ask("c"); err != nil || counted != 2 {
		t.Errorf("a returned number: %v, %d are counted", err, counted)
	}
	if err := ask(""); err == nil || counted != 2 {
		t.Errorf("%d are counted", counted)
	}
}

func TestAViewIsSmallAndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Store: memstore.New(nil)})
		for i := range 3 {
			if _, err := r.Distribute(t.Context(), Instance{Namespace: "shop", Name: fmt.Sprint(i, strings.Repeat("x", 200))}, 4, 1000); err != nil {
				t.Fatal(err)
			}
		}
		views := func() map[string]*view {
			r.mu.Lock()
			defer r.mu.Unlock()
			return maps.Clone(r.views)
		}
		v := views()["shop"]
		if v == nil || len(v.machines) != 3 {
			t.Fatalf("%+v", v)
		}
		for id, m := range v.machines {
			if len(m.Instance) > 8 {
				t.Errorf("of number %d it keeps %q", id, m.Instance)
			}
		}
		time.Sleep(viewLifetime + time.Second)
		synctest.Wait()
		if len(views()) > 0 {
			t.Error("it is kept for ever")
		}
		if _, err := r.Distribute(t.Context(), Instance{Namespace: "shop", Name: "new"}, 4, 1000); err != nil {
			t.Error(err)
		}
		if r.noteIn(v, 9, machine{revision: 1}); v.machines[9].revision != 1 {
			t.Error("a call that uses a view that was given up does not see what it read")
		}
	})
}

// A lost answer hides whether the number was made, so it counts. Otherwise callers who give up would get any number of numbers.
// A write that the store refused does not.
func TestANumberThatMayBeMadeIsCounted(t *testing.T) {
	st := &losing{Store: memstore.New(nil)}
	r := New(Config{Store: st})
	for _, c := range []struct {
		key     string // of the write whose answer is lost
		refused bool
		want    int
	}{{"/machine/", false, 1}, {"/instance/", false, 0}, {"/machine/", true, 0}} {
		counted := 0
		ctx, cancel := context.WithCancel(t.Context())
		st.key, st.refused, st.lost = c.key, c.refused, cancel
		_, err := r.Distribute(ctx, Instance{Namespace: "shop", Name: fmt.Sprint(c.key, c.refused), New: func() (func(), error) {
			counted++
			return func() { counted-- }, nil
		}}, 4, 1000)
		if !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrRefused) || counted != c.want {
			t.Errorf("%s, refused: %v: %d are counted, want %d: %v", c.key, c.refused, counted, c.want, err)
		}
	}
}

// losing applies a write to a key, unless it refuses that, and ends the call.
type losing struct {
	store.Store
	key     string
	refused bool
	lost    func()
}

func (s *losing) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if s.refused && strings.Contains(key, s.key) {
		s.lost()
		return store.Entry{}, &store.CallError{Store: "test", Op: "compare-and-swap", Key: key, Err: store.ErrRefused}
	}
	written, err := s.Store.CompareAndSwap(ctx, key, old, value)
	if err == nil && strings.Contains(key, s.key) {
		s.lost()
		return store.Entry{}, context.Cause(ctx)
	}
	return written, err
}
