package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/ledger"
)

// A step depends only on the seed, the store and its number.
func TestASeedReplaysAPlan(t *testing.T) {
	w := &world{issuers: []*issuer{{name: "a"}, {name: "b"}, {name: "c"}}}
	faults := slices.Concat(processFaults(), networkFaults(), nodeFaults())
	describe := func(p plan, n int) string {
		s := p.step(w, n)
		text := fmt.Sprint(s.pause)
		for _, a := range s.acts {
			text += fmt.Sprint(" ", a.name, a.on.name, a.rng.Uint64())
		}
		return text
	}
	p := plan{7, "redis", faults}
	differ := 0
	for n := range 200 {
		if first, again := describe(p, n), describe(p, n); first != again {
			t.Errorf("step %d: %s, and then %s", n, first, again)
		}
		if describe(p, n) != describe(plan{8, "redis", faults}, n) {
			differ++
		}
		if describe(p, n) != describe(plan{7, "etcd", faults}, n) {
			differ++
		}
	}
	if differ < 390 {
		t.Errorf("only %d of 400 steps of other seeds and stores differ", differ)
	}
}

// A step leaves at least one process without a fault, and has at most one fault of the store.
func TestAStepLeavesOneProcessAlone(t *testing.T) {
	w := &world{issuers: []*issuer{{name: "a"}, {name: "b"}, {name: "c"}}}
	faults := slices.Concat(processFaults(), networkFaults(), nodeFaults(), []fault{{name: "solo", weight: 5, solo: true}})
	seen := map[string]int{}
	for n := range 1000 {
		s := plan{1, "redis", faults}.step(w, n)
		for _, a := range s.acts {
			seen[a.name]++
		}
		if len(s.acts) == 1 {
			continue
		}
		if first, second := s.acts[0], s.acts[1]; len(s.acts) > 2 || first.solo || second.solo || second.alone || first.on == second.on {
			t.Errorf("step %d: %s to %s, and %s to %s", n, first.name, first.on.name, second.name, second.on.name)
		}
	}
	for _, f := range faults {
		if seen[f.name] == 0 {
			t.Errorf("the fault %q never occurs", f.name)
		}
	}
}

func TestIDsAreReadAsTheyArePrinted(t *testing.T) {
	for text, want := range map[string]struct {
		ids int64
		err error
	}{
		"":                   {0, io.EOF},
		"1\n2\n9\n":          {3, io.EOF},
		"1\n23":              {1, io.EOF}, // cut off: it may have been 234
		"1\nfirn: refused\n": {1, errNoID},
	} {
		in := bufio.NewReader(strings.NewReader(text))
		var runs ledger.Runs
		var err error
		for err == nil {
			runs, err = readID(in, runs)
		}
		if runs.Count() != want.ids || !errors.Is(err, want.err) {
			t.Errorf("%q: %v, %v", text, runs, err)
		}
	}
}

func TestSilenceIsCountedWhileTheStoreIsThere(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	s := newSilence()
	s.leave(0, at(1))
	s.back(at(5))
	s.arrived(0, "steady", at(10)) // the first: nothing before it counts
	s.arrived(0, "steady", at(12))
	s.arrived(1, "wall", at(13))
	s.arrived(1, "steady", at(15))
	s.leave(2, at(16))
	s.arrived(2, "wall", at(30))
	s.back(at(40))
	s.arrived(2, "steady", at(41))
	got := s.end(3, at(45))
	for mark, want := range map[uint32]quiet{
		0: {2 * time.Second, "steady"},
		1: {3 * time.Second, "steady"},
		2: {3 * time.Second, "wall"},
		3: {5 * time.Second, "wall"},
	} {
		if got[mark] != want {
			t.Errorf("mark %d: %v, want %v", mark, got[mark], want)
		}
	}
}

func TestAHostReturnsWhatWouldEndATest(t *testing.T) {
	h := &host.Host{}
	var order []int
	h.Cleanup(func() { order = append(order, 1) })
	h.Cleanup(func() { h.Fatalf("%s", "cleanup") })
	err := host.Together(func() { h.Fatal("one") }, func() {}, func() { h.Skipf("two") })
	if err == nil || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "two") {
		t.Errorf("%v", err)
	}
	h.Errorf("and %d", 3)
	if err := h.End(); err == nil || !strings.Contains(err.Error(), "cleanup") || !strings.Contains(err.Error(), "and 3") {
		t.Errorf("%v", err)
	}
	if !slices.Equal(order, []int{1}) {
		t.Errorf("cleanups: %v", order)
	}
}
