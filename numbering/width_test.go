package numbering_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
)

func TestNumbersWithoutAPeriodRunOut(t *testing.T) {
	f := process(t, newStore(), numbering.Config{Template: "{n:1}", Time: newClock("2026-11-20T12:00:00Z")})
	if _, err := f.Reserve(context.Background(), 9); err != nil {
		t.Fatal(err)
	}
	_, err := f.Next(context.Background())
	if !errors.Is(err, numbering.ErrExhausted) || !strings.Contains(err.Error(), `"{n:1}" has 9 numbers in all: `) {
		t.Error(err)
	}
}

// A narrower template would read a counter of wider numbers as the year 20261, a wider one would take the counter
// over, and one of the same width would print the old date. A misconfigured process may retry for ever.
func TestAnotherTemplateOfACounterIsRefusedAndUsesNoNumbers(t *testing.T) {
	c := newClock("2026-11-20T12:00:00Z")
	for _, test := range []struct{ right, wrong, second string }{
		{"{yyyyMMdd}-{n:3}", "{yyyyMMdd}-{n:2}", "20261120-002"}, {"{n:3}", "{n:1}", "002"}, {"{yyyy}-{n:5}", "{yyyy}-{n:4}", "2026-00002"},
		{"{yyyyMMdd}-{n:2}", "{yyyyMMdd}-{n:3}", "20261120-02"}, {"B{yyyyMM}-{n:4}", "B{yyyy}-{n:6}", "B202611-0002"}, {"B{yyyy}1{n:3}", "B{yyyy}{n:4}", "B20261002"},
		{"{yyyy}-{n:5}", "{yyyyMM}-{n:5}", "2026-00002"}, {"A{n:3}", "B{n:3}", "A002"},
	} {
		s := newStore()
		right := process(t, s, numbering.Config{Template: test.right, Time: c})
		next(t, right)
		for range 3 {
			wrong := process(t, s, numbering.Config{Template: test.wrong, Time: c})
			for range 3 {
				text, err := wrong.Next(t.Context())
				want := store.TakenError{Counter: "orders", What: "form", Have: "template " + test.right, Want: "template " + test.wrong}
				if taken := new(store.TakenError); !errors.As(err, &taken) || *taken != want || !errors.Is(err, store.ErrTaken) {
					t.Errorf("after %s, %s makes %q, %v", test.right, test.wrong, text, err)
				}
			}
		}
		if text := next(t, right); text != test.second {
			t.Errorf("%s after tries of %s: %s, want %s", test.right, test.wrong, text, test.second)
		}
	}
}

// In Shanghai 24 November begins at 16:00 UTC: one such process would make those in UTC print tomorrow's date.
func TestAnotherZoneOfACounterIsRefused(t *testing.T) {
	clock, shanghai := newClock("2026-11-23T19:43:00Z"), time.FixedZone("Asia/Shanghai", 8*60*60)
	for _, test := range []struct {
		template, first string
		taken           bool
	}{{"Z{yyyyMMdd}-{n:4}", "Z20261123-0001", true}, {"Z{n:4}", "Z0001", false}} {
		s := newStore()
		utc := process(t, s, numbering.Config{Template: test.template, Time: clock})
		if text := next(t, utc); text != test.first {
			t.Errorf("%s, want %s", text, test.first)
		}
		text, err := process(t, s, numbering.Config{Template: test.template, Time: clock, Zone: shanghai}).Next(t.Context())
		if errors.Is(err, store.ErrTaken) != test.taken || test.taken && !strings.Contains(err.Error(), `not "zone Asia/Shanghai +08:00, template Z`) {
			t.Errorf("%s in another zone: %q, %v", test.template, text, err)
		}
		next(t, process(t, s, numbering.Config{Template: test.template, Time: clock, Zone: time.FixedZone("UTC", 0)}))
	}
	for _, name := range []string{"", "UTC"} {
		if _, err := numbering.New(numbering.Config{Template: "{n:3}", Zone: time.FixedZone(name, 8*3600), Counter: within{}}); err == nil {
			t.Errorf("a zone of 8 hours named %q is accepted", name)
		}
	}
	_, err := numbering.New(numbering.Config{Template: "{n:3}", Zone: time.Local, Counter: within{}})
	if !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "time.LoadLocation") {
		t.Errorf("the zone of the machine: %v", err)
	}
}

