package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
)

// large is a pool of which newcomers read parts.
const large = "41/1/11/10"

// crowd writes the slots of some workers of a large pool.
func (w *world) crowd(from, to int64, slot Slot) {
	w.t.Helper()
	for worker := from; worker <= to; worker++ {
		slot.Owner = fmt.Sprint("another ", worker)
		w.put(slotKey("default", layout(large), slot.Datacenter, worker), must(register.Encode(slot)))
	}
}

// newcomer returns slots of a large pool, whose random numbers are all 1,234, and the lists that they read.
func (w *world) newcomer(t *testing.T, change ...func(*Config)) (*poolSource, func() Ask, *[]string) {
	t.Helper()
	lists := &[]string{}
	s, ask := w.slots(t, append([]func(*Config){func(c *Config) {
		c.Generator.Layout, c.Generator.Random = layout(large), func() uint64 { return 1234 }
		c.Store = &scripted{Store: w.mem, call: func(what, key string) error {
			if what == "list" {
				*lists = append(*lists, strings.TrimPrefix(key, "firn/default/"))
			}
			return nil
		}}
	}}, change...)...)
	return s, ask, lists
}

// A newcomer of a large pool reads a hundred workers. It reads ten times as many if fewer than three of them
// are held, or if it may not claim any, and the whole pool at last.
func TestANewcomerOfALargePoolReadsAPart(t *testing.T) {
	type group struct {
		from, to int64
		slot     Slot
	}
	origin := must(layout(large).Tick(noon))
	minutes := func(n int) firn.Tick { return origin + firn.Tick(n)*60_000 }
	holder := Slot{Fence: minutes(10)}
	pinned := int64(7)
	part, wider, all := "slot/0/12", "slot/0/1", ""
	for name, c := range map[string]struct {
		slots    []group
		change   func(*Config)
		reads    []string
		from, to int64 // where its worker is
	}{
		"no holders":                            {nil, nil, []string{part, wider, all}, 0, 2047},
		"three holders":                         {[]group{{1210, 1212, holder}}, nil, []string{part}, 1200, 1299},
		"two holders and one not far away":      {[]group{{1210, 1211, holder}, {1500, 1500, holder}}, nil, []string{part, wider}, 1000, 1999},
		"two holders and one far away":          {[]group{{1210, 1211, holder}, {500, 500, holder}}, nil, []string{part, wider, all}, 0, 2047},
		"three in another datacenter":           {[]group{{1210, 1212, Slot{Datacenter: 1, Fence: minutes(10)}}}, nil, []string{part, wider, all}, 0, 2047},
		"three whose fence has passed":          {[]group{{1210, 1212, Slot{Fence: minutes(-1)}}}, nil, slices.Repeat([]string{part, wider, all}, 3), 0, 2047}, // it closes the pool, and opens it
		"three that were given back":            {[]group{{1210, 1212, Slot{Fence: minutes(10), Free: true}}}, nil, []string{part, wider, all}, 0, 2047},
		"no worker is idle":                     {[]group{{1200, 1299, holder}}, nil, []string{part, wider}, 1000, 1999},
		"one was given back a minute ago":       {[]group{{1200, 1298, holder}, {1299, 1299, Slot{Fence: minutes(-1), Free: true}}}, nil, []string{part}, 1299, 1299},
		"one has just missed its renewal":       {[]group{{1200, 1298, holder}, {1299, 1299, Slot{Fence: minutes(-1)}}}, nil, []string{part, wider}, 1000, 1999},
		"one has ended a while ago":             {[]group{{1200, 1298, holder}, {1299, 1299, Slot{Fence: minutes(-2)}}}, nil, []string{part}, 1299, 1299},
		"one was taken from its holder just so": {[]group{{1200, 1298, holder}, {1299, 1299, Slot{Fence: minutes(-1), Free: true, Taken: true}}}, nil, []string{part, wider}, 1000, 1999},
		"a fixed worker":                        {[]group{{1210, 1212, holder}}, func(c *Config) { c.Pinned = &pinned }, []string{all}, 7, 7},
	} {
		w := newWorld(t)
		opener, ask, _ := w.newcomer(t)
		must(0, opener.Release(context.Background(), must(opener.Acquire(context.Background(), ask)), 0))
		w.mem.Delete(slotKey("default", layout(large), 0, 1234))
		w.time.Set(noon)
		for _, g := range c.slots {
			w.crowd(g.from, g.to, g.slot)
		}
		if c.change == nil {
			c.change = func(*Config) {}
		}
		s, ask, lists := w.newcomer(t, c.change)
		grant := must(s.Acquire(context.Background(), ask))
		if !slices.Equal(*lists, c.reads) || grant.Worker < c.from || grant.Worker > c.to {
			t.Errorf("%s: reads %q for worker %d, want %q for one from %d to %d", name, *lists, grant.Worker, c.reads, c.from, c.to)
		}
	}
}

