package redisstore_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// An operator copies it in an incident.
func TestTheScriptOfTheDocumentsRaisesASequence(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	page, err := os.ReadFile("../docs/sequences.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(page), "<<'END'\n")
	script, _, found := strings.Cut(script, "\nEND\n")
	if !found {
		t.Fatal("docs/sequences.md has no script")
	}
	server := servers.Redis(t)
	s, c := open(t, "redis://"+server.Addr()), raw(t, server.Addr())
	raise := func(to string) error { return c.Eval(ctx, script, []string{"firn"}, "txn", to).Err() }
	if err := raise("7"); err == nil || !contains(err.Error(), "it has no record") {
		t.Errorf("without a record: %v", err)
	}
	const key, before = "firn/counter:txn", `{"kind":"sequence","form":"plain","last":"900","by":"x","write":1}`
	first, err := s.CompareAndSwap(ctx, key, 0, []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	if err := raise("899"); err == nil || !contains(err.Error(), "it is at 900") {
		t.Errorf("lowered: %v", err)
	}
	if err := raise("1000"); err != nil {
		t.Fatal(err)
	}
	e, err := s.Get(ctx, key)
	if want := strings.Replace(before, "900", "1000", 1); err != nil || string(e.Value) != want {
		t.Errorf("%s, %v; want %s", e.Value, err, want)
	}
	_, err = s.CompareAndSwap(ctx, key, first.Revision, []byte(before))
	expect(t, "a process that knows the old revision", err, store.ErrConflict)
}
