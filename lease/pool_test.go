package lease

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// What a newcomer does before it may claim a slot, at tick 1000 of a pool whose holders
// take 12 seconds to notice a loss.
func TestWhatANewcomerDoesFirst(t *testing.T) {
	life := "one"
	at := reading{wall: easy().layout.Time(1000)}
	clocked := at
	clocked.there = easy().layout.Time(1004)
	open := Pool{Layout: easy().layout, Open: true, Grace: Duration(easy().grace), Tolerance: Duration(10 * time.Millisecond), Life: &life}
	with := func(change func(*Pool)) Pool { r := open; change(&r); return r }
	closed := with(func(r *Pool) { r.Open = false })
	strict := with(func(r *Pool) { r.Strict = Duration(time.Second) })
	// Two clocks may differ by twice the tolerance, which is 10 ticks.
	held, lately, ended, given := Slot{Fence: 1000}, Slot{Fence: 980}, Slot{Fence: 979}, Slot{Fence: 5000, Free: true}
	for name, c := range map[string]struct {
		r      *rules
		record Pool
		slots  []Slot
		here   reading
		want   string
	}{
		"nothing":                          {easy(), open, nil, at, "claims"},
		"no holder is alive":               {easy(), open, []Slot{ended}, at, "closed, settled 979"},
		"no holder is alive, not even one": {easy(), open, []Slot{{Fence: 3}, ended, given}, at, "closed, settled 979"},
		"all have left":                    {easy(), open, []Slot{given}, at, "claims"},
		"somebody is alive":                {easy(), open, []Slot{held, ended}, at, "claims"},
		"somebody may be alive":            {easy(), open, []Slot{lately, ended}, at, "claims"},
		"that was waited for":              {easy(), with(func(r *Pool) { r.Settled = 979 }), []Slot{ended}, at, "claims"},
		"less was waited for":              {easy(), with(func(r *Pool) { r.Settled = 978 }), []Slot{ended}, at, "closed, settled 979"},
		"its grace is shorter":             {easy(), with(func(r *Pool) { r.Grace = Duration(time.Second) }), nil, at, "pool has a grace of 1s, which follows from Look, not 12s"},
		"a closed one's grace as well":     {easy(), with(func(r *Pool) { r.Grace, r.Open = Duration(time.Second), false }), nil, at, "pool has a grace of 1s, which follows from Look, not 12s"},
		"its grace is longer":              {easy(), with(func(r *Pool) { r.Grace = Duration(time.Minute) }), nil, at, "pool has a grace of 1m0s, which follows from Look, not 12s"},
		"its tolerance is less":            {easy(), with(func(r *Pool) { r.Tolerance = Duration(time.Millisecond) }), nil, at, "pool has a tolerance of clocks of 1ms, not 10ms"},
		"a closed one's is more":           {easy(), with(func(r *Pool) { r.Tolerance, r.Open = Duration(time.Second), false }), nil, at, "pool has a tolerance of clocks of 1s, not 10ms"},
		"no life is known":                 {easy(), with(func(r *Pool) { r.Life = nil }), nil, at, "open, no life"},
		"no life of a closed one":          {easy(), with(func(r *Pool) { r.Life, r.Open = nil, false }), nil, at, "closed, no life"},
		"closed":                           {easy(), closed, []Slot{ended}, at, "waits 12s, open"},
		"closed, by a store with clocks":   {easy(), closed, nil, clocked, "waits 12s, open, from 1015"},
		"closed, from later":               {easy(), with(func(r *Pool) { r.Open, r.From = false, 2000 }), nil, clocked, "waits 12s, open, from 2000"},
		"another layout":                   {easy(), with(func(r *Pool) { r.Layout = layout("20/0/4/9") }), nil, at, "pool has layout 20/0/4/9, not 20/0/4/8"},
		"strict, and is":                   {strictly(), strict, []Slot{held}, at, "claims"},
		"strict, and may be made so":       {strictly(), open, []Slot{{Fence: 978}}, at, "open, strict 1s"},
		"strict, beside holders":           {strictly(), open, []Slot{held}, at, "pool has 1 holders without a strict wait, until 2025-01-01T00:00:01Z at the latest, not the strict wait 1s"},
		"strict, beside one, perhaps":      {strictly(), open, []Slot{ended}, at, "pool has 1 holders without a strict wait, until 2025-01-01T00:00:01Z at the latest, not the strict wait 1s"},
		"strict, and closed":               {strictly(), closed, []Slot{held}, at, "waits 12s, open"},
		"strict, and closed otherwise":     {strictly(), with(func(r *Pool) { r.Strict, r.Open = 1, false }), nil, at, "pool has the strict wait 1ns, not 1s"},
		"strict in another way":            {strictly(), with(func(r *Pool) { r.Strict = 1 }), nil, at, "pool has the strict wait 1ns, not 1s"},
		"not strict in a strict one":       {easy(), strict, nil, at, "pool has the strict wait 1s, not 0s"},
		"a fence too far ahead":            {strictly(), strict, []Slot{{Fence: 3011}}, at, "too far ahead"},
		"a fence just so far ahead":        {strictly(), strict, []Slot{{Fence: 3010}}, at, "claims"},
	} {
		p := c.record
		p.Name, p.Slots, p.revision = "p", c.slots, 1
		for i := range p.Slots {
			p.Slots[i].Until = endOf(p.Slots[i].Fence, c.r.layout)
		}
		next, wait, err := c.r.enter(p, false, 1000, c.here)
		if got := entrance(c.record, next, wait, err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	p := open
	p.Name, p.Slots, p.revision = "p", []Slot{ended}, 1
	if next, wait, err := easy().enter(p, true, 1000, at); next != nil || wait != 0 || err != nil {
		t.Errorf("who has waited and opened the pool writes %v after %v, %v", next, wait, err)
	}
	for _, trusting := range []bool{false, true} {
		r := strictly()
		r.trusting = trusting
		next, wait, err := r.enter(Pool{}, false, 1000, at)
		if err != nil || wait != 0 || next.Layout != r.layout || !next.Made.Equal(at.wall) || next.Open != trusting ||
			next.Strict != Duration(time.Second) || next.Grace != Duration(easy().grace) || next.Tolerance != Duration(10*time.Millisecond) || next.Life != nil {
			t.Errorf("it makes %+v after %v, %v", next, wait, err)
		}
	}
}

// entrance says what is written, and how that differs from the record before.
func entrance(before Pool, next *Pool, wait time.Duration, err error) string {
	if wait != 0 && (err != nil || next == nil) {
		return fmt.Sprint("waits in vain: ", wait)
	}
	if e := (*PoolError)(nil); errors.As(err, &e) && e.Pool == "p" {
		return "pool has " + e.Have + ", not " + e.Want
	}
	if errors.Is(err, ErrPool) {
		return "too far ahead"
	}
	if err != nil {
		return err.Error()
	}
	said, now := []string{"claims"}, before
	if next != nil {
		now = *next
		said[0] = map[bool]string{true: "open", false: "closed"}[now.Open]
	}
	if wait > 0 {
		said = []string{"waits " + wait.String(), said[0]}
	}
	if now.Strict != before.Strict {
		said = append(said, "strict "+time.Duration(now.Strict).String())
	}
	if now.Grace != before.Grace {
		said = append(said, "grace "+time.Duration(now.Grace).String())
	}
	if now.Life == nil {
		said = append(said, "no life")
	}
	if now.From != 0 {
		said = append(said, fmt.Sprint("from ", now.From))
	}
	if now.Settled != before.Settled {
		said = append(said, fmt.Sprint("settled ", now.Settled))
	}
	return strings.Join(said, ", ")
}

// The error of a process that may not make a pool strict names the number of holders, and until when they hold.
func TestHoldersOfAPoolThatIsNotStrictAreNamed(t *testing.T) {
	r := strictly()
	const after = 21 // ticks that a worker is not claimed after its fence
	wall := r.layout.Time(500_000)
	slots := []Slot{{Fence: 1000}, {Fence: 620_000}, {Fence: 560_000}, {Fence: 500_000 - after - 1}}
	err := r.mayChangeStrict(Pool{Name: "p", Slots: slots}, wall)
	want := "2 holders without a strict wait, until " + r.layout.Time(620_000+after+1).Format(time.RFC3339)
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the strict wait 1s") {
		t.Errorf("%v, want %s", err, want)
	}
	if err := r.mayChangeStrict(Pool{Slots: slots[3:]}, wall); err != nil {
		t.Errorf("of one that may be claimed from now on: %v", err)
	}
	err = r.mayChangeStrict(Pool{Name: "p", Strict: Duration(time.Minute)}, wall)
	if err == nil || !strings.Contains(err.Error(), `pool "p" has the strict wait 1m0s, not 1s`) {
		t.Errorf("of one that is strict: %v", err)
	}
}

// A pool is open only in the life that it names. One that is new, in a store that is
// trusted, may stay so as it learns its life.
func TestAPoolIsOpenInTheLifeThatConfirmedIt(t *testing.T) {
	one := "one"
	for _, c := range []struct {
		record     Pool
		life       string
		trusting   bool
		open, done bool
	}{
		{Pool{Open: true, Life: &one}, "one", false, true, true},
		{Pool{Open: false, Life: &one}, "one", true, false, true},
		{Pool{Open: true, Life: &one}, "two", false, false, false},
		{Pool{Open: true, Life: &one}, "two", true, false, false},
		{Pool{Open: true}, "two", true, true, false},
		{Pool{Open: true}, "two", false, false, false},
		{Pool{Open: false}, "two", true, false, false},
	} {
		r := easy()
		r.trusting = c.trusting
		got, done := r.confirmedIn(c.record, c.life)
		if got.Open != c.open || done != c.done || got.Life == nil || *got.Life != c.life {
			t.Errorf("%+v in life %s: %+v, %t", c.record, c.life, got, done)
		}
	}
}

// Two clocks may differ by 10 ticks, and it is tick 1000.
func TestTheLatestUnreleasedFence(t *testing.T) {
	given, taken, later := Slot{Fence: 990, Free: true}, Slot{Fence: 960, Free: true, Taken: true}, Slot{Fence: 985, Free: true, Taken: true}
	for name, c := range map[string]struct {
		slots     []Slot
		latest    firn.Tick
		allPassed bool
	}{
		"no slots":                   {nil, -1, true},
		"given back":                 {[]Slot{given}, -1, true},
		"never given back":           {[]Slot{{Fence: 0}}, 0, true},
		"some":                       {[]Slot{{Fence: 3}, {Fence: 7}, given, {Fence: 5}}, 7, true},
		"one may be alive":           {[]Slot{{Fence: 3}, {Fence: 980}, {Fence: 5}}, 980, false},
		"taken back, and passed":     {[]Slot{{Fence: 3}, taken, given}, 960, true},
		"taken back, and not passed": {[]Slot{{Fence: 3}, later}, 3, true},
		"beside one who lives":       {[]Slot{taken, {Fence: 1500}}, 1500, false},
	} {
		if latest, allPassed := easy().unreleased(Pool{Slots: c.slots}, 1000); latest != c.latest || allPassed != c.allPassed {
			t.Errorf("%s: %d, all passed %t, want %d, %t", name, latest, allPassed, c.latest, c.allPassed)
		}
	}
}