// A pool of up to 1,024 workers is read as a whole, and so is a strict pool.
func TestSmallAndStrictPoolsAreReadAsAWhole(t *testing.T) {
	for _, c := range []struct {
		layout string
		strict time.Duration
		digits int
	}{{"41/0/10/12", 0, 0}, {"41/0/11/11", 0, 2}, {"41/0/11/11", time.Hour, 0}} {
		w := newWorld(t)
		s, _, _ := w.newcomer(t, w.shared, func(cfg *Config) { cfg.Generator.Layout, cfg.Strict = layout(c.layout), c.strict })
		if p := s.anyPart(partDigits); p.digits != c.digits {
			t.Errorf("%+v: %+v", c, p)
		}
	}
}

// A part has the workers whose keys begin with its prefix, and no others.
func TestAPartHasTheWorkersThatItReads(t *testing.T) {
	l := layout("41/2/11/9")
	for worker := range l.MaxWorker() + 1 {
		for digits := range 3 {
			p := part{worker, digits + 1}
			first, n := p.workers(l)
			if first+n-1 > l.MaxWorker() {
				t.Fatalf("%+v has workers %d to %d", p, first, first+n-1)
			}
			for _, w := range []int64{first - 1, first, worker, first + n - 1, first + n} {
				if w < 0 || w > l.MaxWorker() {
					continue
				}
				if got, want := strings.HasPrefix(slotKey("p", l, 2, w), p.prefix("p", l, 2)), w >= first && w < first+n; got != want {
					t.Fatalf("%+v, of workers %d to %d: worker %d is read: %t", p, first, first+n-1, w, got)
				}
			}
		}
	}
}

// The last tick of a fence can be in use.
func TestAPartShowsThePoolByThreeFencesThatHaveNotPassed(t *testing.T) {
	for fences, want := range map[[3]firn.Tick]bool{{100, 100, 100}: true, {200, 100, 99}: false} {
		p := Pool{Layout: layout("20/0/13/8"), part: part{8000, 2}}
		for i, fence := range fences {
			p.Slots = append(p.Slots, Slot{Worker: 8000 + int64(i), Fence: fence, revision: 1})
		}
		if got := (&rules{layout: p.Layout}).shows(p, 100); got != want {
			t.Errorf("fences %v at tick 100: %t", fences, got)
		}
	}
}

// Workers never used are preferred to idle ones in a part as long as in the whole pool.
func TestAPartReusesWorkersLikeThePool(t *testing.T) {
	for used, want := range map[int]bool{49: false, 50: true} { // half of a hundred, as 4,096 of 8,192
		p := Pool{Layout: layout("20/0/13/8"), part: part{8000, 2}}
		for worker := range used {
			p.Slots = append(p.Slots, Slot{Worker: 8000 + int64(worker), Fence: 5, Free: true, revision: 1})
		}
		slot, ok := (&rules{layout: p.Layout}).choose(p, 0, Ask{Now: 100, Window: 10}, func() uint64 { return 7 })
		if reused := slot.revision > 0; !ok || reused != want || slot.Worker < 8000 || slot.Worker > 8099 {
			t.Errorf("of %d used: %+v", used, slot)
		}
	}
}

