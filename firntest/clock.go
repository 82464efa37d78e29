// Package firntest helps to test programs that make ids: a [Clock] under the test's control plays clocks
// that go back, jump, drift and stand still, in no time. Give it to the generator, lease or namespace that
// your program uses, as the Time of its Config, and see what your program does with the errors:
//
//	clock := firntest.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
//	g, err := firn.New(7, firn.Config{Clock: firn.ClockWall, Time: clock})
//	if err != nil {
//		panic(err)
//	}
//	before, err := g.Next(ctx)
//	fmt.Println(before.Time(g.Layout()).Format(time.TimeOnly), err)
//	clock.Step(-time.Minute) // an operator corrects the clock
//	_, err = g.Next(ctx)
//	fmt.Println(errors.Is(err, firn.ErrClockBack))
//	clock.Pass(2 * time.Minute) // takes no time
//	after, err := g.Next(ctx)
//	fmt.Println(after > before, err)
//
// # When not to use it
//
// In production: the clock moves only when the test moves it. In a test whose ids need only be unique: leave
// Time unset. Code of yours that calls [time.Now] or has timers or deadlines does not see this Clock: it needs
// testing/synctest. Time-outs of calls of a store follow the system's clock too, whatever Time is.
//
// Use a Clock within testing/synctest too: the clock there never goes back, and begins in 2000, before Firn's default
// epoch. A lease needs both, since it works in the background: call synctest.Wait after each [Clock.Pass], or ids may
// be asked for before the lease was renewed, and fail with firn.ErrFence.
//
// For a store in a test, use package store/memstore; for workers without a store, lease.Fixed. To test a
// store of your own, use package store/storetest.
package firntest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/turns"
)

// A Clock is a firn.TimeSource that moves only when a test moves it, or when a caller sleeps: Sleep
// returns at once, and time has passed. So nothing waits. Use it as the Time of a firn.Config, also of a lease: that
// looks at its slot in the background, once for each Pass that is as long as a look, and renews it. A lease in use also
// ends its ids while a look is overdue; with a Clock, which moves faster than looks can begin, it does not. Buffers of
// packages prefetch and client sleep in the background after a failure, and so move it. Its methods may be called
// concurrently.
type Clock struct {
	manual // a lease treats such clocks in its own way

	mu    sync.Mutex
	mono  time.Duration
	wall  time.Time     // what the wall clock showed
	at    time.Duration // at this monotonic reading: it goes on from there at the rate
	rate  float64
	slept time.Duration
	later []*timer
}

type manual = turns.Manual

// A timer is a call that AfterFunc has promised.
type timer struct {
	at time.Duration
	do func()
}

// NewClock returns a clock whose wall clock starts at the given time.
func NewClock(at time.Time) *Clock { return &Clock{wall: at, rate: 1} }

// Wall returns the wall clock's time.
func (c *Clock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// now is Wall. It counts from where the rate began: to round each step would lose time.
func (c *Clock) now() time.Time {
	passed := c.mono - c.at
	if c.rate != 1 { // which is exact, however long
		passed = time.Duration(c.rate * float64(passed))
	}
	return c.wall.Add(passed)
}

// Monotonic returns the monotonic reading, which began at 0 and never goes back.
func (c *Clock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono
}

// Pass lets d pass on both clocks, and then makes the calls of AfterFunc that are due. It panics if d is negative: Step
// sets the wall clock back.
func (c *Clock) Pass(d time.Duration) {
	if d < 0 {
		panic("firntest: Pass(" + d.String() + "): time does not go back; Step sets the wall clock back")
	}
	c.mu.Lock()
	c.mono += d
	var due []func()
	c.later = slices.DeleteFunc(c.later, func(t *timer) bool {
		if t.at <= c.mono {
			due = append(due, t.do)
		}
		return t.at <= c.mono
	})
	c.mu.Unlock()
	for _, do := range due {
		do()
	}
}

// Step moves only the wall clock, forward or back.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

// Set sets only the wall clock.
func (c *Clock) Set(wall time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.at = wall, c.mono
}

// Rate makes the wall clock run at a rate from now on: 1 is right, 1.0005 drifts ahead, and at 0 it stands
// still. The monotonic clock always runs at 1.
func (c *Clock) Rate(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.at, c.rate = c.now(), c.mono, rate
}

// Sleep lets d pass at once, unless ctx has ended.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil || d <= 0 {
		return err
	}
	c.mu.Lock()
	c.slept += d
	c.mu.Unlock()
	c.Pass(d)
	return nil
}

// Slept returns how long callers of Sleep have slept in total.
func (c *Clock) Slept() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slept
}

// AfterFunc has do called once d has passed: by the call of Pass or Sleep that lets it pass, and in its goroutine.
func (c *Clock) AfterFunc(d time.Duration, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.later = append(c.later, &timer{c.mono + d, do})
}

// Timers returns how many calls of AfterFunc are pending.
func (c *Clock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.later)
}

// Idle waits, without moving the clock, until the test has let d pass: background work waits so, such as a
// lease between two looks at its slot, for which no caller waits.
func (c *Clock) Idle(ctx context.Context, d time.Duration) error {
	done := make(chan struct{})
	c.mu.Lock()
	own := &timer{c.mono + d, func() { close(done) }}
	c.later = append(c.later, own)
	c.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.later = slices.DeleteFunc(c.later, func(t *timer) bool { return t == own })
		return context.Cause(ctx)
	}
}
