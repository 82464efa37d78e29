package firn

import (
	"context"
	"math"
	"testing"
	"time"
)

// clocks is a time source whose two clocks stand still.
type clocks struct {
	wall time.Time
	mono time.Duration
}

func (c *clocks) Wall() time.Time                            { return c.wall }
func (c *clocks) Monotonic() time.Duration                   { return c.mono }
func (c *clocks) Sleep(context.Context, time.Duration) error { panic("no call may wait") }

var (
	noon    = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	seconds = Layout{epoch: defaultEpoch.UnixNano(), unit: int64(time.Second), time: 41, worker: 6, sequence: 3}
)

// ready returns a generator that has issued an id at noon, its clocks, and the tick.
func ready(t *testing.T, clock ClockKind) (*Generator, *clocks, Tick) {
	t.Helper()
	c := &clocks{noon, 5 * time.Second}
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewLeased(Config{Layout: seconds, Clock: clock, Ahead: -1, Start: StartZero, Time: c}, Grant{Worker: 5, After: now - 1, Through: now + 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g, c, now
}

// callsFor has the calls that return one id.
var callsFor = map[string]func(g *Generator) (ID, error){
	"Next": func(g *Generator) (ID, error) { return g.Next(context.Background()) },
	"Take": func(g *Generator) (ID, error) {
		r, err := g.Take(context.Background(), 1)
		if err != nil {
			return 0, err
		}
		return r.At(0), nil
	},
}

// The usual call is one addition, without the core.
func TestACallTakesTheNextIDFromTheWord(t *testing.T) {
	for name, call := range callsFor {
		for _, clock := range []ClockKind{ClockSteady, ClockWall} {
			g, c, now := ready(t, clock)
			c.wall, c.mono = c.wall.Add(time.Second-1), c.mono+time.Second-1 // the tick's last nanosecond
			known := g.core.pos
			for i := range int64(3) {
				id, err := call(g)
				if err != nil {
					t.Fatal(err)
				}
				p, err := seconds.Decompose(id)
				if err != nil || p.Tick != now || p.Sequence != i+1 || p.Worker != 5 {
					t.Errorf("%s, %v: %+v, %v", name, clock, p, err)
				}
			}
			if g.core.pos != known || !g.isOpen() {
				t.Errorf("%s, %v: the core was asked", name, clock)
			}
		}
	}
}

func TestTheWordIsNotUsedOutsideOfItsTick(t *testing.T) {
	for name, call := range callsFor {
		for _, clock := range []ClockKind{ClockSteady, ClockWall} {
			g, c, now := ready(t, clock)
			c.wall, c.mono = c.wall.Add(time.Second), c.mono+time.Second
			id, err := call(g)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := seconds.Decompose(id); err != nil || p.Tick != now+1 || p.Sequence != 0 {
				t.Errorf("%s, %v: a second later: %+v, %v", name, clock, p, err)
			}
		}
		g, c, _ := ready(t, ClockWall)
		c.wall = c.wall.Add(-1)
		if id, err := call(g); err == nil {
			t.Errorf("%s: id %d of a clock that has gone back", name, id)
		}
	}
}

func TestEachIDReadsTheClockOfTheGenerator(t *testing.T) {
	c := &clocks{noon, 5 * time.Second}
	system := SystemTime()
	for _, r := range []struct {
		claim       string
		g           *Generator
		least, most func() int64
	}{
		{"steady", &Generator{clock: ClockSteady, time: c}, func() int64 { return int64(c.mono) }, func() int64 { return int64(c.mono) }},
		{"wall", &Generator{clock: ClockWall, time: c}, noon.UnixNano, noon.UnixNano},
		{"steady, of the system", &Generator{clock: ClockSteady, time: system, system: true}, sinceStarted, sinceStarted},
		{"wall, of the system", &Generator{clock: ClockWall, time: system, system: true}, func() int64 { return time.Now().UnixNano() }, func() int64 { return time.Now().UnixNano() }},
	} {
		least := r.least()
		got := r.g.read()
		if most := r.most(); got < least || got > most {
			t.Errorf("%s: %d, not from %d to %d", r.claim, got, least, most)
		}
	}
}

func sinceStarted() int64 { return int64(time.Since(started)) }

// Otherwise each call asks the core.
func TestTheWordIsOpenedOnlyAboveAllUsedPositions(t *testing.T) {
	for _, c := range []struct {
		claim            string
		d                decision
		pos, high, limit uint64
		opened           bool
	}{
		{"all is new", decision{open: true, limit: 30}, 20, 20, 0, true},
		{"above what was used", decision{open: true, limit: 30}, 20, 19, 0, true},
		{"below what was used", decision{open: true, limit: 30}, 19, 20, 0, false},
		{"the same limit", decision{open: true, limit: 30}, 20, 20, 30, true},
		{"a lower limit", decision{open: true, limit: 29}, 20, 20, 30, false},
		{"the core does not want it", decision{limit: 30}, 20, 20, 0, false},
	} {
		g := &Generator{clock: ClockWall, core: core{pos: c.pos, high: c.high}}
		w := &cell{}
		w.word.Store(sealed)
		w.limit.Store(c.limit)
		c.d.opens, c.d.closes = 7, 9
		g.publish(w, c.d)
		if word := w.word.Load(); (word != sealed) != c.opened || c.opened && word != c.pos {
			t.Errorf("%s: the word is %d", c.claim, word)
		}
		if w.limit.Load() < c.limit || c.opened && (w.limit.Load() != c.d.limit || w.opens.Load() != 7 || w.closes.Load() != 9) {
			t.Errorf("%s: limit %d, from %d to %d", c.claim, w.limit.Load(), w.opens.Load(), w.closes.Load())
		}
	}
}

// The wall clock is looked at each second, so the word must close by then.
func TestTheWordOfASteadyClockClosesForItsLooks(t *testing.T) {
	for claim, c := range map[string]struct{ unit, want int64 }{
		"a tick ends before the look": {int64(100 * time.Millisecond), int64(5100 * time.Millisecond)},
		"the look comes first":        {int64(10 * time.Second), int64(6 * time.Second)},
	} {
		g := &Generator{clock: ClockSteady, steady: startSteady(int64(5*time.Second), 1000)}
		w := &cell{}
		g.publish(w, decision{open: true, limit: 8, opens: 1000, closes: 1000 + c.unit})
		if w.opens.Load() != math.MinInt64 || w.closes.Load() != c.want {
			t.Errorf("%s: from %d to %d", claim, w.opens.Load(), w.closes.Load())
		}
	}
}

func TestCollectCountsWhatWasTakenFromTheWord(t *testing.T) {
	for _, c := range []struct {
		claim            string
		word, limit      uint64
		pos, high        uint64 // before
		wantPos, wantTop uint64
	}{
		{"some", 13, 20, 10, 10, 13, 13},
		{"all", 20, 20, 10, 10, 20, 20},
		{"more than there were", 29, 20, 10, 10, 20, 20},
		{"sealed", sealed, 20, 10, 11, 10, 11},
		{"sealed and overrun", sealed + 5, 20, 10, 11, 10, 11},
		{"in a tick gone back to", 13, 20, 10, 18, 13, 18},
	} {
		g := &Generator{core: core{pos: c.pos, high: c.high}}
		w := &cell{}
		w.word.Store(c.word)
		w.limit.Store(c.limit)
		g.cell.Store(w)
		if g.collect(w); g.core.pos != c.wantPos || g.core.high != c.wantTop || w.word.Load() != sealed {
			t.Errorf("%s: next %d, used below %d, word %d", c.claim, g.core.pos, g.core.high, w.word.Load())
		}
	}
}

func TestTakeReturnsPositionsBelowTheLimit(t *testing.T) {
	for _, c := range []struct {
		word, limit, n uint64
		p, got         uint64
		ok             bool
	}{
		{10, 20, 1, 10, 1, true},
		{10, 20, 9, 10, 9, true},
		{10, 20, 10, 10, 10, true},
		{10, 20, 11, 10, 10, true},
		{19, 20, 5, 19, 1, true},
		{20, 20, 1, 0, 0, false},
		{sealed, 20, 1, 0, 0, false},
	} {
		w := &cell{}
		w.word.Store(c.word)
		w.limit.Store(c.limit)
		p, got, ok := w.take(c.n)
		if p != c.p || got != c.got || ok != c.ok || w.word.Load() != c.word+c.n {
			t.Errorf("%d of %d to %d: %d from %d, %t, word %d", c.n, c.word, c.limit, got, p, ok, w.word.Load())
		}
	}
}

// A steady clock must not go back below positions that callers took from the word.
func TestUsedIncludesWhatWasTakenFromTheWord(t *testing.T) {
	g, _, now := ready(t, ClockSteady)
	for range 7 { // the rest of the tick
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if used, want := g.used(), seconds.nanos(now+1); used != want {
		t.Errorf("used below %d, not %d", used, want)
	}
	for claim, c := range map[string]struct{ word, limit, next uint64 }{
		"some":                 {13, 20, 13},
		"all":                  {20, 20, 20},
		"more than there were": {29, 20, 20},
		"sealed":               {sealed, 20, 10},
		"sealed and overrun":   {sealed + 5, 20, 10},
	} {
		g := &Generator{core: core{pos: 10}}
		w := &cell{}
		w.word.Store(c.word)
		w.limit.Store(c.limit)
		g.cell.Store(w)
		if next := g.next(); next != c.next || w.word.Load() != c.word {
			t.Errorf("%s: the next is %d, not %d", claim, next, c.next)
		}
	}
	if _, err := g.Take(context.Background(), 0); err == nil || err.Error() != "number of ids 0 is out of range: 1 to 9223372036854775807 are allowed" {
		t.Errorf("zero ids: %v", err)
	}
}

func TestTheStateDoesNotCountPositionsThatNoCallerGot(t *testing.T) {
	g, _, now := ready(t, ClockWall)
	if run, err := g.Take(context.Background(), 100); err != nil || run.Len() != 7 {
		t.Fatalf("%d ids, %v", run.Len(), err)
	}
	if last := g.State().Last; last != now {
		t.Errorf("%d ticks above the last", last-now)
	}
}

// The old worker's word gives out no more positions, and Retired gets its last tick.
func TestAnotherGrantSealsTheWord(t *testing.T) {
	type left struct {
		worker int64
		last   Tick
	}
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	var heard left
	g, err := NewLeased(Config{
		Layout: seconds, Clock: ClockWall, Ahead: 5 * time.Second, Start: StartZero, Time: &clocks{wall: noon},
		Retired: func(old, _ int64, last Tick) { heard = left{old, last} },
	}, Grant{Worker: 5, After: now - 1, Through: now + 9})
	if err != nil {
		t.Fatal(err)
	}
	var before ID
	for range 20 { // ids of three ticks, all but the first from the word
		if before, err = g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c := g.cell.Load() // as a caller that pauses has it
	if err := g.Replace(Grant{Worker: 4, After: now - 1, Through: now + 9}); err != nil {
		t.Fatal(err)
	}
	if p, got, ok := c.take(1); ok {
		t.Errorf("%d positions of the old worker, from %d on", got, p)
	}
	if want := (left{5, now + 2}); heard != want {
		t.Errorf("Retired: %+v, not %+v", heard, want)
	}
	if id, err := g.Next(t.Context()); err != nil || id <= before {
		t.Errorf("id %d after %d, %v", id, before, err)
	}
}

// This holds whether the word was opened or not.
func TestTheSequenceIsCarriedIntoAnotherGrant(t *testing.T) {
	now, err := seconds.Tick(noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, clock := range []ClockKind{ClockSteady, ClockWall, ClockVirtual} {
		c := &clocks{wall: noon}
		var from time.Time
		if clock == ClockVirtual {
			from = noon
		}
		g, err := NewLeased(Config{Layout: seconds, Clock: clock, Ahead: 5 * time.Second, From: from, Time: c, Random: func() uint64 { return 8 + 3 }},
			Grant{Worker: 5, After: now - 1, Through: now + 9})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []Parts{{Tick: now, Worker: 5, Sequence: 3}, {Tick: now, Worker: 5, Sequence: 4}, {Tick: now + 1, Worker: 6, Sequence: 5}} {
			if i == 2 {
				c.wall, c.mono = c.wall.Add(time.Second), c.mono+time.Second
				if err := g.Replace(Grant{Worker: 6, After: now - 1, Through: now + 9}); err != nil {
					t.Fatal(err)
				}
			}
			id, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p, err := seconds.Decompose(id)
			if p.Tick != want.Tick || p.Worker != want.Worker || p.Sequence != want.Sequence {
				t.Errorf("%v, id %d: %+v, %v", clock, i, p, err)
			}
		}
	}
}
