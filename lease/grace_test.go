package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// A lagging store answers each call just within a look's patience, once it lags. It loses everything right after
// it has read a slot, and the next read of the slot hangs.
type lagging struct {
	store.Store
	takes time.Duration
	lags  atomic.Bool
	reads int // of slots, since it lags
	wipe  func()
}

func (*lagging) Traits() store.Traits { return store.Traits{} }

func (s *lagging) Get(ctx context.Context, key string) (store.Entry, error) {
	if s.lags.Load() && strings.Contains(key, "/slot/") {
		switch s.reads++; s.reads {
		case 1:
			entry, err := s.Store.Get(ctx, key)
			s.wipe()
			return entry, s.lag(ctx, err)
		case 2:
			<-ctx.Done()
			return store.Entry{}, store.ContextError(ctx)
		}
	}
	if err := s.lag(ctx, nil); err != nil {
		return store.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s *lagging) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if err := s.lag(ctx, nil); err != nil {
		return store.Entry{}, err
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

// lag lasts as long as a call, and returns err unless ctx ends before.
func (s *lagging) lag(ctx context.Context, err error) error {
	if !s.lags.Load() {
		return err
	}
	select {
	case <-time.After(s.takes):
		return err
	case <-ctx.Done():
		return store.ContextError(ctx)
	}
}

// A hangingRelease never releases the worker that its holder has left.
type hangingRelease struct {
	*poolSource
	left int64
}

func (h hangingRelease) Release(ctx context.Context, g firn.Grant, last firn.Tick) error {
	if g.Worker != h.left {
		return h.poolSource.Release(ctx, g, last)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// A store loses a slot right after its holder has read it, and answers as slowly as newcomers allow for; one look hangs.
// The holder's alarm comes before a newcomer has waited, whatever the time between two looks, and also while a release
// hangs.
func TestTheSlowestLookComesWithinTheGrace(t *testing.T) {
	for _, look := range []time.Duration{minLook, 500 * time.Millisecond, 2 * time.Second, defaultLook} {
		for _, releases := range []bool{false, true} {
			t.Run(fmt.Sprint(look, " ", releases), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { losesASlot(t, look, releases) })
			})
		}
	}
}

func losesASlot(t *testing.T, look time.Duration, releases bool) {
	time.Sleep(time.Until(noon))
	mem := memstore.New(nil)
	cfg := Config{Look: look, Window: time.Hour, Generator: firn.Config{Layout: layout("41/0/0/12"), Random: rand.New(rand.NewPCG(1, 1)).Uint64}}
	slow := &lagging{Store: mem, takes: patience(look) * 99 / 100}
	joined := make(chan error)
	slow.wipe = func() {
		mem.Restore(nil)
		cfg := cfg
		cfg.Generator.Random = rand.New(rand.NewPCG(2, 2)).Uint64
		cfg.Store = clocked{&scripted{Store: mem, call: func(string, string) error { return nil }}}
		go func() {
			l, err := Open(t.Context(), cfg)
			if err == nil {
				err = fmt.Errorf("it has worker %d", l.State().Worker)
			}
			joined <- err
		}()
	}
	own := cfg
	own.Store = slow
	source := must(newPoolSource(own))
	var of Source = source
	if releases {
		of = hangingRelease{source, 9}
	}
	l := must(start(t.Context(), of, own))
	if releases {
		l.left = []pendingRelease{{grant: firn.Grant{Worker: 9, Through: l.grant.Through}}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go l.run(ctx)
	time.Sleep(4*look + look/2) // of virtual time: it is between two looks
	slow.lags.Store(true)
	if err := <-joined; !strings.Contains(err.Error(), "is full") {
		t.Errorf("a newcomer while the holder is alive: %v", err)
	}
	cancel()
	<-l.done
}

// A source whose calls for the first worker hang.
type hangsFirst struct {
	*leaver
	looks chan int64
}

func (h hangsFirst) Renew(ctx context.Context, held firn.Grant, _ Ask) (firn.Grant, error) {
	return held, h.Look(ctx, held)
}

func (h hangsFirst) Look(ctx context.Context, held firn.Grant) error {
	if held.Worker == 1 {
		h.looks <- held.Worker
		<-ctx.Done()
		return context.Cause(ctx)
	}
	select {
	case h.looks <- held.Worker:
	default:
	}
	return nil
}

// While a look hangs, a caller switches to another worker, because the clock went back.
func TestACallForTheFormerWorkerDoesNotDelayTheLookAtAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		clock := &offset{}
		source := hangsFirst{&leaver{give: []int64{1, 2}}, make(chan int64)}
		l := must(Keep(t.Context(), source, Config{Window: time.Minute, Generator: firn.Config{
			Layout: layout("41/0/4/12"), Time: clock, Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}}}))
		<-source.looks
		must(l.Next(t.Context()))
		clock.wall.Store(int64(-3 * time.Second))
		must(l.Next(t.Context()))
		switched := time.Now()
		if worker, after := <-source.looks, time.Since(switched); worker != 2 || after > time.Second {
			t.Errorf("worker %d is looked at first, %v after the switch", worker, after)
		}
		clock.wall.Store(0)
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A switching clock has a caller switch to another worker, because the clock went back, as soon as a time-out begins.
type switchingClock struct {
	*machine
	next func()
}

func (c *switchingClock) Go(do func()) { go do() }

func (c *switchingClock) Wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *switchingClock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if next := c.next; next != nil {
		c.next = nil
		next()
	}
	return context.WithTimeout(ctx, d)
}

// lasting remembers the last ticks of the workers that are released. Its grants begin at the present.
type lasting struct {
	*leaver
	last map[int64]firn.Tick
}

func (s lasting) Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error) {
	g, err := s.leaver.Acquire(ctx, ask)
	g.After = ask().Now - 1
	return g, err
}

func (s lasting) Release(_ context.Context, g firn.Grant, last firn.Tick) error {
	s.last[g.Worker] = last
	return nil
}

// A worker is halted and released; in between a caller switches to another, whose ticks are lower.
func TestAHaltedWorkerIsReleasedAtItsOwnLastTick(t *testing.T) {
	clock := &switchingClock{machine: newMachine()}
	source := lasting{&leaver{give: []int64{1, 2}}, map[int64]firn.Tick{}}
	l := must(start(t.Context(), source, Config{Generator: firn.Config{
		Layout: layout("41/0/4/12"), Time: clock, Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}}}))
	clock.Pass(10 * time.Second)
	must(l.Next(t.Context()))
	used := l.gen.State().Last
	clock.next = func() {
		clock.Step(-5 * time.Second)
		must(l.Next(t.Context()))
	}
	l.halt(t.Context(), l.grant, overlap("for a test"))
	if last, ok := source.last[1]; !ok || last != used || l.State().Worker != 2 {
		t.Errorf("worker 1 is released at tick %d (%t), and has ids up to %d; worker %d is in use", last, ok, used, l.State().Worker)
	}
}
