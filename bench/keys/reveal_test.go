package main

import (
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/objectid"
)

// between returns by how much the sequence of a quiet worker's ids seems to have moved, in trials in each
// of which it has made count ids between the two that an onlooker sees.
func between(t *testing.T, start firn.SequenceStart, count int) (moved []int64) {
	t.Helper()
	clock := firntest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	g, err := firn.New(1, firn.Config{Time: clock, Start: start})
	if err != nil {
		t.Fatal(err)
	}
	next := func() int64 {
		clock.Pass(100 * time.Millisecond)
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p, err := firn.DefaultLayout().Decompose(id)
		if err != nil {
			t.Fatal(err)
		}
		return p.Sequence
	}
	for range 200 {
		first := next()
		for range count {
			next()
		}
		moved = append(moved, (next()-first-1)&firn.DefaultLayout().MaxSequence())
	}
	return moved
}

// TestAQuietWorkersIDsShowHowManyWereMadeInBetween is what docs/compare.md warns of.
func TestAQuietWorkersIDsShowHowManyWereMadeInBetween(t *testing.T) {
	const count = 37
	for start, shown := range map[firn.SequenceStart]bool{firn.StartCarry: true, firn.StartZero: false, firn.StartRandom: false} {
		right := 0
		for _, m := range between(t, start, count) {
			if m == count {
				right++
			}
		}
		if shown && right != 200 || !shown && right > 5 {
			t.Errorf("start %v: in %d of 200 trials two ids show that %d were made in between", start, right, count)
		}
	}
}

// TestAnObjectIDShowsHowManyWereMadeInBetween is the same of MongoDB's ids.
func TestAnObjectIDShowsHowManyWereMadeInBetween(t *testing.T) {
	g, err := objectid.New(objectid.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var counters []uint32
	for range 39 {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		counters = append(counters, uint32(id[9])<<16|uint32(id[10])<<8|uint32(id[11]))
	}
	if moved := (counters[38] - counters[0] - 1) & 0xffffff; moved != 37 {
		t.Errorf("two ids show %d in between, not 37", moved)
	}
}
