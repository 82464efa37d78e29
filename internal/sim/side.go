package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/store"
)

// A side is a server of the store that answers as its primary. There is only one, except during a
// fork.
type side struct {
	w       *world
	name    string
	life    string
	entries []store.Entry // sorted by key; replaced, never changed
	past    []version
	clock   int64 // its clock's offset from the true time, in ns
	gone    bool  // for good

	replica *replica // it must have a write before that is confirmed; nil: not needed
}

// A replica has the state of its primary some time ago.
type replica struct {
	entries []store.Entry
	has     uint64 // how many writes it has
	writes  uint64 // how many writes the primary has made
	linked  bool
}

// A version is the store's content from a time on.
type version struct {
	since   int64
	entries []store.Entry
}

const maxPast = 128

// setTo replaces the side's content.
func (s *side) setTo(entries []store.Entry) {
	s.entries = entries
	s.past = append(s.past, version{s.w.now, entries})
	if len(s.past) > 2*maxPast {
		s.past = slices.Clone(s.past[maxPast:])
	}
}

// reload replaces the content of the side and its replica.
func (s *side) reload(entries []store.Entry) {
	s.setTo(entries)
	s.attach()
}

// attach gives the replica all content of the side.
func (s *side) attach() {
	if r := s.replica; r != nil {
		r.entries, r.has, r.linked = s.entries, r.writes, true
	}
}

func find(entries []store.Entry, key string) (int, bool) {
	return slices.BinarySearchFunc(entries, key, func(e store.Entry, key string) int { return strings.Compare(e.Key, key) })
}

func list(entries []store.Entry, prefix string) []store.Entry {
	first, _ := find(entries, prefix)
	last := first
	for last < len(entries) && strings.HasPrefix(entries[last].Key, prefix) {
		last++
	}
	return entries[first:last]
}

// torn returns content in which each register is as in entries, or as it was at any moment since began.
func (s *side) torn(entries []store.Entry, began int64) []store.Entry {
	moments := [][]store.Entry{entries}
	keys := map[string]bool{}
	for _, v := range slices.Backward(s.past) {
		moments = append(moments, v.entries)
		if v.since <= began {
			break
		}
	}
	for _, m := range moments {
		for _, e := range m {
			keys[e.Key] = true
		}
	}
	var all []store.Entry
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := moments[s.w.tears.IntN(len(moments))]
		if i, ok := find(at, key); ok {
			all = append(all, at[i])
		}
	}
	return all
}

// before returns the side's content some time ago, as far as it is remembered, and its place in the
// past.
func (s *side) before(ago int64) ([]store.Entry, int) {
	for i := len(s.past) - 1; i >= 0; i-- {
		if s.past[i].since <= s.w.now-ago {
			return s.past[i].entries, i
		}
	}
	if len(s.past) >= maxPast {
		return s.past[0].entries, 0
	}
	return nil, -1
}

// goBack sets the side back to a place in its past. Later content is gone for good: a later goBack
// cannot restore it.
func (s *side) goBack(i int) {
	var entries []store.Entry
	if i >= 0 {
		entries = s.past[i].entries
	}
	s.past = s.past[:i+1]
	s.reload(entries)
}

func (s *side) get(entries []store.Entry, key string) (store.Entry, error) {
	i, ok := find(entries, key)
	if !ok || s.w.store.expired(key) {
		return store.Entry{}, store.ErrNotFound
	}
	return entries[i], nil
}

// swap is the compare-and-swap of this side. It does not confirm the write.
func (s *side) swap(key string, old store.Revision, value []byte) (store.Entry, error) {
	i, ok := find(s.entries, key)
	var have store.Revision
	if ok && !s.w.store.expired(key) {
		have = s.entries[i].Revision
	}
	if have != old {
		return store.Entry{}, store.ErrConflict
	}
	delete(s.w.store.expires, key)
	s.w.store.revisions++
	e := store.Entry{Key: key, Value: value, Revision: store.Revision(s.w.store.revisions)}
	entries := slices.Clone(s.entries)
	if ok {
		entries[i] = e
	} else {
		entries = slices.Insert(entries, i, e)
	}
	s.setTo(entries)
	if s.replica != nil {
		s.replica.writes++
	}
	e.Life = s.life
	return e, nil
}

// confirmPatience is how long a primary waits for its replica.
const confirmPatience = time.Second

var errUnconfirmed = fmt.Errorf("%w: the write was applied and is not confirmed", store.ErrUnavailable)

// confirm calls done, once, with whether the latest write will survive the side: when its replica has
// it, or after waiting in vain.
func (s *side) confirm(done func(error)) {
	w, r := s.w, s.replica
	if r == nil {
		done(nil)
		return
	}
	entries, number := s.entries, r.writes
	answered := false
	answer := func(err error) {
		if !answered {
			answered = true
			done(err)
		}
	}
	w.after(w.travel(), func() {
		if !r.linked { // it lacks this write until it is attached again
			return
		}
		if r.has < number {
			r.has, r.entries = number, entries
		}
		w.after(w.travel(), func() { answer(nil) })
	})
	if w.plan.async {
		answer(nil)
		return
	}
	w.after(int64(confirmPatience), func() { answer(errUnconfirmed) })
}
