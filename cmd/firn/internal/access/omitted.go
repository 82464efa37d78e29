package access

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// maxCounted bounds the addresses that are counted for omitted records.
	maxCounted = 200
	// maxShown is how many of them are named.
	maxShown = 5
	// shareShown is what part of what is omitted an address must have to be named: more
	// than the counts may be too low by.
	shareShown = 100
)

// An omitted is the records that have no place in an interval.
type omitted struct {
	records int
	// counts are by address, as Misra and Gries count: of n records no count is too low by
	// more than n/(maxCounted+1), however many addresses there are.
	counts map[string]int
}

func newOmitted() omitted { return omitted{counts: map[string]int{}} }

func (o *omitted) add(from string) {
	o.records++
	if _, known := o.counts[from]; known || len(o.counts) < maxCounted {
		o.counts[from]++
		return
	}
	maps.DeleteFunc(o.counts, func(from string, n int) bool {
		o.counts[from] = n - 1
		return n == 1
	})
}

// most returns the addresses that most of the records are of, the first of the most.
// Where they come from everywhere, it is empty.
func (o *omitted) most() []string {
	from := slices.SortedFunc(maps.Keys(o.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(o.counts[b], o.counts[a]), cmp.Compare(a, b))
	})
	from = slices.DeleteFunc(from, func(a string) bool { return o.counts[a]*shareShown < o.records })
	return from[:min(len(from), maxShown)]
}
