package issuing_test

import (
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// A store loses writes while a server runs, and then the settings change: the record of the
// new counter lacks ids that the old one has issued.
func TestAReplacedSourceRepeatsNoIssuedID(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"segment":  {"kind: segment\n    max_step: 100", "kind: segment\n    max_step: 200"},
		"sequence": {"kind: sequence", "kind: sequence\n    from: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			text := func(set string) string { return "namespaces:\n  orders:\n    " + set + "\n" }
			st := memstore.New(nil)
			s := opened(t, st, text(c.before))
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
			older := st.Snapshot()
			issue()
			st.Restore(older)
			if err := s.Apply(t.Context(), config(t, text(c.after))); err != nil {
				t.Fatal(err)
			}
			issue()
		})
	}
}
