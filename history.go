package firn

// A history records how much of the sequence each recent tick has used. It is a ring in
// which tick t has the place t modulo the length.
//
// Each place records which tick it is about. Without that (other generators keep only
// counters), a tick would inherit the count of the tick one lap before.
type history struct {
	ring []used
}

type used struct {
	tick  Tick   // -1: never written
	until uint64 // the position after the last one used in that tick
}

// newHistory returns a history of the latest tick and of ticks before it.
func newHistory(before Tick) history {
	h := history{ring: make([]used, before+1)}
	h.clear()
	return h
}

// kept reports whether there is a history at all.
func (h *history) kept() bool { return len(h.ring) > 0 }

// clear empties the history, for a new grant, under which all ticks are unused.
func (h *history) clear() {
	for i := range h.ring {
		h.ring[i] = used{tick: -1}
	}
}

// record stores that the positions of tick below until are used.
func (h *history) record(tick Tick, until uint64) {
	if h.kept() && tick >= 0 {
		h.ring[tick%Tick(len(h.ring))] = used{tick: tick, until: until}
	}
}

// oldest returns the first tick that the ring covers, given the highest used tick.
func (h *history) oldest(high Tick) Tick { return high - Tick(len(h.ring)) + 1 }

// lookup returns the first unused position of a tick, given the highest used tick. Known
// is false if the ring no longer covers the tick. Written is false if the whole tick is
// unused.
func (h *history) lookup(tick, high Tick) (until uint64, written, known bool) {
	if !h.kept() || tick < 0 || tick < h.oldest(high) {
		return 0, false, false
	}
	u := h.ring[tick%Tick(len(h.ring))]
	if u.tick > tick { // only if high is wrong; then report the tick as unknown
		return 0, false, false
	}
	return u.until, u.tick == tick, true
}
