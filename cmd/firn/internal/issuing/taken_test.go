package issuing_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// fingerprint matches that of a veil's key, which clients must not see.
var fingerprint = regexp.MustCompile(`"[0-9a-f]{16}"`)

// taken reports whether a request failed with a [store.TakenError], as its client sees that.
func taken(err error) bool {
	return err != nil && strings.Contains(err.Error(), `the counter "orders" has `) && strings.Contains(err.Error(), "use another name")
}

// Two servers whose settings of one name differ would repeat ids, at the same time or one after the other.
func TestServersThatDifferInANameIssueNoIDTwice(t *testing.T) {
	t.Setenv("KEYS", "1:000102030405060708090a0b0c0d0e0f\n")
	t.Setenv("OTHER", "1:ff0102030405060708090a0b0c0d0e0f\n")
	t.Setenv("NEXT", "2:0f0e0d0c0b0a09080706050403020100\n")
	t.Setenv("THIRD", "3:ff0e0d0c0b0a09080706050403020100\n")
	const segment = "{kind: segment, min_step: 10, max_step: 10}"
	veiled := func(kind, env, bits string) string {
		return "{kind: " + kind + ", veil: {key_env: " + env + ", bits: " + bits + "}}"
	}
	number := func(template string) string { return "{kind: number, template: '" + template + "'}" }
	for _, c := range []struct {
		one, other string
		taken      bool
	}{
		{segment, segment, false}, {segment, "{kind: segment, prefix: ord}", false},
		{segment, "{kind: sequence}", true}, {"{kind: sequence}", segment, true}, {"{kind: sequence}", number("B{n:6}"), true},
		{segment, veiled("segment", "KEYS", "24"), true}, {veiled("sequence", "KEYS", "24"), "{kind: sequence}", true},
		{veiled("segment", "KEYS", "24"), veiled("segment", "KEYS", "24"), false},
		{veiled("segment", "KEYS", "24"), veiled("segment", "KEYS", "25"), true},
		{veiled("segment", "KEYS", "24"), veiled("segment", "OTHER", "24"), true},
		{veiled("sequence", "KEYS", "24"), veiled("sequence", "NEXT", "24"), true},
		{veiled("sequence", "KEYS", "24, version_bits: 1"), veiled("sequence", "NEXT", "24, version_bits: 1"), false},
		{veiled("sequence", "KEYS", "24, version_bits: 1"), veiled("sequence", "OTHER", "24, version_bits: 1"), true},
		{veiled("segment", "KEYS", "24, version_bits: 1"), veiled("segment", "THIRD", "24, version_bits: 1"), true},
		{veiled("segment", "KEYS", "24, version_bits: 2"), veiled("segment", "THIRD", "24, version_bits: 2"), false},
		{number("B{yyyy}1{n:3}"), number("B{yyyy}1{n:3}"), false}, {number("B{yyyy}1{n:3}"), number("B{yyyy}{n:4}"), true},
		{number("{yyyy}-{n:5}"), number("{yyyyMM}-{n:5}"), true},
	} {
		for _, restarted := range []bool{false, true} {
			mem := memstore.New(nil)
			got := &seen{texts: map[string]bool{}}
			take := func(text string, n int) (*issuing.Service, error) {
				s := opened(t, mem, "namespaces: {orders: "+text+"}")
				f := s.Front(issuing.HTTP)
				var b issuing.Batch
				err := take(t, f, local(t, f), "orders", n, &b)
				if err == nil {
					got.add(&b)
				}
				return s, err
			}
			one, err := take(c.one, 100)
			if err != nil {
				t.Fatal(err)
			}
			if restarted {
				if err := one.Close(); err != nil {
					t.Fatal(err)
				}
			}
			_, err = take(c.other, 100)
			if c.taken {
				if !taken(err) || failure.Of(err).Code != failure.Mismatch || fingerprint.MatchString(err.Error()) {
					t.Errorf("%+v: %v", c, err)
				}
			} else if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			if n := got.set.Duplicates() + got.bad.Load(); n != 0 {
				t.Errorf("%+v: %d ids twice", c, n)
			}
		}
	}
}

// After a reload that adds a key, the store has it before the first id that it veils.
func TestANewKeyIsInTheStoreBeforeItVeils(t *testing.T) {
	const one, two, other = "1:000102030405060708090a0b0c0d0e0f\n", "2:0f0e0d0c0b0a09080706050403020100\n", "2:ff0e0d0c0b0a09080706050403020100\n"
	for _, kind := range []string{"segment", "sequence"} {
		mem := memstore.New(nil)
		text := "namespaces: {orders: {kind: " + kind + ", veil: {key_env: KEYS, bits: 24, version_bits: 1}}}"
		t.Setenv("KEYS", one)
		s := opened(t, mem, text)
		f := s.Front(issuing.HTTP)
		var b issuing.Batch
		if err := take(t, f, local(t, f), "orders", 100, &b); err != nil {
			t.Fatal(err)
		}
		t.Setenv("KEYS", one+two)
		if err := s.Apply(t.Context(), config(t, text)); err != nil {
			t.Fatal(err)
		}
		if err := take(t, f, local(t, f), "orders", 1, &b); err != nil {
			t.Fatal(err)
		}
		t.Setenv("KEYS", one+other)
		second := opened(t, mem, text).Front(issuing.HTTP)
		if err := take(t, second, local(t, second), "orders", 1, &b); !taken(err) {
			t.Errorf("%s: another key of version 2: %v", kind, err)
		}
	}
}
