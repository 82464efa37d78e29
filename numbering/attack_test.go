package numbering_test

import (
	"context"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/numbering"
)

// machine is the machine's own time, whose wall clock can be set: readings of it
// have a monotonic part, which setting the clock leaves as it is.
type machine struct {
	firn.TimeSource
	set time.Duration // whole seconds
}

func (m *machine) Wall() time.Time {
	t := m.TimeSource.Wall()
	// The first word of a Time has the seconds above 30 bits of nanoseconds.
	*(*uint64)(unsafe.Pointer(&t)) += uint64(m.set/time.Second) << 30
	return t
}

// there is a store's clock, which is right.
type there struct{}

func (there) Now(context.Context) (time.Time, error) { return time.Now().Round(0), nil }

func TestTheMachinesOwnClockThatIsSetDoesNotChangeThePeriod(t *testing.T) {
	m := &machine{TimeSource: firn.SystemTime()}
	before := m.Wall()
	m.set = 400 * 24 * time.Hour
	after := m.Wall()
	if after.Sub(before) > time.Hour || after.Round(0).Sub(before.Round(0)) < m.set {
		t.Fatalf("a clock that was set reads %v after %v: package time keeps its readings otherwise than this test", after, before)
	}
	m.set = 0

	f := process(t, newStore(), numbering.Config{Template: "{yyyyMMdd}-{n:4}", Time: m, Clock: there{}})
	today := time.Now().UTC().Format("20060102")
	if text := next(t, f); text != today+"-0001" && time.Now().UTC().Format("20060102") == today {
		t.Fatal(text)
	}
	m.set = 400 * 24 * time.Hour
	if text := next(t, f); text >= time.Now().UTC().AddDate(0, 0, 2).Format("20060102") {
		t.Errorf("the clock was set 400 days forward, and the number is %s", text)
	}
}

func TestNobodyTakesMoreNumbersThanMemoryHolds(t *testing.T) {
	s := newStore()
	f := process(t, s, numbering.Config{Template: "{n:10}", Time: newClock("2026-11-21T09:00:00Z")})
	if _, err := f.Take(t.Context(), numbering.MaxTake+1); !errors.Is(err, firn.ErrRange) {
		t.Errorf("%v", err)
	}
	if text := next(t, f); text != "0000000001" {
		t.Errorf("the first number is %s: those that were refused are used up", text)
	}
}

func TestAllPeriodsUpToTheLastYearFit(t *testing.T) {
	f := process(t, newStore(), numbering.Config{Template: "{yyyyMMdd}{n:10}", Time: newClock("9999-12-31T23:59:59Z")})
	if text := next(t, f); text != "999912310000000001" {
		t.Error(text)
	}
}
