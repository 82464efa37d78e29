package firn

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// The errors that callers test for with [errors.Is]. Most are matched by one of the types
// below, which say more.
var (
	// ErrSyntax is matched by every *[SyntaxError]: text that is not an id, layout, epoch or policy.
	ErrSyntax = errors.New("firn: malformed text")
	// ErrRange is matched by every *[RangeError]: a value that does not fit its field or limit.
	ErrRange = errors.New("firn: value out of range")
	// ErrClockBack is matched by every *[ClockBackError]: the clock went back and no policy could serve the call.
	ErrClockBack = errors.New("firn: clock moved back")
	// ErrFence is matched by every *[FenceError]: the lease ends before the time the next id would carry.
	ErrFence = errors.New("firn: fence reached")
	// ErrTimeExhausted is matched by every *[TimeExhaustedError]: the layout has no ticks left.
	ErrTimeExhausted = errors.New("firn: time exhausted")
	// ErrClosed is returned after Close or [Generator.Stop].
	ErrClosed = errors.New("firn: closed")
)

// A SyntaxError reports malformed text, or a field of a Config that must be set or must
// not be set: then it has only Field and Reason.
type SyntaxError struct {
	What   string // what was expected, such as "base58 id" or "layout"
	Text   string // the text as given, cut to a bounded length
	Reason string // what is wrong, and what is allowed
	Field  string // the field of the Config that is wrong, such as "Rollback"; empty if there is none
}

// maxQuoted bounds how much of a refused text an error repeats.
const maxQuoted = 64

// NewSyntaxError returns a *[SyntaxError] that repeats at most 64 bytes of text.
func NewSyntaxError(what, text, reason string) *SyntaxError {
	if len(text) > maxQuoted {
		end := maxQuoted
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return &SyntaxError{What: what, Text: text, Reason: reason}
}

func (e *SyntaxError) Error() string {
	if e.What == "" {
		return e.Reason
	}
	return fmt.Sprintf("%q is not a valid %s: %s", e.Text, e.What, e.Reason)
}

// Is reports whether target is [ErrSyntax].
func (e *SyntaxError) Is(target error) bool { return target == ErrSyntax }

// A RangeError reports a value outside what its field can hold.
type RangeError struct {
	What  string // the field, such as "worker" or "datacenter"
	Value string // the value as given
	Min   string // the least allowed value
	Max   string // the greatest allowed value
	Where string // what sets the limit, such as "layout 41/0/10/12"; may be empty
	Field string // the field of the Config that is wrong, such as "Window"; empty if there is none
}

// NewRangeError returns a *[RangeError] for integers.
func NewRangeError(what string, value, least, greatest int64, where string) *RangeError {
	return &RangeError{
		What: what, Value: fmt.Sprint(value), Min: fmt.Sprint(least), Max: fmt.Sprint(greatest), Where: where,
	}
}

func (e *RangeError) Error() string {
	s := fmt.Sprintf("%s %s is out of range: %s to %s are allowed", e.What, e.Value, e.Min, e.Max)
	if e.Min == e.Max {
		s = fmt.Sprintf("%s %s is out of range: only %s is allowed", e.What, e.Value, e.Min)
	}
	if e.Where != "" {
		s += " (" + e.Where + ")"
	}
	return s
}

// Is reports whether target is [ErrRange].
func (e *RangeError) Is(target error) bool { return target == ErrRange }

// A ClockBackError reports that the clock went back and that no rollback policy could
// serve the call. The generator stays usable.
type ClockBackError struct {
	By   time.Duration // how far the clock is behind its highest reading
	Now  time.Time     // its present reading
	Last time.Time     // its highest reading
	Why  string        // why the last policy could not serve; may be empty

	// Switch is the error of [Config.Switch], which Unwrap returns; nil if Switch was not
	// called or succeeded.
	Switch error
}

func (e *ClockBackError) Error() string {
	s := fmt.Sprintf("clock moved back by %v: it reads %s after %s", e.By, stamp(e.Now), stamp(e.Last))
	if e.Why != "" {
		s += "; " + e.Why
	}
	return s
}

// Is reports whether target is [ErrClockBack].
func (e *ClockBackError) Is(target error) bool { return target == ErrClockBack }

// Unwrap returns e.Switch.
func (e *ClockBackError) Unwrap() error { return e.Switch }

// A FenceError reports that the fence is reached because the lease has not been renewed
// in time. Once it is renewed, the generator issues ids again. If Revoked is set, the grant
// has ended at once ([Generator.Halt]), and only another grant helps.
type FenceError struct {
	Worker  int64
	Fence   time.Time // when the last tick that ids may carry begins; if Revoked, the last that they may have carried
	Tick    Tick      // that tick
	Revoked bool      // the grant was ended at once by [Generator.Halt], since another process may hold the same ticks
}

func (e *FenceError) Error() string {
	if e.Revoked {
		return fmt.Sprintf("the grant of worker %d was revoked: the generator continues when it has another grant", e.Worker)
	}
	return fmt.Sprintf("fence of worker %d reached at %s: the generator continues when the lease is renewed", e.Worker, stamp(e.Fence))
}

// Is reports whether target is [ErrFence].
func (e *FenceError) Is(target error) bool { return target == ErrFence }

// A TimeExhaustedError reports that a layout's time field has run out.
type TimeExhaustedError struct {
	Layout Layout
	End    time.Time // the first moment the time field cannot hold
}

func (e *TimeExhaustedError) Error() string {
	return fmt.Sprintf("layout %s ran out of time at %s: use more time bits, a longer unit or a later epoch",
		e.Layout, stamp(e.End))
}

// Is reports whether target is [ErrTimeExhausted].
func (e *TimeExhaustedError) Is(target error) bool { return target == ErrTimeExhausted }

// stamp returns the form in which errors write a time.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
