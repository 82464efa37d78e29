package numbering_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

func newClock(at string) *firntest.Clock {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	return firntest.NewClock(t)
}

// counterOf returns a counter of its own sequences.
func counterOf(t *testing.T, cfg sequence.Config, name string) *sequence.Namespace {
	t.Helper()
	all, err := sequence.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := all.Namespace(name)
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

// process returns a format with its own counter in the shared store.
func process(t *testing.T, s *storetest.Faulty, cfg numbering.Config) *numbering.Format {
	t.Helper()
	cfg.Counter = counterOf(t, sequence.Config{Store: s}, "orders")
	f, err := numbering.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func newStore() *storetest.Faulty { return storetest.NewFaulty(memstore.New(nil)) }

func next(t *testing.T, f *numbering.Format) string {
	t.Helper()
	text, err := f.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestNumbersStartAtOneInEachPeriod(t *testing.T) {
	for _, test := range []struct {
		template string
		step     time.Duration
		want     []string
	}{
		{"ORD{yyyyMMdd}-{n:6}", 9 * time.Hour, []string{
			"ORD20261130-000001", "ORD20261130-000002", "ORD20261201-000001", "ORD20261201-000002", "ORD20261201-000003", "ORD20261202-000001",
		}},
		{"{n:3}/{yyyy-MM}", 20 * 24 * time.Hour, []string{"001/2026-11", "001/2026-12", "001/2027-01", "002/2027-01", "001/2027-02", "001/2027-03"}},
		{"R{yy}.{n:2}", 200 * 24 * time.Hour, []string{"R26.01", "R27.01", "R28.01", "R28.02", "R29.01", "R29.02"}},
		{"INV-{n:4}", 1000 * time.Hour, []string{"INV-0001", "INV-0002", "INV-0003"}},
		{"{dd}.{MM}.{yyyy} {n:1}", 24 * time.Hour, []string{"30.11.2026 1", "01.12.2026 1", "02.12.2026 1"}},
	} {
		c := newClock("2026-11-30T08:00:00Z")
		f := process(t, newStore(), numbering.Config{Template: test.template, Time: c})
		for i, want := range test.want {
			got := next(t, f)
			if got != want {
				t.Errorf("%s: number %d is %s, want %s", test.template, i, got, want)
			}
			n, err := f.Parse(got)
			if err != nil || n.N < 1 || test.template != "INV-{n:4}" && n.Begins.After(c.Wall()) {
				t.Errorf("%s is read as %+v, %v", got, n, err)
			}
			if text, err := f.Text(n.ID); text != got || err != nil {
				t.Errorf("%s is number %d of the counter, which reads %q, %v", got, n.ID, text, err)
			}
			c.Pass(test.step)
		}
	}
}

// A process whose clock is behind continues in the new period: yesterday's numbers are
// never issued again.
func TestStartIsTheLeastNumberOfEachPeriod(t *testing.T) {
	s, c := newStore(), newClock("2026-12-30T08:00:00Z")
	at := func(start int64, want ...string) {
		t.Helper()
		f := process(t, s, numbering.Config{Template: "INV{yyyy}-{n:3}", Start: start, Time: c})
		for _, want := range want {
			if got := next(t, f); got != want {
				t.Errorf("from %d: %s, want %s", start, got, want)
			}
		}
	}
	at(0, "INV2026-001")
	at(60, "INV2026-060", "INV2026-061") // it goes on below
	at(7, "INV2026-062")
	c.Pass(7 * 24 * time.Hour)
	at(60, "INV2027-060")
	for _, start := range []int64{-1, 1000} {
		_, err := numbering.New(numbering.Config{Template: "{n:3}", Counter: within{}, Start: start})
		var outside *firn.RangeError
		if !errors.As(err, &outside) || outside.Field != "Start" || !strings.Contains(err.Error(), "1 to 999") {
			t.Errorf("from %d: %v", start, err)
		}
	}
}

func TestAPeriodChangesOnceForAllProcesses(t *testing.T) {
	s := newStore()
	early, late := newClock("2026-11-20T23:59:58+08:00"), newClock("2026-11-20T23:59:50+08:00")
	zone := time.FixedZone("UTC+8", 8*60*60)
	a := process(t, s, numbering.Config{Template: "{yyyyMMdd}{n:3}", Zone: zone, Time: early})
	b := process(t, s, numbering.Config{Template: "{yyyyMMdd}{n:3}", Zone: zone, Time: late})
	want := []string{"20261120001", "20261120002", "20261121001", "20261121002", "20261121003"}
	got := []string{next(t, a), next(t, b)}
	early.Pass(3 * time.Second) // past midnight here, but not yet there
	got = append(got, next(t, a), next(t, b))
	late.Pass(time.Minute)
	if got = append(got, next(t, b)); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, want %v", got, want)
	}
}

// ahead is a store whose clock is an hour ahead of all processes.
type ahead struct{ at *firntest.Clock }

func (a ahead) Now(context.Context) (time.Time, error) { return a.at.Wall().Add(time.Hour), nil }

func TestTheStoresClockDecidesWhenAPeriodBegins(t *testing.T) {
	c := newClock("2026-11-20T23:30:00Z")
	f := process(t, newStore(), numbering.Config{Template: "{yyyyMMdd}{n:3}", Time: c, Clock: ahead{c}})
	if got := next(t, f); got != "20261121001" {
		t.Errorf("got %s; it is tomorrow in the store", got)
	}
}

// A clocked store has a clock.
type clocked struct {
	store.Store
	clock store.Clock
}

func (c clocked) Traits() store.Traits { return store.Traits{Clock: c.clock} }

func TestTheClockOfTheCountersStoreIsTheDefault(t *testing.T) {
	c := newClock("2026-11-20T23:30:00Z")
	orders := counterOf(t, sequence.Config{Store: clocked{newStore(), ahead{c}}}, "orders")
	f, err := numbering.New(numbering.Config{Template: "{yyyyMMdd}{n:3}", Time: c, Counter: orders})
	if err != nil {
		t.Fatal(err)
	}
	if got := next(t, f); got != "20261121001" {
		t.Errorf("got %s; it is tomorrow in the store", got)
	}
}

// After the local clock was set, the store's clock is read again.
func TestSettingTheLocalClockDoesNotChangeThePeriod(t *testing.T) {
	c := firntest.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	there := &steady{at: c}
	f := process(t, newStore(), numbering.Config{Template: "{yyyyMMdd}{n:3}", Time: c, Clock: there})
	got := []string{next(t, f)}
	c.Step(20 * time.Hour) // tomorrow here, not there
	got = append(got, next(t, f), next(t, f))
	c.Pass(30 * time.Second)
	got = append(got, next(t, f))
	if want := "20261120001 20261120002 20261120003 20261120004"; strings.Join(got, " ") != want || there.asked != 2 {
		t.Errorf("got %v, want %s; the store's clock was asked %d times, want 2", got, want, there.asked)
	}
	c.Pass(2 * time.Minute)
	if next(t, f); there.asked != 3 {
		t.Errorf("the store's clock was asked %d times after two minutes", there.asked)
	}
}

// steady is a store's clock that is never set.
type steady struct {
	at    *firntest.Clock
	asked int
}

func (s *steady) Now(context.Context) (time.Time, error) {
	s.asked++
	return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(s.at.Monotonic()), nil
}

func TestAFullPeriodIsAnErrorAndTheNextPeriodWorks(t *testing.T) {
	c := newClock("2026-12-31T12:00:00Z")
	f := process(t, newStore(), numbering.Config{Template: "{yyyy}-{n:1}", Time: c})
	if _, err := f.Reserve(context.Background(), 8); err != nil {
		t.Fatal(err)
	}
	if all, err := f.Reserve(context.Background(), 2); !errors.Is(err, numbering.ErrExhausted) {
		t.Errorf("%v, %v", all, err)
	}
	if got := next(t, f); got != "2026-9" {
		t.Errorf("after a call that did not fit: %s", got)
	}
	for range 3 {
		if text, err := f.Next(context.Background()); !errors.Is(err, numbering.ErrExhausted) || !strings.Contains(err.Error(), "has 9 numbers in a year") {
			t.Errorf("%s, %v", text, err)
		}
	}
	c.Pass(24 * time.Hour)
	if got := next(t, f); got != "2027-1" {
		t.Errorf("in the next year: %s", got)
	}
}

// Several processes with different clocks, changing days, and a store that loses answers.
func TestNoNumberIsIssuedTwice(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	s := newStore()
	s.Script = func(c storetest.Call) storetest.Outcome {
		if c.Op == storetest.OpCompareAndSwap && c.N%5 == 0 {
			return []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied}[c.N/5%2]
		}
		return storetest.Pass
	}
	seen := map[string]bool{}
	last := ""
	clocks := make([]*firntest.Clock, 4)
	formats := make([]*numbering.Format, 4)
	for i := range formats {
		clocks[i] = newClock(fmt.Sprintf("2026-11-20T12:%02d:00Z", 10*i))
		formats[i] = process(t, s, numbering.Config{Template: "{yyyyMMdd}{n:6}", Time: clocks[i]})
	}
	for range 3000 {
		i := random.IntN(len(formats))
		for _, c := range clocks {
			c.Pass(time.Duration(random.IntN(10)) * time.Minute)
		}
		all, err := formats[i].Reserve(context.Background(), 1+random.IntN(3))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range all {
			if seen[text] || text <= last {
				t.Fatalf("%s after %s", text, last)
			}
			seen[text], last = true, text
		}
	}
	if len(seen) < 5000 || last < "20261128" {
		t.Errorf("%d numbers, the last is %s", len(seen), last)
	}
}

func TestInvalidTemplatesAndTextsAreRefused(t *testing.T) {
	counter := &counting{}
	for _, template := range []string{
		"", "x", "{n:0}", "{n:11}", "{n:}", "{n}", "{n:6", "n:6}", "{n:6}{n:6}", "{n:6}{MM}", "{n:6}{yyyydd}", "{n:6}{yyyy}{yyyy}", "{n:6}{yyyyMMyy}",
		"{n:6}{HH}", "{n:6}{}", "{n:+6}", "{n:06}", strings.Repeat("x", 300) + "{n:6}",
	} {
		if f, err := numbering.New(numbering.Config{Template: template, Counter: counter}); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%q was read as %v, %v", template, f, err)
		}
	}
	if _, err := numbering.New(numbering.Config{Template: "{n:6}"}); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("without a counter: %v", err)
	}
	if _, err := numbering.New(numbering.Config{Template: "{n:6}", Counter: counter, Clock: (*mute)(nil)}); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("with a clock that is nil: %v", err)
	}
	f, err := numbering.New(numbering.Config{Template: "A{yyyyMMdd}-{n:4}", Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "A20261121-000", "A20261121-00001", "B20261121-0001", "A20261321-0001", "A20261131-0001", "A20260229-0001", "A2026112x-0001",
		"A20261121-0000", "A20261121_0001", "A20261121-+001", "A00000000-0001",
	} {
		if n, err := f.Parse(text); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%q was read as %+v, %v", text, n, err)
		}
	}
	for _, n := range []int{0, -1, 10_000} {
		if all, err := f.Reserve(context.Background(), n); !errors.Is(err, firn.ErrRange) {
			t.Errorf("%d numbers: %v, %v", n, all, err)
		}
	}
}

