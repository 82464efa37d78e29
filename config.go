package firn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A ClockKind says how a generator reads time.
type ClockKind uint8

const (
	// ClockSteady reads the wall clock at the start and counts on with the monotonic
	// clock, so the times in its ids never go back. If the wall clock stays ahead, it catches
	// up within seconds. If the wall clock is behind, it returns to the last id issued, and
	// runs slower by a sixteenth until the two agree.
	ClockSteady ClockKind = iota
	// ClockWall reads the wall clock for each id, as the classic generators do.
	// [Config.Rollback] says what happens when it goes back.
	ClockWall
	// ClockVirtual reads no clock: the tick advances when its sequence is used up.
	ClockVirtual
)

var clockNames = []string{ClockSteady: "steady", ClockWall: "wall", ClockVirtual: "virtual"}

// String returns the name [ParseClock] reads.
func (k ClockKind) String() string {
	if int(k) < len(clockNames) {
		return clockNames[k]
	}
	return fmt.Sprintf("ClockKind(%d)", uint8(k))
}

// ParseClock reads "steady", "wall" or "virtual"; errors match [ErrSyntax].
func ParseClock(text string) (ClockKind, error) {
	if i := slices.Index(clockNames, text); i >= 0 {
		return ClockKind(i), nil
	}
	return ClockSteady, NewSyntaxError("clock", text, "steady, wall and virtual are allowed")
}

// A SequenceStart says where the sequence begins in a new tick.
type SequenceStart uint8

const (
	// StartCarry continues from the last tick's sequence; the first is random. Ids made
	// one per tick then spread evenly over shards chosen by id modulo N.
	StartCarry SequenceStart = iota
	// StartZero begins at 0, as the classic generators do. Ids made one per tick
	// are then all divisible by the length of the sequence, so they all fall into one shard.
	StartZero
	// StartRandom begins at a random number below [Config.StartBelow].
	StartRandom
)

var startNames = []string{StartCarry: "carry", StartZero: "zero", StartRandom: "random"}

// String returns the name [ParseSequenceStart] reads.
func (s SequenceStart) String() string {
	if int(s) < len(startNames) {
		return startNames[s]
	}
	return fmt.Sprintf("SequenceStart(%d)", uint8(s))
}

// ParseSequenceStart reads "carry", "zero" or "random"; errors match [ErrSyntax].
func ParseSequenceStart(text string) (SequenceStart, error) {
	if i := slices.Index(startNames, text); i >= 0 {
		return SequenceStart(i), nil
	}
	return StartCarry, NewSyntaxError("sequence start", text, "carry, zero and random are allowed")
}

