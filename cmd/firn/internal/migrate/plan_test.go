package migrate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/migrate"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

// counters returns n counters, as TinyId might have them.
func counters(n int) (list []migrate.Foreign) {
	for i := range n {
		list = append(list, migrate.Foreign{
			Name: fmt.Sprintf("name%03d", i), MaxID: firn.ID(1000 * i), Next: int64(1000*i + 1), Step: 100,
			Stripe: segment.Stripe{Offset: int64(i % 3), Stride: 3},
		})
	}
	return list
}

func plan(t *testing.T, s store.Store, list []migrate.Foreign, o migrate.Options) *migrate.Plan {
	t.Helper()
	p, err := migrate.MakePlan(t.Context(), s, list, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAnInterruptedImportCanBeRepeated(t *testing.T) {
	s := storetest.NewFaulty(memstore.New(nil))
	list := counters(20)
	p := plan(t, s, list, migrate.Options{Margin: 0})
	s.Script = func(c storetest.Call) storetest.Outcome {
		if c.Key == register.CounterKey("name007") && c.Op == storetest.OpCompareAndSwap {
			return storetest.Refuse
		}
		return storetest.Pass
	}
	calls := 0
	err := p.Apply(t.Context(), s, func(done, all int) {
		if calls++; done != calls || all != 20 {
			t.Errorf("call %d of progress: %d of %d", calls, done, all)
		}
	})
	if !errors.Is(err, store.ErrRefused) {
		t.Error(err)
	}
	says(t, "interrupted", err, `"name007"`, "7 of 20 names were imported; it is safe to run the import again")
	s.Script = nil
	calls = 0
	p = plan(t, s, list, migrate.Options{Margin: 0, Progress: func(int, int) { calls++ }})
	if err := p.Apply(t.Context(), s, nil); err != nil || calls != 20 {
		t.Errorf("%v, %d calls of Progress", err, calls)
	}
	for i, r := range p.Rows {
		outcome := migrate.Created
		if i < 7 {
			outcome = migrate.Unchanged
		}
		// Now is the lowest id of the stripe above max_id, which is granted already.
		if r.Outcome != outcome || r.Now <= uint64(r.MaxID) || r.Now > uint64(r.MaxID)+3 || r.Now%3 != uint64(i%3) {
			t.Errorf("%+v", r)
		}
		if c, err := segment.ReadCounter(t.Context(), s, r.Here); err != nil || c.Next != r.Now {
			t.Errorf("%s: %+v, %v, want %d", r.Here, c, err, r.Now)
		}
	}
}

func TestACounterThatRisesAfterThePlanIsNotLowered(t *testing.T) {
	s := memstore.New(nil)
	list := counters(1)
	p := plan(t, s, list, migrate.Options{Margin: -1})
	if p.Rows[0].Now != 102 {
		t.Errorf("%+v", p.Rows[0])
	}
	if _, err := segment.RaiseCounter(t.Context(), s, "name000", 8999, list[0].Stripe); err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(t.Context(), s, nil); err != nil || p.Rows[0].Now != 9000 {
		t.Errorf("%+v, %v", p.Rows[0], err)
	}
}

func TestMistakesAreFoundBeforeAnythingIsWritten(t *testing.T) {
	s := storetest.NewFaulty(memstore.New(nil))
	if _, err := s.CompareAndSwap(t.Context(), register.CounterKey("name001"), 0, []byte("foreign")); err != nil {
		t.Fatal(err)
	}
	if _, err := segment.RaiseCounter(t.Context(), s, "name002", 1, segment.Stripe{Stride: 1}); err != nil {
		t.Fatal(err)
	}
	writes := s.Counts().CompareAndSwap
	list := counters(4)
	list[3].MaxID, list[3].Next = firn.MaxID, -1
	_, err := migrate.MakePlan(t.Context(), s, list, nil, migrate.Options{})
	says(t, "mistakes", err, "name001", `"name002" has offset 0 of stride 1, not offset 2 of stride 3`, `"name003" is at 9223372036854775807`)
	for i := range 50 {
		list = append(list, migrate.Foreign{Name: fmt.Sprintf("a %d", i), Stripe: segment.Stripe{Stride: 1}})
	}
	_, err = migrate.MakePlan(t.Context(), s, list, nil, migrate.Options{})
	says(t, "names", err, `"a 0"`, `"a 19"`, "and 30 more", "--rename OLD=NEW")
	s.SetDown(true)
	if _, err := migrate.MakePlan(t.Context(), s, counters(2), nil, migrate.Options{}); !errors.Is(err, store.ErrUnavailable) {
		t.Error(err)
	}
	if n := s.Counts().CompareAndSwap; n != writes {
		t.Errorf("a refused plan made %d writes", n-writes)
	}
}

func TestTheWrittenConfigurationSurvivesARoundTrip(t *testing.T) {
	var list []migrate.Foreign
	for _, name := range []string{"true", "No", "null", "1", "1.5", "0x1", "-", "---", "_", ".", "a.b", "orders", "Orders", "1e3", "n", "2026-11-21"} {
		list = append(list, migrate.Foreign{Name: name, Step: 3, Stripe: segment.Stripe{Offset: 1, Stride: 7}})
	}
	p, err := migrate.MakePlan(t.Context(), memstore.New(nil), list, []migrate.Token{
		{SHA256: strings.Repeat("0", 64), Of: []string{"gone"}}, {SHA256: strings.Repeat("1", 64), Of: []string{"true", "gone", "1"}},
	}, migrate.Options{Rename: map[string]string{"true": "false"}})
	if err != nil {
		t.Fatal(err)
	}
	const url = "sqlite:/a \"b\" \\c: {d} #e\tä.db"
	var have struct {
		Store      string
		Namespaces map[string]struct {
			Kind    string
			MinStep int64 `yaml:"min_step"`
			Offset  int64
			Stride  int64
		}
		Tokens []struct {
			Name, SHA256 string
			Namespaces   []string
		}
	}
	text := p.YAML("tinyid", url)
	if err := yaml.UnmarshalWithOptions(text, &have, yaml.Strict()); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if have.Store != url || len(have.Namespaces) != len(list) || p.Skipped() != 2 || len(have.Tokens) != 1 ||
		have.Tokens[0].SHA256 != strings.Repeat("1", 64) || strings.Join(have.Tokens[0].Namespaces, " ") != "false 1" {
		t.Errorf("%+v", have)
	}
	for _, r := range p.Rows {
		if n := have.Namespaces[r.Here]; n.Kind != "segment" || n.MinStep != 1 || n.Offset != 1 || n.Stride != 7 {
			t.Errorf("%q: %+v", r.Here, n)
		}
	}
}

func TestASystemThatStillIssuesIsDetected(t *testing.T) {
	s := memstore.New(nil)
	list := counters(40)
	p := plan(t, s, list, migrate.Options{Margin: 0})
	if err := p.Moved(list); err != nil {
		t.Error(err)
	}
	for i := range list {
		list[i].MaxID += 100
	}
	says(t, "all moved", p.Moved(list), `"name007" has moved from 7000 to 7100`, "and 20 more")
	if err := p.Moved(nil); err != nil {
		t.Errorf("deleted rows: %v", err)
	}
}

func TestAnErrorListsAllMistakesOfAPlan(t *testing.T) {
	s := memstore.New(nil)
	if _, err := s.CompareAndSwap(t.Context(), register.CounterKey("name004"), 0, []byte("something else")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompareAndSwap(t.Context(), register.CounterKey("name005"), 0, []byte(`{"kind":"sequence","last":"7"}`)); err != nil {
		t.Fatal(err)
	}
	list := counters(6)
	list[1].Name = "a b"
	list[2].MaxID, list[2].Next = firn.MaxID, -1
	p, err := migrate.MakePlan(t.Context(), s, list, nil, migrate.Options{Rename: map[string]string{"nosuch": "x"}})
	says(t, "a plan", err, `"a b" is not a valid segment name`, `--rename "nosuch"`, "--rename OLD=NEW", `"name002" is at 9223372036854775807`, "firn/counter:name004", `the counter "name005" has the kind "sequence", not "segment"`)
	if p != nil {
		t.Errorf("a plan in spite of mistakes: %+v", p)
	}
}