// counting is a counter that is used for something else.
type counting struct {
	plain
	id firn.ID
}

func (c *counting) ReserveIn(_ context.Context, n int, _ firn.ID, _ int64) (firn.ID, error) {
	c.id += firn.ID(n)
	return c.id, nil
}

func TestACounterUsedForSomethingElseIsDetected(t *testing.T) {
	f, err := numbering.New(numbering.Config{Template: "{yyyyMMdd}{n:4}", Counter: &counting{}})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := f.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "used for something else") {
		t.Errorf("%s, %v", text, err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"ORD{yyyyMMdd}-{n:6}", "{n:3}/{yyyy-MM}", "R{yy}.{n:2}", "{n:1}", "{{n:2}}", "}{"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, template string) {
		c := newClock("2026-11-30T08:00:00Z")
		counter := within{}
		format, err := numbering.New(numbering.Config{Template: template, Counter: counter, Time: c})
		if err != nil {
			if !errors.Is(err, firn.ErrSyntax) {
				t.Fatalf("%q: %v", template, err)
			}
			return
		}
		text, err := format.Next(context.Background())
		if err != nil {
			t.Fatalf("%q: %v", template, err)
		}
		if n, err := format.Parse(text); err != nil || n.N != 1 {
			t.Fatalf("%q makes %q, which is read as %+v, %v", template, text, n, err)
		}
	})
}

