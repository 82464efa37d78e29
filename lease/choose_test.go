package lease

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// A newcomer takes a worker never used, at random, or one of the eight idle longest. Of an embedded store it first takes
// any that was released: each command that makes one id would make the pool larger for all.
func TestWhichSlotIsChosen(t *testing.T) {
	eight := layout("20/1/3/8")
	slots := func(datacenter int64, fences ...firn.Tick) (all []Slot) {
		for worker, fence := range fences {
			all = append(all, Slot{Datacenter: datacenter, Worker: int64(worker), Fence: fence, revision: 1})
		}
		return all
	}
	gap := append(slots(1, 10, 10, 10), Slot{Datacenter: 1, Worker: 4, Fence: 10}, Slot{Datacenter: 1, Worker: 7, Fence: 10})
	sixteen := layout("20/0/4/8")
	ten := slots(0, 90, 10, 80, 20, 70, 30, 60, 40, 50, 99, 200, 200, 200, 200, 200, 200)
	many := make([]firn.Tick, 4096)
	wide := layout("20/0/13/8")
	for name, c := range map[string]struct {
		layout firn.Layout
		slots  []Slot
		dc     int64
		random uint64
		want   int64 // -1: no slot
		fence  firn.Tick

		embedded bool
	}{
		"the first of all":                                  {eight, nil, 0, 0, 0, -1, false},
		"any of all":                                        {eight, nil, 0, 7, 7, -1, false},
		"the first unused":                                  {eight, gap, 1, 0, 3, -1, false},
		"the next unused":                                   {eight, gap, 1, 1, 5, -1, false},
		"the last unused":                                   {eight, gap, 1, 2, 6, -1, false},
		"another datacenter's count for it":                 {eight, gap, 0, 0, 0, -1, false},
		"behind another datacenter's":                       {eight, append(slots(0, 1, 1), gap...), 1, 0, 3, -1, false},
		"the idle longest":                                  {sixteen, ten, 0, 0, 1, 10, false},
		"the eighth":                                        {sixteen, ten, 0, 7, 2, 80, false},
		"the ninth is not":                                  {sixteen, ten, 0, 8, 1, 10, false},
		"idle two ticks ago":                                {eight, slots(0, 100, 100, 98, 100, 100, 100, 100, 100), 0, 5, 2, 98, false},
		"released, of an embedded store":                    {eight, freed(gap), 1, 2, 2, 10, true},
		"the only one released, of an embedded store":       {eight, append(freed(slots(1, 10)), slots(1, 10, 10, 10)[1:]...), 1, 1, 0, 10, true},
		"not released, of an embedded store":                {eight, gap, 1, 0, 3, -1, true},
		"taken, of an embedded store":                       {eight, taken(gap), 1, 0, 3, -1, true},
		"unused, of an embedded store whose slots are held": {eight, held(slots(1, 10, 10)), 1, 0, 2, -1, true},
		"only slots that are not held":                      {eight, slots(0, 100, 100, 100, 100, 100, 100, 100, 100), 0, 5, -1, 0, false},
		"one unused of many":                                {wide, slots(0, many[1:]...), 0, 0, 4095, -1, false},
		"an idle one of more":                               {wide, slots(0, many...), 0, 0, 0, 0, false},
		"an unused one of more, if no slot is idle":         {layout("20/0/13/8"), held(slots(0, many...)), 0, 0, 4096, -1, false},
	} {
		p := Pool{Layout: c.layout, Slots: c.slots}
		got, ok := (&rules{layout: p.Layout, trusting: c.embedded}).choose(p, c.dc, Ask{Now: 100}, func() uint64 { return c.random })
		if ok != (c.want >= 0) || ok && (got.Worker != c.want || got.Fence != c.fence || got.Datacenter != c.dc || (got.revision == 0) != (c.fence == -1)) {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
}

func freed(slots []Slot) []Slot {
	slots = slices.Clone(slots)
	for i := range slots {
		slots[i].Free = true
	}
	return slots
}

func taken(slots []Slot) []Slot {
	slots = freed(slots)
	for i := range slots {
		slots[i].Taken = true
	}
	return slots
}

func held(slots []Slot) []Slot {
	for i := range slots {
		slots[i].Fence = 100
	}
	return slots
}

// A worker that was never given back is claimed only once its fence has passed by the clock of a
// holder that is cut off, too.
func TestWhenAWorkerIsIdle(t *testing.T) {
	l := layout("41/0/4/12")
	for name, c := range map[string]struct {
		rules rules
		slot  Slot
		from  firn.Tick // it is idle from then on
	}{
		"never used":                {rules{tolerance: time.Second}, Slot{Fence: -1}, -1},
		"held":                      {rules{tolerance: time.Second}, Slot{Fence: 5000}, 7002},
		"held, clocks that may not": {rules{}, Slot{Fence: 5000}, 5002},
		"held in the first tick":    {rules{tolerance: time.Second}, Slot{Fence: 0}, 2002},
		"given back":                {rules{tolerance: time.Second}, Slot{Fence: 5000, Free: true}, 5001},
		"taken back":                {rules{tolerance: time.Second}, Slot{Fence: 5000, Free: true, Taken: true}, 7002},
		"of one who is gone":        {rules{tolerance: time.Second}, Slot{Fence: 5000, Free: true, Taken: true, Gone: true}, 5001},
		"held by one clock":         {rules{tolerance: time.Second, trusting: true}, Slot{Fence: 5000}, 5001},
	} {
		c.rules.layout = l
		if c.rules.idle(c.slot, c.from-1) && c.from > 0 || !c.rules.idle(c.slot, c.from) {
			t.Errorf("%s: %t before, %t from then on", name, c.rules.idle(c.slot, c.from-1), c.rules.idle(c.slot, c.from))
		}
		if at := c.rules.idleAt(c.slot); c.from > 0 && !at.Equal(l.Time(c.from)) {
			t.Errorf("%s: from %v, want %v", name, at, l.Time(c.from))
		}
	}
}

func TestAFullPoolErrorNamesWhenTheFirstWorkerIsIdle(t *testing.T) {
	r := rules{layout: layout("41/0/4/12"), tolerance: time.Minute}
	at := func(datacenter int64, minutes int, free bool) Slot {
		return Slot{Datacenter: datacenter, Fence: firn.Tick(minutes) * 60_000, Free: free}
	}
	p := Pool{Slots: []Slot{at(0, 1, false), at(1, 6, true), at(1, 5, true), at(1, 3, false), at(1, 4, false)}}
	if got, want := r.nextIdle(p, 1), r.layout.Epoch().Add(5*time.Minute); got.Sub(want).Abs() > 5*time.Millisecond {
		t.Errorf("%v, want %v", got, want)
	}
	if got := r.nextIdle(p, 2); !got.IsZero() {
		t.Errorf("without slots: %v", got)
	}
}

// At least half of those who hold slots say that it is later than what they are taken to say.
func TestTheClockOfTheOthersIsTheirMedian(t *testing.T) {
	for _, c := range []struct {
		minutes []int
		want    int // -1: too few
	}{
		{nil, -1}, {[]int{5, 9}, -1}, {[]int{9, 1, 5}, 5}, {[]int{9, 1, 5, 7}, 5}, {[]int{9, 1, 5, 7, 8}, 7},
	} {
		p := Pool{Slots: []Slot{{Free: true, At: noon.Add(time.Hour)}}}
		for _, m := range c.minutes {
			host := fmt.Sprint("of ", m)
			p.Slots = append(p.Slots,
				Slot{Host: host, At: noon.Add(time.Duration(m) * time.Minute), Fence: 1000},
				Slot{Host: host, At: noon.Add(24 * time.Hour), Fence: 1000}, // it crashed while its clock was wrong
				Slot{Host: host, At: noon.Add(-24 * time.Hour), Fence: 999}, // it crashed yesterday
				Slot{Host: host, At: noon.Add(-24 * time.Hour), Fence: 1000, Free: true})
		}
		at, ok := clockOfOthers(p, 1000)
		if ok != (c.want >= 0) || ok && !at.Equal(noon.Add(time.Duration(c.want)*time.Minute)) {
			t.Errorf("%v: %v, %t", c.minutes, at, ok)
		}
	}
}
