package issuing_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// A store loses writes while a server runs, and the settings change before that, after it or meanwhile: the record of the
// new counter lacks ids that the old one has issued.
func TestAReplacedSourceRepeatsNoIssuedIDAndCountsTheSetBack(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"segment":  {"{kind: segment, max_step: 100}", "{kind: segment, max_step: 200}"},
		"sequence": {"{kind: sequence}", "{kind: sequence, from: 2}"},
		"number":   {"{kind: number, template: 'N{n:9}'}", "{kind: number, template: 'N{n:9}', from: 2}"},
	} {
		for when, play := range map[string]func(apply func(set string), issue, lose func()){
			"set back, then changed": func(apply func(string), issue, lose func()) {
				issue()
				lose()
				apply(c.after)
			},
			"changed, then set back before the first id": func(apply func(string), issue, lose func()) {
				issue()
				apply(c.after)
				lose()
			},
			"removed, set back and added again": func(apply func(string), issue, lose func()) {
				issue()
				apply("")
				lose()
				apply(c.before)
			},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				text := func(set string) string {
					if set == "" {
						return "namespaces: {other: {kind: uuid}}"
					}
					return "namespaces: {other: {kind: uuid}, orders: " + set + "}"
				}
				st := memstore.New(nil)
				registry := prometheus.NewRegistry()
				s := opened(t, st, text(c.before), func(cfg *issuing.Config) { cfg.Registry = registry })
				f := s.Front(issuing.HTTP)
				caller := local(t, f)
				ids, texts := map[firn.ID]bool{}, map[string]bool{}
				issue := func() {
					var b issuing.Batch
					if err := take(t, f, caller, "orders", 150, &b); err != nil {
						t.Fatal(err)
					}
					for _, id := range b.IDs {
						if ids[id] {
							t.Fatalf("%d again", id)
						}
						ids[id] = true
					}
					for _, text := range b.Texts {
						if texts[text] {
							t.Fatalf("%s again", text)
						}
						texts[text] = true
					}
					b.Release()
				}
				issue()
				play(func(set string) {
					if err := s.Apply(t.Context(), config(t, text(set))); err != nil {
						t.Fatal(err)
					}
				}, issue, func() { st.Restore(nil) })
				for range 100 { // behind what a segment holds
					if issue(); setBacks(t, registry) > 0 {
						return
					}
				}
				t.Error("no set back is counted")
			})
		}
	}
}

// setBacks is what metrics say of set backs.
func setBacks(t *testing.T, registry *prometheus.Registry) (sum float64) {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() == "firn_store_setbacks_total" {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// A configuration waits for a pool. The store is set back when the new source is there, and the old one has issued more.
func TestASourceThatWaitsForItsConfigurationKnowsWhatTheOldOneIssues(t *testing.T) {
	for _, sets := range [][2]string{
		{"{kind: segment, max_step: 100}", "{kind: segment, max_step: 200}"},
		{"{kind: sequence}", "{kind: sequence, from: 2}"},
	} {
		mem := memstore.New(nil)
		slow := &slowStore{Store: mem, prefix: "firn/late/", entered: make(chan struct{}), gate: make(chan struct{})}
		s := opened(t, slow, "namespaces: {orders: "+sets[0]+"}")
		f := s.Front(issuing.HTTP)
		caller := local(t, f)
		seen := map[firn.ID]bool{}
		issue := func(n int) {
			t.Helper()
			var b issuing.Batch
			if err := take(t, f, caller, "orders", n, &b); err != nil {
				t.Fatal(err)
			}
			for _, id := range b.IDs {
				if seen[id] {
					t.Fatalf("%s: %d again", sets[0], id)
				}
				seen[id] = true
			}
			b.Release()
		}
		issue(10)
		applied := make(chan error, 1)
		go func() {
			applied <- s.Apply(t.Context(), config(t, "namespaces: {orders: "+sets[1]+", late: {pool: late}}"))
		}()
		<-slow.entered
		older := mem.Snapshot()
		issue(1000)
		mem.Restore(older)
		close(slow.gate)
		if err := <-applied; err != nil {
			t.Fatal(err)
		}
		issue(1000)
	}
}

// A name gets a kind when it is first used, also while a configuration waits.
func TestAConfigurationIsRefusedForWhatWasMadeWhileItWaited(t *testing.T) {
	slow := &slowStore{Store: memstore.New(nil), prefix: "firn/other/", entered: make(chan struct{}), gate: make(chan struct{})}
	s := opened(t, slow, "limits: {batch: 10}")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	applied := make(chan error, 1)
	go func() {
		applied <- s.Apply(t.Context(), config(t, "namespaces: {late: {kind: segment}, b: {pool: other}}"))
	}()
	<-slow.entered
	var b issuing.Batch
	if err := take(t, f, caller, "late", 1, &b); err != nil {
		t.Fatal(err)
	}
	close(slow.gate)
	if err := <-applied; err == nil || !strings.Contains(err.Error(), "it cannot change from snowflake to segment while the namespace is served") {
		t.Errorf("late has two kinds: %v", err)
	}
	if err := take(t, f, caller, "another", 1, &b); err != nil { // the configuration before is in force
		t.Error(err)
	}
}

// A set back that was counted stays so, whatever becomes of the name or the pool.
func TestSetBacksAreCountedOverReloads(t *testing.T) {
	mem, registry := memstore.New(nil), prometheus.NewRegistry()
	s := opened(t, mem, "namespaces: {orders: {kind: sequence}, a: {pool: p, window: 1m}}", func(cfg *issuing.Config) { cfg.Registry = registry })
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	var b issuing.Batch
	issue := func() {
		t.Helper()
		if err := take(t, f, caller, "orders", 1, &b); err != nil {
			t.Fatal(err)
		}
	}
	issue()
	mem.Restore(nil)
	issue()
	for setBacks(t, registry) < 2 { // the pool's holder looks every three seconds
		runtime.Gosched()
	}
	for _, text := range []string{
		"namespaces: {orders: {kind: sequence, from: 2}, a: {pool: p, window: 2m}}",
		"namespaces: {b: {kind: uuid}}",
		"namespaces: {orders: {kind: uuid}}",
	} {
		if err := s.Apply(t.Context(), config(t, text)); err != nil {
			t.Fatal(err)
		}
		if n := setBacks(t, registry); n != 2 {
			t.Errorf("%s: %v set backs", text, n)
		}
	}
}
