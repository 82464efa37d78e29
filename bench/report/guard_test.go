//go:build !race

package main

import (
	"errors"
	"testing"
	"time"
)

// The costs of one run are compared with each other, in slices that nothing has disturbed, and the bounds are
// about twice what is usual: a failure means that a call does more than before, not that the machine is slow.
func TestCallsCostFewTimesTheirFloors(t *testing.T) {
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	table, err := measure(all, 1, few, 3*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, bound := range []struct {
		name, of string
		times    float64
	}{
		{"`Next`", "time.Since", 2.5},
		{"`Next`, wall clock", "time.Now", 2.5},
		{"`Next`, virtual clock", "atomic add", 5},
		{"`Next`, `Lag` 1ms", "atomic add", 5},
		{"`Local`, `Lag` 1ms", "atomic add", 4},
		{"`Fill` of 1,024", "atomic add", 0.6},
		{"`Take` of 1,024, `AppendTo`", "atomic add", 0.6},
		{"`Base58.Compact`", "bwmarrin's `Base58`", 1.2},
	} {
		it, itErr := find(table, bound.name)
		of, ofErr := find(table, bound.of)
		if err := errors.Join(itErr, ofErr); err != nil {
			t.Fatal(err)
		}
		got := it.one.median() / of.one.median()
		t.Logf("%s: %.2f times %s", bound.name, got, bound.of)
		if got > bound.times {
			t.Errorf("%s costs %.1f ns, %.2f times as much as %s, want at most %.1f", bound.name, it.one.median(), got, bound.of, bound.times)
		}
		if it.group == ours && it.allocs > 0 {
			t.Errorf("%s allocates %v times", bound.name, it.allocs)
		}
	}
}
