package firn

// A history remembers how much of its sequence each recent tick has used: a
// ring in which tick t has the place t modulo the length.
//
// It is safe because each place names its tick. Published implementations keep bare
// counters: after a lap they take the count of one tick for another's, and a skipped
// tick inherits the count from a lap ago.
type history struct {
	ring []used
}

type used struct {
	tick  Tick   // -1: never written
	until uint64 // the position after the last one used in that tick
}

func newHistory(ticks Tick) history {
	h := history{ring: make([]used, ticks)}
	h.clear()
	return h
}

// kept reports whether there is a history at all.
func (h *history) kept() bool { return len(h.ring) > 0 }

// clear forgets everything: for a worker that was never used before its grant.
func (h *history) clear() {
	for i := range h.ring {
		h.ring[i] = used{tick: -1}
	}
}

// record stores that tick is used below position until.
func (h *history) record(tick Tick, until uint64) {
	if h.kept() && tick >= 0 {
		h.ring[tick%Tick(len(h.ring))] = used{tick: tick, until: until}
	}
}

// oldest returns the first known tick, given the highest ever used.
func (h *history) oldest(high Tick) Tick { return high - Tick(len(h.ring)) + 1 }

// lookup returns the first unused position of a tick, given that the highest
// tick ever used is high. Known is false if the ring no longer covers the tick.
// Written is false for a tick that was skipped: all of it is unused.
func (h *history) lookup(tick, high Tick) (until uint64, written, known bool) {
	if !h.kept() || tick < 0 || tick < h.oldest(high) {
		return 0, false, false
	}
	u := h.ring[tick%Tick(len(h.ring))]
	if u.tick > tick { // cannot happen while high is right; never guess
		return 0, false, false
	}
	return u.until, u.tick == tick, true
}
