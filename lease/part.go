package lease

import "github.com/firn-id/firn"

// A newcomer of a large pool reads the pool's record and only a part of its slots: a hundred workers at
// random, of its own datacenter. To read many thousand slots takes longer than all else that a newcomer
// does, and many newcomers at once would each read them all. A part that does not show what a newcomer
// must learn from the pool, or has no slot for it, is read again ten times as wide, at last the whole pool.

// readWhole is the number of workers of a datacenter up to which newcomers read the whole pool.
const readWhole = 1024

// partDigits is how many decimal digits of the worker's number the first part leaves open.
const partDigits = 2

// A part has the workers whose numbers differ in the last digits only. The zero part has all workers.
type part struct {
	of     int64
	digits int
}

// partOf returns the part of a worker; the zero part if the whole pool must be read. In a strict pool each
// fence is compared with the strict wait, and a pinned worker is one of few.
func (s *poolSource) partOf(worker int64, digits int) part {
	p := part{worker, digits}
	workers := s.rules.layout.MaxWorker() + 1
	if workers <= readWhole || p.size() >= workers || s.rules.strict > 0 || s.cfg.Pinned != nil {
		return part{}
	}
	return p
}

// anyPart returns the part of a worker chosen at random.
func (s *poolSource) anyPart(digits int) part {
	if s.partOf(0, digits).whole() {
		return part{}
	}
	return s.partOf(int64(s.cfg.Generator.Random()%uint64(s.rules.layout.MaxWorker()+1)), digits)
}

func (p part) whole() bool { return p.digits == 0 }

func (p part) size() int64 {
	size := int64(1)
	for range p.digits {
		size *= 10
	}
	return size
}

// workers returns the first worker of a part, and how many it has.
func (p part) workers(layout firn.Layout) (first, n int64) {
	all := layout.MaxWorker() + 1
	if p.whole() {
		return 0, all
	}
	first = p.of / p.size() * p.size()
	return first, min(p.size(), all-first)
}

// prefix returns how the keys of its slots begin.
func (p part) prefix(pool string, layout firn.Layout, datacenter int64) string {
	key := slotKey(pool, layout, datacenter, p.of)
	return key[:len(key)-p.digits]
}

// fewHeld is how many slots must be held, of a pool or of a part of it, for their clocks to be a measure.
const fewHeld = 3

// shows reports whether a newcomer may judge the pool by this part of it. One fence ahead, of a slot that
// its holder never released, proves that the store is no copy older than a window: see unreleased.
func (r *rules) shows(p Pool, now firn.Tick) bool {
	held := 0
	for _, s := range p.Slots {
		if !s.Free && s.Fence >= now {
			held++
		}
	}
	return p.part.whole() || held >= fewHeld
}

// rested reports whether a slot has been idle for so long that its holder did not just miss a renewal. Of
// the whole pool, newcomers take the slots that have been idle longest.
func (r *rules) rested(s Slot, ask Ask) bool {
	return s.Free && !s.Taken || s.Fence < ask.Now-ask.Window
}