// Config configures [New]. Its zero value gives a generator in the default layout
// on a steady clock.
type Config struct {
	// Layout of the ids. Default: [DefaultLayout].
	Layout Layout

	// Datacenter goes into each id, from 0 to [Layout.MaxDatacenter]. Default: 0.
	Datacenter int64

	// Clock is where time comes from. Default: [ClockSteady].
	Clock ClockKind

	// Rollback is the chain of policies tried, in order, when the clock goes back.
	// Only allowed with [ClockWall]. Default: refuse.
	Rollback Rollback

	// Ahead bounds how far ids may run ahead of the clock: when a burst has used up
	// the sequence of a tick, it continues with later ticks. A generator also starts that far ahead of the
	// clock. With ClockWall, Ahead also hides smaller steps back of the clock. At most 8760h; negative means 0.
	//
	// Default: 10ms with ClockSteady; 0 with ClockWall, as [History] requires; no bound with
	// ClockVirtual, where a positive Ahead makes the generator read the clock once per tick.
	Ahead time.Duration

	// With Lag, times in ids may be behind the clock by about this much, so that most calls
	// need not read it: it is read sixteen times in Lag, as long as ids are made at a steady
	// rate, and a timer drops a reading that is Lag old. This is no hard limit: busy processors
	// delay timers by up to 10ms, and after a pause of the process (SIGSTOP, a suspended machine)
	// a few ids may be older. Order, fences and uniqueness do not depend on Lag. With
	// ClockWall a step back of the clock is also noticed later by as much.
	//
	// From 100µs to 1s; 1ms is a good value. Time needs the method AfterFunc: see [TimeSource].
	// Not for ClockVirtual, which reads no clock. Default: 0, each call reads the clock.
	Lag time.Duration

	// From is the time at which ClockVirtual starts. Default: the present.
	From time.Time

	// Start says where the sequence begins in a new tick. Default: [StartCarry].
	Start SequenceStart
	// StartBelow bounds [StartRandom]: begin below this number, at most the
	// length of the sequence. The rest of the sequence is left for a burst in
	// its first tick. Default: half the sequence.
	StartBelow int64

	// Switch acquires another worker for the policy [SwitchWorker]; its ids begin at
	// tick from. Switch must not ask the generator for ids: those calls wait until
	// Switch has returned. If it returns after [Generator.Stop], its worker is not used: whoever stopped
	// the generator gives it back. It is required if Rollback has that policy. Package lease provides it.
	Switch func(ctx context.Context, from Tick) (Grant, error)

	// Unfenced is set where no store records the fence: the next process with this worker starts by the clock alone, at
	// [Config.Lead] above it. So ClockSteady stays within 2 ms of the wall clock, also between two looks. [New] sets it,
	// and so does package lease for workers without a store.
	Unfenced bool

	// AtFence, if set, is called when the fence prevents an id, with the error for that. It may wait for the fence to
	// move: if it returns nil, the call tries again, else it fails with what AtFence returns. Package lease provides it.
	AtFence func(ctx context.Context, at *FenceError) error

	// Retired, if set, is called after the generator has changed workers, through Switch
	// or Replace. Last is the last tick that ids of the old worker may carry. Retired
	// must not call the generator.
	Retired func(old, next int64, last Tick)

	// Time is the source of time; tests replace it. Default: [SystemTime].
	Time TimeSource
	// Random returns 64 random bits, for Start. A generator calls it under a lock. A
	// lease also uses it, to choose workers and backoff, and calls it concurrently.
	// Default: math/rand/v2.
	Random func() uint64
}

// A Grant is the right to issue ids of one worker with times after one tick, up to
// and including another. A lease grants such intervals.
type Grant struct {
	Worker  int64
	After   Tick // the fence before: no id has this tick or an earlier one; -1 allows all from tick 0
	Through Tick // the fence: no id has a later tick; -1 allows no id
}

const (
	defaultAhead = 10 * time.Millisecond
	maxAhead     = 8760 * time.Hour
	minLag       = 100 * time.Microsecond
	maxLag       = time.Second
)

// check fills in defaults and reports all invalid settings at once.
func (cfg *Config) check() error {
	cfg.Layout = cmp.Or(cfg.Layout, DefaultLayout())
	cfg.Time = cmp.Or(cfg.Time, SystemTime())
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	l := cfg.Layout
	where := "layout " + l.Bits()
	var errs []error
	bound := func(field, what string, value, least, greatest int64, where string) {
		if value < least || value > greatest {
			e := NewRangeError(what, value, least, greatest, where)
			e.Field = field
			errs = append(errs, e)
		}
	}
	bound("Datacenter", "datacenter", cfg.Datacenter, 0, l.MaxDatacenter(), where)
	bound("Clock", "clock", int64(cfg.Clock), 0, int64(ClockVirtual), "ClockSteady, ClockWall or ClockVirtual")
	bound("Start", "sequence start", int64(cfg.Start), 0, int64(StartRandom), "StartCarry, StartZero or StartRandom")
	if cfg.Ahead > maxAhead {
		errs = append(errs, &RangeError{Field: "Ahead", What: "ahead", Value: cfg.Ahead.String(), Min: "0", Max: maxAhead.String()})
	}
	errs = append(errs, cfg.checkLag())
	if cfg.StartBelow != 0 && cfg.Start != StartRandom {
		errs = append(errs, &SyntaxError{Field: "StartBelow", Reason: "only StartRandom begins below a number: leave StartBelow out, or choose that start"})
	}
	if !cfg.From.IsZero() && cfg.Clock != ClockVirtual {
		errs = append(errs, &SyntaxError{Field: "From", Reason: "only a virtual clock begins at a given time: leave From out, or choose that clock"})
	}
	if cfg.StartBelow == 0 {
		cfg.StartBelow = l.MaxSequence()/2 + 1
	}
	bound("StartBelow", "start below", cfg.StartBelow, 1, saturatingAdd(l.MaxSequence(), 1), "sequence of "+where)
	rollback := func(what, reason string) {
		e := NewSyntaxError("rollback chain "+what, cfg.Rollback.String(), reason)
		e.Field = "Rollback"
		errs = append(errs, e)
	}
	if len(cfg.Rollback) > 0 && cfg.Clock != ClockWall {
		rollback("for clock "+cfg.Clock.String(), "that clock never goes back; choose clock wall or no rollback")
	}
	errs = append(errs, cfg.Rollback.check())
	bound("Rollback", "ahead ticks", max(int64(cfg.Rollback.find(policyAhead).ticks), 0), 0, int64(maxAhead)/l.unit, maxAhead.String()+" of "+where)
	if cfg.Rollback.find(policyHistory).kind != 0 && cfg.Ahead > 0 {
		errs = append(errs, &RangeError{
			Field: "Ahead", What: "ahead", Value: cfg.Ahead.String(), Min: "0", Max: "0",
			Where: "the policy history needs ids that do not run ahead of the clock",
		})
	}
	if cfg.Rollback.find(policySwitch).kind != 0 && cfg.Switch == nil {
		rollback("without other workers", "the policy switch needs Config.Switch, which a lease provides")
	}
	return errors.Join(errs...)
}

