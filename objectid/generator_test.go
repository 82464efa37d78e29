package objectid_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/objectid"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newFakeTime() *firntest.Clock { return firntest.NewClock(noon) }

// counting returns a Random that makes counters begin at start.
func counting(start uint64) func() uint64 { return func() uint64 { return start << 40 } }

func mustNew(t testing.TB, cfg objectid.Config) *objectid.Generator {
	t.Helper()
	g, err := objectid.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustNext(t testing.TB, g *objectid.Generator) objectid.ID {
	t.Helper()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// fill makes n ids, checks that they increase from above last, and returns the last.
func fill(t testing.TB, g *objectid.Generator, last objectid.ID, n int) objectid.ID {
	t.Helper()
	ids := make([]objectid.ID, min(n, 1<<16))
	for ; n > 0; n -= len(ids) {
		ids = ids[:min(n, len(ids))]
		if got, err := g.Fill(context.Background(), ids); got != len(ids) || err != nil {
			t.Fatalf("filled %d, %v", got, err)
		}
		check := ids
		if n > 1<<20 { // the race detector would take minutes
			check = []objectid.ID{ids[0], ids[len(ids)-1]}
		}
		for _, id := range check {
			if bytes.Compare(id[:], last[:]) <= 0 {
				t.Fatalf("%s follows %s", id, last)
			}
			last = id
		}
	}
	return last
}

func TestAnIDHasTheClocksSecondTheGeneratorsBytesAndACounter(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0xabcdef)})
	a, b := mustNext(t, g), mustNext(t, g)
	clock.Pass(1500 * time.Millisecond)
	c := mustNext(t, g)
	if a.Parts().Counter != 0xabcdef || b.Parts().Counter != 0xabcdf0 || c.Parts().Counter != 0xabcdf1 {
		t.Errorf("counters are %x, %x, %x", a.Parts().Counter, b.Parts().Counter, c.Parts().Counter)
	}
	if !a.Time().Equal(noon) || !b.Time().Equal(noon) || !c.Time().Equal(noon.Add(time.Second)) {
		t.Errorf("times are %v, %v, %v", a.Time(), b.Time(), c.Time())
	}
	if a.Parts().Unique != c.Parts().Unique {
		t.Errorf("unique bytes are %x and %x", a.Parts().Unique, c.Parts().Unique)
	}
}

func TestGeneratorsHaveRandomBytesAndCounters(t *testing.T) {
	clock := newFakeTime()
	a, b := mustNext(t, mustNew(t, objectid.Config{Time: clock})), mustNext(t, mustNew(t, objectid.Config{Time: clock}))
	if a.Parts().Unique == b.Parts().Unique || a.Parts().Counter == b.Parts().Counter {
		t.Errorf("two generators made %s and %s", a, b)
	}
}

func TestACounterThatOverflowsRunsASecondAhead(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0xffffff)})
	a, b := mustNext(t, g), mustNext(t, g)
	if a.Parts().Counter != 0xffffff || b.Parts().Counter != 0 || !b.Time().Equal(noon.Add(time.Second)) {
		t.Errorf("%s (%v) follows %s", b, b.Time(), a)
	}
	clock.Pass(time.Second)
	if c := mustNext(t, g); c.Parts().Counter != 1 || !c.Time().Equal(noon.Add(time.Second)) {
		t.Errorf("a second later comes %s (%v)", c, c.Time())
	}
}

func TestACounterThatOverflowsBetweenSecondsDoesNotRunAhead(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0xffffff)})
	mustNext(t, g)
	clock.Pass(5 * time.Second)
	if id := mustNext(t, g); !id.Time().Equal(noon.Add(5 * time.Second)) {
		t.Errorf("%s was made at %v", id, id.Time())
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	g := mustNew(t, objectid.Config{Time: newFakeTime(), Unique: []byte("12345")})
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("gone")
	cancel(gone)
	if id, err := g.Next(ctx); !errors.Is(err, gone) || !errors.Is(err, context.Canceled) || err.Error() != "objectid: wait for an id: context canceled: gone" || id != (objectid.ID{}) {
		t.Errorf("Next = %s, %v", id, err)
	}
	if n, err := g.Fill(ctx, make([]objectid.ID, 3)); n != 0 || !errors.Is(err, gone) {
		t.Errorf("Fill = %d, %v", n, err)
	}
	if first := mustNext(t, g); first.String() >= mustNext(t, g).String() {
		t.Error("afterwards ids do not increase")
	}
}

func TestWhileTheClockIsBackTheTimePartStandsStill(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0)})
	last := fill(t, g, objectid.ID{}, 10)
	clock.Step(-time.Hour)
	for range 3600 {
		clock.Pass(time.Second)
		if last = fill(t, g, last, 10); last.Time().After(noon) {
			t.Fatalf("%s was made at %v", last, last.Time())
		}
	}
	clock.Pass(time.Second)
	if last = fill(t, g, last, 10); !last.Time().Equal(noon.Add(time.Second)) {
		t.Errorf("when the clock has caught up, %s was made at %v", last, last.Time())
	}
}

