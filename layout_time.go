package firn

import (
	"math"
	"math/bits"
	"time"
)

// A Tick is the value of the time field: whole units since the layout's epoch.
type Tick int64

// latest is returned for all later times: layouts with many time bits and a long unit
// last longer than [time.Time] can express.
var latest = time.Unix(1<<62, 0).UTC()

// Time returns when a tick begins, in UTC. For ticks too late for [time.Time] (some 146
// billion years from now) it returns the latest time there is.
func (l Layout) Time(tick Tick) time.Time {
	negative := tick < 0
	count := uint64(tick)
	if negative {
		count = -count
	}
	hi, lo := bits.Mul64(count, uint64(l.unit))
	if hi >= uint64(time.Second) { // the quotient below would not fit 64 bits
		return latest
	}
	sec, nsec := bits.Div64(hi, lo, uint64(time.Second))
	if sec >= 1<<62 {
		return latest
	}
	if negative {
		return time.Unix(-int64(sec), l.epoch-int64(nsec)).UTC()
	}
	return time.Unix(int64(sec)+l.epoch/int64(time.Second), l.epoch%int64(time.Second)+int64(nsec)).UTC()
}

// Tick returns the tick that contains t. The error is a *[RangeError] if t is before the
// epoch and a *[TimeExhaustedError] if it is after the last tick.
func (l Layout) Tick(t time.Time) (Tick, error) {
	tick, _, ok := l.tickOf(t)
	switch {
	case ok:
		return tick, nil
	case tick < 0:
		return 0, &RangeError{
			What: "time", Value: stamp(t), Min: stamp(l.Epoch()), Max: stamp(l.Time(l.MaxTick())),
			Where: "the epoch and the end of layout " + l.Bits(),
		}
	default:
		return 0, &TimeExhaustedError{Layout: l, End: l.End()}
	}
}

// tickOf returns the tick that contains t, and whether t is exactly its beginning. If ok is
// false, t is before the epoch (tick is -1) or past the last tick (tick is MaxTick).
func (l Layout) tickOf(t time.Time) (tick Tick, exact, ok bool) {
	epoch := l.Epoch()
	if t.Before(epoch) {
		return -1, false, false
	}
	// Both are 64-bit, so the difference is below 2^64 and right as an unsigned number,
	// even if the subtraction overflows.
	sec := uint64(t.Unix()) - uint64(epoch.Unix())
	nsec := int64(t.Nanosecond()) - int64(epoch.Nanosecond())
	if nsec < 0 {
		sec, nsec = sec-1, nsec+int64(time.Second)
	}
	hi, lo := bits.Mul64(sec, uint64(time.Second))
	lo, carry := bits.Add64(lo, uint64(nsec), 0)
	hi += carry
	if hi >= uint64(l.unit) {
		return l.MaxTick(), false, false
	}
	quotient, rest := bits.Div64(hi, lo, uint64(l.unit))
	if quotient > uint64(l.MaxTick()) {
		return l.MaxTick(), false, false
	}
	return Tick(quotient), rest == 0, true
}

// End returns the first moment after the last tick, when the layout is exhausted.
func (l Layout) End() time.Time {
	last := l.Time(l.MaxTick())
	if last.Equal(latest) {
		return latest
	}
	return last.Add(l.Unit())
}

// Span returns the smallest and the largest id with a time at or after from and before to,
// for queries by time on a column of ids:
//
//	WHERE id BETWEEN lo AND hi
//
// A from before the epoch is raised to the epoch; a to past the end is lowered to the end.
// The error is a *[RangeError] if no tick begins in between.
func (l Layout) Span(from, to time.Time) (lo, hi ID, err error) {
	first, exact, ok := l.tickOf(from)
	past := false // no tick begins at or after from
	switch {
	case !ok && first < 0:
		first = 0
	case !ok || !exact && first == l.MaxTick():
		past = true
	case !exact:
		first++
	}
	last, exact, ok := l.tickOf(to)
	if ok && exact || last < 0 {
		last--
	}
	if past || first > last {
		return 0, 0, &RangeError{
			What: "span from " + stamp(from) + " to", Value: stamp(to),
			Min: "a tick of " + l.Unit().String() + " later", Max: stamp(l.End()),
			Where: "no tick of layout " + l.Bits() + " begins in between",
		}
	}
	shift := l.datacenter + l.worker + l.sequence
	return ID(uint64(first) << shift), ID(uint64(last)<<shift | mask(shift)), nil
}

// tickAt returns the tick that contains a time in Unix nanoseconds: negative before the
// epoch. If ok is false, the time is past the last tick.
func (l Layout) tickAt(ns int64) (tick Tick, ok bool) {
	unit := uint64(l.unit)
	if ns < l.epoch { // the differences are below 2^64, so they are right as unsigned numbers
		return -1 - Tick((uint64(l.epoch)-uint64(ns)-1)/unit&mask(maxBits)), true
	}
	q := (uint64(ns) - uint64(l.epoch)) / unit
	if q > uint64(l.MaxTick()) {
		return l.MaxTick(), false
	}
	return Tick(q), true
}

// nanos returns when a tick begins in Unix nanoseconds, at most the greatest
// int64 (the year 2262).
func (l Layout) nanos(tick Tick) int64 {
	hi, lo := bits.Mul64(uint64(tick), uint64(l.unit))
	if hi > 0 || lo > uint64(math.MaxInt64)-uint64(l.epoch) && l.epoch >= 0 {
		return math.MaxInt64
	}
	if sum := lo + uint64(l.epoch); l.epoch >= 0 || lo < uint64(-l.epoch) || sum <= math.MaxInt64 {
		return int64(sum)
	}
	return math.MaxInt64
}
