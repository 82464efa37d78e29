package issuing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

func TestAViewHasTheFirstNamespacesAndSaysHowManyItLeavesOut(t *testing.T) {
	var text strings.Builder
	text.WriteString("namespaces:\n")
	for i := range 250 {
		fmt.Fprintf(&text, "  n%03d: {kind: uuid}\n", i)
	}
	f := opened(t, memstore.New(nil), text.String()).Front(issuing.HTTP)
	caller := local(t, f)
	var b issuing.Batch
	for range 3 {
		if err := take(t, f, caller, "n007", 2, &b); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := take(t, f, caller, "n007", 1<<40, &b); err == nil {
			t.Fatal("2^40 ids at once")
		}
	}
	view := func(names ...string) issuing.View {
		t.Helper()
		v, release, err := f.View(caller, names)
		if err != nil {
			t.Fatal(err)
		}
		release()
		return v
	}
	v := view()
	if len(v.Namespaces) != issuing.MaxViewed || v.More != 250-issuing.MaxViewed {
		t.Fatalf("%d namespaces and %d more", len(v.Namespaces), v.More)
	}
	for i, ns := range v.Namespaces {
		if want := fmt.Sprintf("n%03d", i); ns.Namespace != want {
			t.Errorf("%s is at %d, want %s", ns.Namespace, i, want)
		}
	}
	if got := v.Namespaces[7]; got.Issued != 6 || fmt.Sprint(got.Counts) != "map[batch_too_large:2 ok:3]" {
		t.Errorf("counted %d ids, %v", got.Issued, got.Counts)
	}
	if got := v.Namespaces[8]; got.Issued != 0 || got.Counts != nil {
		t.Errorf("counted %d ids, %v of a namespace without requests", got.Issued, got.Counts)
	}
	if v := view("n249", "n003", "nothing"); len(v.Namespaces) != 2 || v.Namespaces[0].Namespace != "n003" || v.More != 0 {
		t.Errorf("by name: %+v", v)
	}
}