func (cfg *Config) checkLag() error {
	_, ok := cfg.Time.(timers)
	switch {
	case cfg.Lag == 0:
		return nil
	case cfg.Clock == ClockVirtual:
		return &SyntaxError{Field: "Lag", Reason: "a virtual clock has no lag: it reads no clock; remove the lag or choose clock steady or wall"}
	case cfg.Lag < minLag || cfg.Lag > maxLag:
		return &RangeError{
			Field: "Lag", What: "lag", Value: cfg.Lag.String(), Min: minLag.String(), Max: maxLag.String(), Where: "or 0 to read the clock for each id",
		}
	case !ok:
		return &SyntaxError{Field: "Lag", Reason: "a lag needs a Config.Time with the method AfterFunc(time.Duration, func())"}
	}
	return nil
}

// Lead returns how far ids may run ahead of the wall clock under cfg: Ahead, or its default, or
// the ticks of [RunAhead] if these are more; and 2 ms more for ClockSteady, which may itself be
// ahead by that. It is 0 for ClockVirtual without a bound, which has no clock to be ahead of.
func (cfg Config) Lead() time.Duration {
	cfg.Layout = cmp.Or(cfg.Layout, DefaultLayout())
	lead := max(cfg.aheadNanos(), 0)
	if cfg.Clock == ClockSteady {
		lead = saturatingAdd(lead, steadySlack)
	}
	unit := cfg.Layout.unit
	return time.Duration(max(lead, unit*min(int64(cfg.Rollback.find(policyAhead).ticks), math.MaxInt64/unit)))
}

// aheadNanos returns the lead in ns as the core uses it.
func (cfg *Config) aheadNanos() int64 {
	switch {
	case cfg.Ahead > 0:
		return int64(cfg.Ahead)
	case cfg.Ahead == 0 && cfg.Clock == ClockSteady:
		return int64(defaultAhead)
	case cfg.Ahead == 0 && cfg.Clock == ClockVirtual:
		return -1
	default:
		return 0
	}
}

// checkGrant returns an error for a grant that does not fit the layout.
func checkGrant(l Layout, g Grant) error {
	if g.Worker < 0 || g.Worker > l.MaxWorker() {
		return NewRangeError("worker", g.Worker, 0, l.MaxWorker(), "layout "+l.Bits())
	}
	if g.After < -1 || g.After > l.MaxTick() {
		return NewRangeError("tick of the worker's fence", int64(g.After), -1, int64(l.MaxTick()), "layout "+l.Bits())
	}
	return checkFence(g.Through)
}

// checkFence returns an error for a tick below -1. A fence past the layout's last tick
// is allowed: it limits nothing.
func checkFence(through Tick) error {
	if through < -1 {
		return NewRangeError("tick to move the fence to", int64(through), -1, math.MaxInt64, "-1 allows no id")
	}
	return nil
}

// unbounded is the fence of a worker that is not leased.
const unbounded = Tick(math.MaxInt64)