// within is a counter that always issues the first number of a block.
type within struct{ plain }

// plain has what a counter without a clock has beside ReserveIn.
type plain struct{}

func (plain) Declare(string) error   { return nil }
func (plain) Clock() store.Clock     { return nil }
func (plain) Timeout() time.Duration { return 5 * time.Second }

func (within) ReserveIn(_ context.Context, _ int, above firn.ID, _ int64) (firn.ID, error) {
	return above + 1, nil
}

func BenchmarkNext(b *testing.B) {
	f, err := numbering.New(numbering.Config{Template: "ORD{yyyyMMdd}-{n:6}", Counter: within{}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := f.Next(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTheFormatSaysHowOftenNumbersRestart(t *testing.T) {
	for template, want := range map[string]string{"{n:3}": "", "{yyyy}-{n:3}": "year", "{yy}{MM}{n:3}": "month", "{yyyyMMdd}{n:3}": "day"} {
		if got := process(t, newStore(), numbering.Config{Template: template}).Period(); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
}

func TestAFormatSaysWhatIsLeftOfThePresentPeriod(t *testing.T) {
	zone := time.FixedZone("+08:00", 8*60*60)
	for _, test := range []struct {
		template string
		start    int64
		last     firn.ID
		want     int64
	}{
		{"A{n:3}", 0, 0, 999},
		{"A{n:3}", 0, 998, 1},
		{"A{n:3}", 0, 999, 0},
		{"A{n:3}", 990, 5, 10},
		{"A{yyyyMMdd}{n:3}", 0, 20261120_998, 999}, // of yesterday
		{"A{yyyyMMdd}{n:3}", 0, 20261121_998, 1},
		{"A{yyyyMMdd}{n:3}", 0, 20261122_998, 1}, // others are there already
		{"A{yyyyMMdd}{n:3}", 900, 20261121_005, 100},
		{"A{yyyy}{n:3}", 0, 2026_100, 899},
	} {
		f := process(t, newStore(), numbering.Config{Template: test.template, Start: test.start, Zone: zone, Time: newClock("2026-11-20T16:00:00Z")})
		if got := f.Left(test.last); got != test.want {
			t.Errorf("%s from %d after %d: %d, want %d", test.template, test.start, test.last, got, test.want)
		}
	}
	f := process(t, newStore(), numbering.Config{Template: "A{yyyyMMdd}{n:3}", Time: newClock("2026-11-20T23:30:00Z"), Clock: ahead{newClock("2026-11-20T23:30:00Z")}})
	if text := next(t, f); text != "A20261121001" {
		t.Fatal(text)
	}
	if got := f.Left(20261120_998); got != 999 {
		t.Errorf("%d are left by the store's clock", got)
	}
}

// shaky is a clock that panics at the next reading, once that is set.
type shaky struct {
	firn.TimeSource
	next bool
}

func (s *shaky) Wall() time.Time {
	if s.next {
		s.next = false
		panic("shaky")
	}
	return s.TimeSource.Wall()
}

// Programs recover from panics of a handler, and go on.
func TestAPanicOfTheClockHoldsNoLaterCallUp(t *testing.T) {
	clock := &shaky{TimeSource: newClock("2026-11-30T12:00:00Z")}
	f := process(t, newStore(), numbering.Config{Template: "{yyyyMMdd}-{n:3}", Time: clock})
	clock.next = true
	func() {
		defer func() {
			if why := recover(); why != "shaky" {
				t.Error(why)
			}
		}()
		f.Left(0)
	}()
	if left := f.Left(0); clock.next || left != 999 { // or it waits for ever
		t.Error(left)
	}
}
