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

	"github.com/firn-id/firn/store/memstore"
)

func TestANumberThatWasNeverUsedIsCounted(t *testing.T) {
	st := memstore.New(nil)
	r, err := New(Config{Store: st})
	if err != nil {
		t.Fatal(err)
	}
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
		r, err := New(Config{Store: memstore.New(nil)})
		if err != nil {
			t.Fatal(err)
		}
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