// A store is set back to a copy without fences ahead. The part that a newcomer reads has no slot in this copy, so
// that it cannot see that one was never given back. It waits nevertheless, and the holder of the worker that it
// wants writes its slot again meanwhile.
func TestANewcomerOfAPartNoticesAnOldCopy(t *testing.T) {
	w := newWorld(t)
	at := func(number uint64) func(*Config) {
		return func(c *Config) {
			w.shared(c)
			c.Generator.Layout, c.Generator.Random = layout(large), func() uint64 { return number }
		}
	}
	must(w.try(at(5))) // and it crashes
	copied := w.mem.Snapshot()
	w.time.Pass(5 * time.Minute)
	holder := w.start(at(1234))
	w.mustTake(holder, 10)
	w.mem.Restore(copied)
	newcomer := w.start(at(1234), func(c *Config) {
		c.Generator.Time = &interrupted{machine: w.time, at: maxPatience, do: func() { holder.turn(context.Background()) }}
	})
	for range 100 {
		w.mustTake(holder, 3)
		w.mustTake(newcomer, 3)
		w.time.Pass(time.Millisecond)
	}
}

// A holder closes the pool after a newcomer has read it: the newcomer's claim does not count.
func TestAPoolThatWasClosedSinceAPartWasRead(t *testing.T) {
	w := newWorld(t)
	opener, ask, _ := w.newcomer(t)
	must(opener.Acquire(context.Background(), ask))
	w.crowd(1200, 1202, Slot{Fence: ask().Now + 600_000})
	record := must(Inspect(context.Background(), w.mem, "default"))
	record.Open = false
	s, ask, _ := w.newcomer(t, func(c *Config) {
		read := 0
		c.Store = &scripted{Store: w.mem, call: func(what, key string) error {
			if what == "write" && read == 0 {
				read++
				w.put(poolKey("default"), must(register.Encode(record)))
			}
			return nil
		}}
	})
	before := w.time.Wall()
	must(s.Acquire(context.Background(), ask))
	if waited := w.time.Wall().Sub(before); waited < grace {
		t.Errorf("it waited %v only", waited)
	}
}

// The record, the part and the clock are read at the same time.
func TestRoundTripsOfJoiningALargePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		s := clocked{&scripted{Store: memstore.New(nil), call: func(string, string) error { time.Sleep(time.Second); return nil }}}
		var took time.Duration
		for range 8 {
			slots := must(newPoolSource(Config{Store: s, Generator: firn.Config{Layout: layout(large), Random: func() uint64 { return 1234 }}}))
			began := time.Now()
			now := must(slots.cfg.Generator.Layout.Tick(began))
			must(slots.Acquire(t.Context(), Ask{Now: now, From: now, Window: 60_000}.always))
			took = time.Since(began)
		}
		if took != 3*time.Second {
			t.Errorf("joining takes %v, want 3 trips of a second", took)
		}
	})
}

// A part and its record fail together with what fails.
func TestErrorsOfReadingAPart(t *testing.T) {
	for _, key := range []string{"list firn/default/slot/0/12", "list firn/default/slot/0/1", "list firn/default/", "get firn/default/pool"} {
		w := newWorld(t)
		s, ask, _ := w.newcomer(t, func(c *Config) {
			c.Store = &scripted{Store: w.mem, call: func(what, k string) error {
				if what+" "+k == key {
					return store.ErrRefused
				}
				return nil
			}}
		})
		if _, err := s.Acquire(context.Background(), ask); err == nil || !strings.Contains(err.Error(), `lease: join pool "default": `) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
