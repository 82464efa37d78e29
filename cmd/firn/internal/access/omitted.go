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
	// shareShown bounds the addresses that are named: one needs at least a hundredth of the
	// omitted records, which is more than its count may be too low by.
	shareShown = 100
)

// An omitted counts the records for which an interval has no room.
type omitted struct {
	records int
	// counts are by address, by the algorithm of Misra and Gries: of n records no count is too
	// low by more than n/(maxCounted+1), however many addresses there are.
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

// most returns the addresses with the most records, in decreasing order. It is empty if the
// records are spread over many addresses.
func (o *omitted) most() []string {
	from := slices.SortedFunc(maps.Keys(o.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(o.counts[b], o.counts[a]), cmp.Compare(a, b))
	})
	from = slices.DeleteFunc(from, func(a string) bool { return o.counts[a]*shareShown < o.records })
	return from[:min(len(from), maxShown)]
}
