package numbering_test

import (
	"context"
	"errors"
	"testing"
	"time"
	_ "time/tzdata" // the zones below, on every machine
	"unsafe"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/numbering"
)

// machine is the local time with a wall clock that can be set. Its readings have a
// monotonic part, which setting the clock does not change.
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

// there is the correct clock of a store.
type there struct{}

func (there) Now(context.Context) (time.Time, error) { return time.Now().Round(0), nil }

func TestSettingTheLocalSystemClockDoesNotChangeThePeriod(t *testing.T) {
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

func TestTakeRefusesMoreThanAMillionNumbers(t *testing.T) {
	s := newStore()
	f := process(t, s, numbering.Config{Template: "{n:10}", Time: newClock("2026-11-21T09:00:00Z")})
	if _, err := f.Reserve(t.Context(), 1<<20+1); !errors.Is(err, firn.ErrRange) {
		t.Errorf("%v", err)
	}
	if got := f.PerPeriod(); got != 9_999_999_999 {
		t.Errorf("there are %d", got)
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

// On some days clocks are set at midnight: midnight is skipped, or comes twice.
func TestAPeriodBeginsAtTheFirstMomentOfItsDate(t *testing.T) {
	for _, c := range []struct{ zone, template, text string }{
		{"America/Sao_Paulo", "{yyyyMMdd}-{n:3}", "20181104-001"}, {"America/Santiago", "{yyyyMMdd}-{n:3}", "20260906-001"},
		{"America/Havana", "{yyyyMMdd}-{n:3}", "20260308-001"}, {"America/Havana", "{yyyyMMdd}-{n:3}", "20261101-001"},
		{"Atlantic/Azores", "{yyyyMMdd}-{n:3}", "20260329-001"}, {"Asia/Beirut", "{yyyyMMdd}-{n:3}", "20260329-001"},
		{"Asia/Amman", "{yyyyMMdd}-{n:3}", "20211029-001"}, {"Asia/Amman", "{yyyyMMdd}-{n:3}", "20210326-001"},
		{"Asia/Tehran", "{yyyyMMdd}-{n:3}", "20210922-001"}, {"Asia/Tehran", "{yyyyMMdd}-{n:3}", "20210322-001"},
		{"Pacific/Apia", "{yyyyMMdd}-{n:3}", "20111231-001"}, {"America/Asuncion", "{yyyy-MM}-{n:3}", "2017-10-001"},
		{"Africa/Cairo", "{yyyyMMdd}-{n:3}", "20260424-001"}, {"America/Scoresbysund", "{yyyyMMdd}-{n:3}", "20260329-001"},
		{"Europe/Lisbon", "{yyyy}-{n:3}", "1912-001"}, {"Asia/Shanghai", "{yyyyMMdd}-{n:3}", "20261121-001"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		f := process(t, newStore(), numbering.Config{Template: c.template, Zone: zone, Time: newClock("2026-11-21T00:00:00Z")})
		n, err := f.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		layout := map[string]string{"{yyyyMMdd}-{n:3}": "20060102", "{yyyy-MM}-{n:3}": "2006-01", "{yyyy}-{n:3}": "2006"}[c.template]
		at, before := n.Begins.Format(layout)+"-001", n.Begins.Add(-time.Second).Format(layout)+"-001"
		if at != c.text || before >= c.text {
			t.Errorf("%s in %s begins at %v: that is of %s, a second before of %s", c.text, c.zone, n.Begins, at, before)
		}
		for ago := time.Minute; ago <= 3*time.Hour; ago += time.Minute {
			if n.Begins.Add(-ago).Format(layout)+"-001" == c.text {
				t.Errorf("%s in %s begins at %v, and has begun %v before", c.text, c.zone, n.Begins, ago)
				break
			}
		}
	}
}

func TestATemplateWithUnprintableCharactersIsRefused(t *testing.T) {
	for _, text := range []string{"INV\n{n:3}", "INV\x00{n:3}", "\u202e{n:3}", "\xff{n:3}", "\t{n:3}", "{n:3}\r"} {
		if _, err := numbering.New(numbering.Config{Template: text, Counter: within{}}); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := numbering.New(numbering.Config{Template: "№ 发票 {n:3}", Counter: within{}}); err != nil {
		t.Error(err)
	}
}
