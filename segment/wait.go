package segment

import (
	"container/list"
	"fmt"
)

// maxRows bounds how often the first caller in line that waits for consecutive ids may find the
// fetched ranges too short.
const maxRows = 16

// A waiter is a caller that takes ids or waits for the next range. [Namespace].mu guards it until
// done is closed.
type waiter struct {
	count uint64 // how many ids it takes at most; 0: it only waits until there are some
	row   bool   // it takes exactly count ids, in a row
	whole bool   // it takes exactly count ids
	tries int    // ranges that did not suffice while it was first in line

	got   Range
	all   []Range // with whole
	err   error
	place *list.Element // in the line; nil once it was served
	done  chan struct{} // closed once it was served; nil if it never had to wait
}

// waiters is a line of callers. [Namespace].mu guards it.
type waiters struct {
	line  list.List // of *waiter, in order of arrival
	waits int64     // calls that found no id in memory
}

// join puts w at the end of the line.
func (q *waiters) join(w *waiter) {
	w.done = make(chan struct{})
	w.place = q.line.PushBack(w)
}

// leave removes a caller whose context has ended. It returns false if the caller was already
// served; that stands.
func (q *waiters) leave(w *waiter) bool {
	if w.place == nil {
		return false
	}
	q.line.Remove(w.place)
	return true
}

// longest returns how many ids those callers wait for that need a certain number, at most.
func (q *waiters) longest() (count int64) {
	for place := q.line.Front(); place != nil; place = place.Next() {
		if w, _ := place.Value.(*waiter); w.row || w.whole {
			count = max(count, int64(w.count))
		}
	}
	return count
}

// serve wakes the waiters that get ids from s, in order of arrival, or all of them with an error.
// So a range goes to those that have waited longest.
func (q *waiters) serve(s *stock, err error) {
	for place := q.line.Front(); place != nil; {
		next := place.Next()
		w, _ := place.Value.(*waiter)
		if place.Prev() == nil {
			w.tries++
		}
		if w.err = err; err != nil || s.serve(w) {
			q.line.Remove(place)
			w.place = nil
			close(w.done)
		}
		place = next
	}
}

// serve gives w what it takes, or an error if waiting longer is useless. It returns false if w has
// to wait.
func (s *stock) serve(w *waiter) bool {
	switch {
	case w.count == 0:
		return s.left() > 0
	case w.whole:
		if w.all = s.takeAll(int64(w.count)); w.all == nil && (w.tries >= maxRows || w.tries > 0 && len(s.chain) >= maxChain) {
			w.err = fmt.Errorf("%w: %d ids of %q were asked for at once, and %d ranges that were fetched had fewer or were used up by others; ask for fewer",
				ErrSource, w.count, s.name, w.tries)
		}
		return w.all != nil || w.err != nil
	}
	w.got = s.take(w.count, w.row)
	switch {
	case w.got.Count > 0:
		return true
	case w.row && s.stride > 1:
		w.err = fmt.Errorf("%w: those of %q are %d apart", ErrNotConsecutive, s.name, s.stride)
	case w.row && (w.tries >= maxRows || len(s.chain) >= maxChain):
		w.err = fmt.Errorf("%w: %d of %q were asked for, and %d ranges that were fetched are too short or were used up by others; ask for fewer",
			ErrNotConsecutive, w.count, s.name, w.tries)
	}
	return w.err != nil
}