// The counter of one process has one template too, and no plain ids beside it.
func TestACounterDeclaresOneForm(t *testing.T) {
	all, err := sequence.New(sequence.Config{Store: newStore()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, template string
		want           error
	}{{"a", "A{n:3}", nil}, {"a", "A{n:3}", nil}, {"a", "B{n:3}", store.ErrTaken}, {"b", "A{n:3}", nil}, {"plain", "A{n:3}", store.ErrTaken}} {
		counter, err := all.Namespace(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if c.name == "plain" {
			if _, err := counter.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := numbering.New(numbering.Config{Template: c.template, Counter: counter}); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// An operator may write a record by hand.
func TestARecordWithoutAFormGetsThatOfItsFirstWriter(t *testing.T) {
	s, c := newStore(), newClock("2026-11-20T12:00:00Z")
	if _, err := s.CompareAndSwap(t.Context(), "firn/counter:orders", 0, []byte(`{"last":"2026005"}`)); err != nil {
		t.Fatal(err)
	}
	if text := next(t, process(t, s, numbering.Config{Template: "{yyyy}-{n:3}", Time: c})); text != "2026-006" {
		t.Error(text)
	}
	if text, err := process(t, s, numbering.Config{Template: "{yyyy}/{n:3}", Time: c}).Next(t.Context()); !errors.Is(err, store.ErrTaken) {
		t.Errorf("%q, %v", text, err)
	}
	const far = `{"kind":"sequence","last":"20260005"}` // the year 20260
	if _, err := s.CompareAndSwap(t.Context(), "firn/counter:far", 0, []byte(far)); err != nil {
		t.Fatal(err)
	}
	counter := counterOf(t, sequence.Config{Store: s}, "far")
	f, err := numbering.New(numbering.Config{Template: "{yyyy}-{n:3}", Counter: counter, Time: c})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := f.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "20260006 is not a valid number of template") {
		t.Errorf("%q, %v", text, err)
	}
}

// The first number takes a read and a write, the next one a write.
func TestTheFormCostsNoExtraCalls(t *testing.T) {
	s := newStore()
	calls := 0
	s.Script = func(storetest.Call) storetest.Outcome {
		calls++
		return storetest.Pass
	}
	f := process(t, s, numbering.Config{Template: "{yyyyMMdd}-{n:3}", Time: newClock("2026-11-20T12:00:00Z")})
	for i, want := range []int{2, 3, 4} {
		if next(t, f); calls != want {
			t.Errorf("%d calls of the store for %d numbers, want %d", calls, i+1, want)
		}
	}
}

// The usual decorator of a counter must not lose what the store keeps with it.
func TestAWrappedCounterRefusesAnotherTemplate(t *testing.T) {
	s := newStore()
	for i, template := range []string{"A1{n:4}", "A{n:5}"} {
		all, err := sequence.New(sequence.Config{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close(t.Context())
		orders, err := all.Namespace("orders")
		if err != nil {
			t.Fatal(err)
		}
		f, err := numbering.New(numbering.Config{Template: template, Counter: struct{ numbering.Counter }{orders}})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := f.Next(t.Context()); errors.Is(err, store.ErrTaken) != (i == 1) {
			t.Errorf("%s: %q, %v", template, text, err)
		}
	}
}

func TestAnIDThatNoCounterMakesHasNoText(t *testing.T) {
	s := newStore()
	for template, ids := range map[string][]firn.ID{"A{n:3}": {-1, -1000, 0}, "{yyyy}-{n:3}": {-2026001, 999, 2026000}} {
		counter := counterOf(t, sequence.Config{Store: s}, "c"+strconv.Itoa(len(template)))
		f, err := numbering.New(numbering.Config{Template: template, Counter: counter})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if text, err := f.Text(id); err == nil {
				t.Errorf("%s: %d is %q", template, id, text)
			}
		}
	}
}

// Anybody may call a fixed zone CET, and the periods of two change at different moments.
func TestFixedZonesOfOneNameAreDifferentZones(t *testing.T) {
	zones := newStore()
	paris, err := time.LoadLocation("CET")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		zone *time.Location
		want error
	}{
		{time.FixedZone("CET", 3600), nil}, {time.FixedZone("CET", 3600), nil}, {time.FixedZone("CET", 7200), store.ErrTaken}, {paris, store.ErrTaken},
	} {
		counter := counterOf(t, sequence.Config{Store: zones}, "bills")
		f, err := numbering.New(numbering.Config{Template: "{yyyy}-{n:3}", Zone: c.zone, Counter: counter})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := f.Next(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%v: %q, %v, want %v", c.zone, text, err, c.want)
		}
	}
}
