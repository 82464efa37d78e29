package lease

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// hooked runs functions, once each, around the operations on a slot.
type hooked struct {
	store.Store
	beforeWrite, afterWrite, afterRead func()
}

func (*hooked) Traits() store.Traits { return store.Traits{} }

func (h *hooked) Get(ctx context.Context, key string) (store.Entry, error) {
	entry, err := h.Store.Get(ctx, key)
	h.once(key, &h.afterRead)
	return entry, err
}

func (h *hooked) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	h.once(key, &h.beforeWrite)
	revision, err := h.Store.CompareAndSwap(ctx, key, old, value)
	if err == nil {
		h.once(key, &h.afterWrite)
	}
	return revision, err
}

func (h *hooked) once(key string, hook *func()) {
	if do := *hook; do != nil && strings.Contains(key, "/slot/") {
		*hook = nil
		do()
	}
}

// A worker left is released after its fence has passed, while a switch claims the same worker again.
func TestAReleaseLeavesALaterGrantOfTheSameProcessAlone(t *testing.T) {
	w := newWorld(t)
	hooks := &hooked{Store: w.mem}
	cfg := w.config(small)
	only := int64(1)
	slots := func(s store.Store) *poolSource {
		c := cfg
		c.Store, c.Pinned = s, &only
		made, err := newPoolSource(c)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	ask := func() Ask {
		now, err := cfg.Generator.Layout.Tick(w.time.Wall())
		if err != nil {
			t.Fatal(err)
		}
		return Ask{Now: now, From: now, Window: 60_000}
	}
	ours, theirs := slots(hooks), slots(w.mem)
	left, err := ours.Acquire(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	last := ask().Now
	var again firn.Grant
	claimed, goOn, granted := make(chan struct{}), make(chan struct{}), make(chan struct{})
	hooks.beforeWrite = func() { // of the release
		w.time.Step(2 * time.Minute)
		hooks.afterWrite = func() { // the claim is written, and not noted yet
			close(claimed)
			<-goOn
		}
		go func() {
			defer close(granted)
			var err error
			if again, err = ours.Acquire(context.Background(), ask); err != nil {
				t.Error(err)
			}
		}()
		<-claimed
		hooks.afterRead = func() { // the release looks who was quicker
			close(goOn)
			<-granted
		}
	}
	if err := ours.Release(t.Context(), left, last); err != nil {
		t.Fatal(err)
	}
	if err := ours.Look(t.Context(), again); err != nil {
		t.Errorf("the later grant: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if other, err := theirs.Acquire(ctx, ask); err == nil && other.After < again.Through {
		t.Errorf("another process has %+v beside %+v", other, again)
	}
}
