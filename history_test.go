package firn

import "testing"

// answer is what lookup returns.
type answer struct {
	until          uint64
	written, known bool
}

func (h *history) ask(tick, high Tick) answer {
	until, written, known := h.lookup(tick, high)
	if known && !written { // then until has no meaning
		until = 0
	}
	return answer{until, written, known}
}

var (
	unknown = answer{}
	unused  = answer{known: true}
)

func upTo(until uint64) answer { return answer{until, true, true} }

func TestAHistoryKnowsTheLastTicksOnly(t *testing.T) {
	h := newHistory(3)
	h.record(9, 90)
	h.record(10, 105)
	h.record(12, 121)
	for _, c := range []struct {
		claim      string
		tick, high Tick
		want       answer
	}{
		{"the highest tick", 12, 12, upTo(121)},
		{"one before it", 10, 12, upTo(105)},
		{"the oldest of a whole ring", 9, 12, upTo(90)},
		{"one that was skipped", 11, 12, unused},
		{"one before the oldest", 8, 12, unknown},
		{"one whose place belongs to a later tick without a record", 9, 13, unknown},
		{"one above all", 13, 13, unused},
		{"a place that a later tick has taken", 8, 11, unknown},
		{"tick -1", -1, 1, unknown},
	} {
		if got := h.ask(c.tick, c.high); got != c.want {
			t.Errorf("%s: tick %d below %d: %+v, not %+v", c.claim, c.tick, c.high, got, c.want)
		}
	}
}

func TestAnEmptyHistoryReportsNoTickAsUsed(t *testing.T) {
	for name, clear := range map[string]func(*history){
		"new":     func(h *history) { *h = newHistory(2) },
		"cleared": func(h *history) { h.clear() },
	} {
		h := newHistory(2)
		for tick := range Tick(3) {
			h.record(tick, uint64(tick)*8+1)
			if got := h.ask(tick, 2); got != upTo(uint64(tick)*8+1) {
				t.Errorf("tick %d recorded: %+v", tick, got)
			}
		}
		clear(&h)
		for tick := range Tick(3) {
			if got := h.ask(tick, 2); got != unused {
				t.Errorf("%s: tick %d: %+v, not unused", name, tick, got)
			}
		}
	}
}

// Tick -1 means that no tick is in use yet.
func TestAHistoryRecordsNoTickBelowZero(t *testing.T) {
	h := newHistory(0)
	h.record(0, 5)
	h.record(-1, 7)
	if got := h.ask(0, 0); got != upTo(5) {
		t.Errorf("tick 0 after tick -1: %+v", got)
	}
}

func TestAHistoryOfNoTicksKnowsNothing(t *testing.T) {
	var h history
	h.record(3, 25)
	for tick := range Tick(5) {
		if got := h.ask(tick, 3); h.kept() || got != unknown {
			t.Errorf("kept: %t, tick %d: %+v", h.kept(), tick, got)
		}
	}
	if h = newHistory(0); !h.kept() {
		t.Error("a history of one tick reports that it keeps nothing")
	}
}
