package access_test

import (
	"reflect"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// What two configurations both allow is never more than either.
func TestBothAllowOnlyWhatEachDoes(t *testing.T) {
	sum := func(b byte) *[32]byte { return &[32]byte{b} }
	old := access.Config{Anonymous: []string{"public", "old"}, OpenMetrics: true, Tokens: []access.Token{
		{Name: "stays", SHA256: sum(1), Namespaces: []string{"a", "b"}, Admin: true, Unveil: true, Leases: []string{"p"}, MaxLeases: 64},
		{Name: "leaked", SHA256: sum(2), Namespaces: []string{"*"}},
		{Name: "rotated", SHA256: sum(3), Namespaces: []string{"*"}},
	}}
	next := access.Config{Anonymous: []string{"*", "public"}, Tokens: []access.Token{
		{Name: "new", SHA256: sum(4), Namespaces: []string{"*"}},
		{Name: "rotated", SHA256: sum(5), Namespaces: []string{"*"}},
		{Name: "stays", SHA256: sum(1), Namespaces: []string{"b", "c"}, Unveil: true, MaxLeases: 2},
	}}
	want := access.Config{Anonymous: []string{"public"}, Tokens: []access.Token{
		{Name: "stays", SHA256: sum(1), Namespaces: []string{"b"}, Unveil: true, Leases: []string{}, MaxLeases: 2},
	}}
	if got := old.Both(next); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	open := access.Config{}
	if got := open.Both(next); !reflect.DeepEqual(got, next) {
		t.Errorf("beside one that is open: %+v", got)
	}
	if got := old.Both(open); !reflect.DeepEqual(got, old) {
		t.Errorf("beside one that will be open: %+v", got)
	}
	// Nothing in common must not be read as no restriction.
	other := access.Config{Tokens: []access.Token{{Name: "new", SHA256: sum(4)}}}
	if got := old.Both(other); len(got.Tokens) != 1 || got.Tokens[0].SHA256 == nil || len(got.Tokens[0].Namespaces) > 0 {
		t.Errorf("nothing in common: %+v", got)
	}
}
