package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A wrapper counts the workers that a source grants.
type wrapper struct {
	lease.Source
	acquired int
}

func (w *wrapper) Acquire(ctx context.Context, a func() lease.Ask) (firn.Grant, error) {
	w.acquired++
	return w.Source.Acquire(ctx, a)
}

var noonUTC = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Without an error of Close another process may start at once, and would repeat ids here.
func TestCloseOfAWrappedFixedSourceSaysThatIDsAreAhead(t *testing.T) {
	clock := firntest.NewClock(noonUTC)
	l, err := lease.Keep(t.Context(), &wrapper{Source: lease.Fixed(7)}, lease.Config{Generator: firn.Config{Clock: firn.ClockWall, Time: clock}})
	if err != nil {
		t.Fatal(err)
	}
	clock.Pass(time.Second)
	if _, err := l.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Step(-7 * time.Millisecond)
	if err := l.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "worker 7 has ids up to") {
		t.Errorf("closed with %v", err)
	}
}

// Ticks of two layouts are not comparable: a spare that an earlier process had was granted below its ids.
func TestAFixedSourceIsKeptInOneLayout(t *testing.T) {
	function := lease.FixedFunc(func(context.Context) (int64, error) { return 7, nil })
	for name, source := range map[string]lease.Source{"Fixed": lease.Fixed(7), "FixedFunc": function} {
		clock := firntest.NewClock(noonUTC)
		keep := func(layout string) (*lease.Lease, error) {
			l, err := firn.ParseLayout(layout)
			if err != nil {
				t.Fatal(err)
			}
			return lease.Keep(t.Context(), source, lease.Config{Generator: firn.Config{Layout: l, Time: clock}})
		}
		for range 2 {
			l, err := keep("40/0/10/12,unit=10ms")
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			clock.Pass(time.Minute)
		}
		if _, err := keep("41/0/10/12"); !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "a source of its own") {
			t.Errorf("%s: another layout: %v", name, err)
		}
	}
}

func TestALeaseKeepsItsFixedWorkerWhateverItsCallerDoesWithTheNumber(t *testing.T) {
	worker, spares := int64(7), []int64{8}
	cfg := lease.Config{
		Store: memstore.New(nil), Pinned: &worker, Spares: spares,
		Generator: firn.Config{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}, Time: firntest.NewClock(noonUTC)},
	}
	source, err := lease.NewSource(cfg)
	if err != nil {
		t.Fatal(err)
	}
	worker, spares[0] = 20, 21
	now, err := firn.DefaultLayout().Tick(noonUTC)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{7, 8} {
		if grant, err := source.Acquire(t.Context(), func() lease.Ask { return lease.Ask{Now: now, From: now, Window: 1000} }); err != nil || grant.Worker != want {
			t.Errorf("granted %+v, %v, want worker %d", grant, err, want)
		}
	}
}

// The end of a caller's context says nothing of the store.
func TestACallersEndIsNoErrorOfTheLease(t *testing.T) {
	clock := firntest.NewClock(noonUTC)
	l, err := lease.Open(t.Context(), lease.Config{Store: memstore.New(nil), Generator: firn.Config{
		Clock: firn.ClockWall, Time: clock, Rollback: firn.Rollback{firn.SwitchWorker()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	clock.Pass(time.Second)
	if _, err := l.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Step(-time.Minute)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Next(gone); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if s := l.State(); s.Err != nil || s.Errors != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := l.Next(t.Context()); err != nil || l.State().Switches != 1 {
		t.Errorf("%+v, %v", l.State(), err)
	}
}

// A hanging is a store that answers nothing once it hangs, until a call's context ends.
type hanging struct {
	store.Store
	hangs bool
}

func (h *hanging) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if h.hangs {
		<-ctx.Done()
		return nil, store.ContextError(ctx)
	}
	return h.Store.List(ctx, prefix)
}

func TestCloseEndsACallThatTakesAnotherWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := firntest.NewClock(noonUTC)
		s := &hanging{Store: memstore.New(nil)}
		l, err := lease.Open(t.Context(), lease.Config{Store: s, Generator: firn.Config{
			Clock: firn.ClockWall, Time: clock, Rollback: firn.Rollback{firn.SwitchWorker()},
		}})
		if err != nil {
			t.Fatal(err)
		}
		clock.Pass(time.Second)
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.hangs = true
		clock.Step(-time.Minute)
		ended := make(chan error, 1)
		go func() {
			_, err := l.Next(context.Background())
			ended <- err
		}()
		synctest.Wait()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(ended) != 1 {
			t.Fatal("the call goes on after Close")
		}
		if err := <-ended; !errors.Is(err, firn.ErrClosed) || l.State().Errors != 0 {
			t.Errorf("%v, %d errors of the store", err, l.State().Errors)
		}
	})
}

// A source expects its holders to run ahead by what it was made for: newcomers begin that far above a forgotten one.
func TestASourceRefusesALongerLeadThanItsOwn(t *testing.T) {
	clock := firntest.NewClock(noonUTC)
	s := memstore.New(nil)
	source, err := lease.NewSource(lease.Config{Store: s, Generator: firn.Config{Time: clock}})
	if err != nil {
		t.Fatal(err)
	}
	keep := func(ahead time.Duration) error {
		l, err := lease.Keep(t.Context(), source, lease.Config{Generator: firn.Config{Time: clock, Ahead: ahead}})
		if err != nil {
			return err
		}
		return l.Close(t.Context())
	}
	if err := keep(0); err != nil {
		t.Error(err)
	}
	if err := keep(5 * time.Second); !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "ahead of the clock by") {
		t.Errorf("a longer lead: %v", err)
	}
}

// A nil pointer is what a call returned whose error was ignored.
func TestANilPointerIsNoStoreAndNoSource(t *testing.T) {
	ctx, none := t.Context(), (*memstore.Store)(nil)
	for what, call := range map[string]func() error{
		"Inspect": func() error { _, err := lease.Inspect(ctx, none, "default"); return err },
		"Pools":   func() error { _, err := lease.Pools(ctx, none); return err },
		"Relax":   func() error { _, err := lease.Relax(ctx, none, "default"); return err },
		"Reclaim": func() error { _, err := lease.Reclaim(ctx, none, "default", 0, 0, time.Time{}); return err },
		"Open":    func() error { _, err := lease.Open(ctx, lease.Config{Store: none}); return err },
		"Lend":    func() error { _, _, err := lease.Lend(ctx, lease.Config{Store: none}, time.Second); return err },
		"Keep":    func() error { _, err := lease.Keep(ctx, (*wrapper)(nil), lease.Config{}); return err },
	} {
		if err := call(); !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "is a nil *") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