func TestAClockSetForwardIsFollowed(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock})
	mustNext(t, g)
	clock.Step(time.Hour)
	clock.Pass(100 * time.Millisecond)
	if id := mustNext(t, g); !id.Time().Equal(noon.Add(time.Hour)) {
		t.Errorf("%s was made at %v", id, id.Time())
	}
}

func TestAGeneratorWithGivenBytesMakesNoIDOfItsPredecessor(t *testing.T) {
	clock := newFakeTime()
	seen := objectid.ID{}
	for life := range 5 {
		g := mustNew(t, objectid.Config{Time: clock, Unique: []byte{1, 2, 3, 4, 5}, Random: counting(0xffff00)})
		seen = fill(t, g, seen, 1000) // runs a second ahead
		if five := seen.Parts().Unique; five != [5]byte{1, 2, 3, 4, 5} {
			t.Fatalf("the five bytes are %x", five)
		}
		if ahead := seen.Time().Sub(clock.Wall()); ahead > time.Second {
			t.Errorf("life %d is %v ahead", life, ahead)
		}
	}
	if clock.Slept() > 10*time.Second {
		t.Errorf("five lives waited for %v", clock.Slept())
	}
}

func TestNewRefusesInvalidSettings(t *testing.T) {
	early, late := newFakeTime(), newFakeTime()
	early.Set(time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC))
	late.Set(time.Date(2106, 2, 7, 6, 28, 16, 0, time.UTC))
	for _, c := range []struct {
		claim    string
		cfg      objectid.Config
		sentinel error
		want     string
	}{
		{"four bytes", objectid.Config{Unique: make([]byte, 4)}, firn.ErrRange, "number of unique bytes 4 is out of range: only 5 is allowed"},
		{"a clock before 1970", objectid.Config{Time: early}, firn.ErrRange, "clock's time 1969-12-31"},
		{"a clock past the end", objectid.Config{Time: late}, firn.ErrTimeExhausted, "end at 2106-02-07T06:28:16.000Z"},
		{"every mistake is named", objectid.Config{Time: early, Unique: make([]byte, 6)}, firn.ErrRange, "unique bytes 6"},
	} {
		g, err := objectid.New(c.cfg)
		if g != nil || !errors.Is(err, c.sentinel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.claim, err, c.want)
		}
	}
}

func TestTheLastSecondIsUsedAndNoIDFollows(t *testing.T) {
	clock := newFakeTime()
	clock.Set(time.Date(2106, 2, 7, 6, 28, 15, 0, time.UTC))
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0xfffffe)})
	a, b := mustNext(t, g), mustNext(t, g)
	if a.Parts().Seconds != 1<<32-1 || b.Parts().Counter != 0xffffff {
		t.Errorf("the last ids are %s, %s", a, b)
	}
	for range 2 {
		if id, err := g.Next(t.Context()); !errors.Is(err, firn.ErrTimeExhausted) || id != (objectid.ID{}) {
			t.Errorf("after the last id comes %s, %v", id, err)
		}
		clock.Pass(time.Second)
	}
}

// Many callers run concurrently while the clock jumps and the counter overflows.
func TestIDsAreUniqueAndIncreaseWhateverTheClockDoes(t *testing.T) {
	clock := newFakeTime()
	g := mustNew(t, objectid.Config{Time: clock, Random: counting(0xfff000)})
	const callers, each = 8, 20_000
	all := make([][]objectid.ID, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if i%64 == c {
					clock.Step(time.Duration(i%7-3) * time.Second)
				}
				if i%16 == c {
					clock.Pass(30 * time.Millisecond)
				}
				var batch [5]objectid.ID
				n := 1
				if i%5 == 0 {
					n = len(batch)
				}
				var err error
				if n == 1 {
					batch[0], err = g.Next(t.Context())
				} else {
					_, err = g.Fill(context.Background(), batch[:])
				}
				if err != nil {
					t.Error(err)
					return
				}
				all[c] = append(all[c], batch[:n]...)
			}
		})
	}
	wg.Wait()
	seen := make(map[objectid.ID]bool)
	for c, ids := range all {
		if !slices.IsSortedFunc(ids, func(a, b objectid.ID) int { return bytes.Compare(a[:], b[:]) }) {
			t.Errorf("the ids of caller %d do not increase", c)
		}
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%s was made twice", id)
			}
			seen[id] = true
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	g := mustNew(t, objectid.Config{})
	if n := testing.AllocsPerRun(1000, func() { mustNext(t, g) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
