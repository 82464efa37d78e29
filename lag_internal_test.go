package firn

import (
	"context"
	"testing"
	"time"

	"math"
)

// later collects the calls that AfterFunc has promised.
type later []func()

func (l *later) AfterFunc(_ time.Duration, f func()) { *l = append(*l, f) }

// The mark follows the rate, and at most doubles.
func TestTheMarkIsASixteenthOfTheLagAway(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		claim   string
		at, now int64
		taken   uint64
		mark    uint64 // before
		want    uint64
		lag     time.Duration
	}{
		{"1,000 ids a millisecond", 0, ms, 1000, 1000, 62, time.Millisecond},
		{"the same with another lag", 0, ms, 1000, 1000, 625, 10 * time.Millisecond},
		{"a higher rate", 0, ms, 1 << 20, 30, 61, time.Millisecond},
		{"the greatest mark", 0, ms, 1 << 30, 1<<22 - 1, 1 << 22, time.Millisecond},
		{"a first id", 0, ms, 1, 0, 0, time.Millisecond},
		{"a second one at once", 0, 100, 1, 0, 1, time.Millisecond},
		{"fifteen in a lag", 0, ms, 15, 9, 0, time.Millisecond},
		{"sixteen in a lag", 0, ms, 16, 9, 1, time.Millisecond},
		{"a clock that stands still", 5, 5, 3, 4, 9, time.Millisecond},
		{"a clock that has gone back", 5, 4, 300, 40, 0, time.Millisecond},
		{"a clock that was before 1970 and is in 2262", math.MinInt64, math.MaxInt64, 300, 40, 0, time.Millisecond},
		{"more than can be", 0, 1, math.MaxUint64, 1 << 21, 1 << 22, time.Second},
	} {
		p := pace{lag: int64(c.lag), at: c.at, taken: c.taken, mark: c.mark}
		if p.advance(c.now); p.mark != c.want || p.at != c.now || p.taken != 0 {
			t.Errorf("%s: mark %d, want %d; at %d, %d taken", c.claim, p.mark, c.want, p.at, p.taken)
		}
	}
}

// A lower limit would let a caller that has read the higher one issue what the core counts as unused.
func TestAMarkNeverLowersALimit(t *testing.T) {
	for _, c := range []struct {
		claim       string
		mark        uint64
		limit, core uint64 // of the word before, and of the core now
		want        uint64
		opened      bool
	}{
		{"below the core's limit", 5, 0, 30, 25, true},
		{"above the core's limit", 50, 0, 30, 30, true},
		{"below the limit before", 5, 28, 30, 28, true},
		{"at the limit before", 8, 28, 30, 28, true},
		{"no mark, and positions left below the limit before", 0, 28, 30, 28, true},
		{"no mark, and no position left", 0, 20, 30, 20, false},
		{"a core that goes less far than the limit before", 5, 31, 30, 31, false},
	} {
		var l later
		g := &Generator{core: core{pos: 20, high: 20}, pace: pace{lag: 1, mark: c.mark, timers: &l}}
		w := &cell{}
		w.word.Store(sealed)
		w.limit.Store(c.limit)
		g.publish(w, decision{open: true, limit: c.core, opens: 7, closes: 9})
		if word := w.word.Load(); (word != sealed) != c.opened || c.opened && word != 20 || w.limit.Load() != c.want {
			t.Errorf("%s: word %d, limit %d, want %d", c.claim, word, w.limit.Load(), c.want)
		}
		if (len(l) == 1) != c.opened || g.pace.armed != c.opened {
			t.Errorf("%s: %d timers", c.claim, len(l))
		}
		if c.opened && g.pace.from != 20 {
			t.Errorf("%s: it counts from %d", c.claim, g.pace.from)
		}
	}
}

// What callers took from the word counts for the rate, and what the call itself was given.
func TestThePaceCountsAllIDs(t *testing.T) {
	g := &Generator{core: core{pos: 20, high: 20}, pace: pace{lag: 1, mark: 10, timers: &later{}, taken: 2}}
	w := &cell{}
	w.word.Store(sealed)
	g.publish(w, decision{open: true, limit: 30})
	w.take(7)
	g.collect(w)
	if g.pace.taken != 9 {
		t.Errorf("%d ids, not 2 and 7", g.pace.taken)
	}
}

// A caller that passed the mark while another read the clock takes its id from the word.
func TestACallTakesFromAWordThatAnotherHasOpened(t *testing.T) {
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	l := mustParse(t, "41/0/6/12,unit=1s")
	g, err := NewLeased(Config{Layout: l, Start: StartZero, Lag: time.Second, Time: lagged{&clocks{wall: noon}, &later{}}}, Grant{Worker: 5, After: now - 1, Through: now + 9})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	known, next := g.core.pos, g.next()
	_, d, _, _ := g.decide(1, &attempt{})
	if d.act != actIssue || d.first != next || d.count != 1 || g.core.pos != known || !g.isOpen() {
		t.Errorf("%+v; the core was asked: %t", d, g.core.pos != known)
	}
}

type lagged struct {
	*clocks
	*later
}

func mustParse(t *testing.T, text string) Layout {
	t.Helper()
	l, err := ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A recall between the moment at which a Local takes a block and the moment at which it notes the recalls
// must not be missed: it notes them first.
func TestARecallDuringARefillCounts(t *testing.T) {
	g, err := New(0, Config{Clock: ClockVirtual, From: noon})
	if err != nil {
		t.Fatal(err)
	}
	l := g.Local()
	for range 40 {
		if _, err := l.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if l.at.left == 0 {
		t.Fatal("its block is used up")
	}
	before := g.core.high
	g.mu.Lock()
	g.revoke()
	g.mu.Unlock()
	if g.core.high <= before {
		t.Errorf("the core counts %d as used, not more than %d", g.core.high, before)
	}
	rest := l.at.id
	id, err := l.Next(context.Background())
	if err != nil || id <= rest {
		t.Errorf("id %d of the recalled block, whose next was %d, %v", id, rest, err)
	}
	if l.at.length != 1 {
		t.Errorf("after a recall the block has %d ids", l.at.length)
	}
}
