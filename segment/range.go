package segment

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// A Range is Count ids, from First on, Stride apart. The zero Range is empty.
type Range struct {
	First  firn.ID
	Count  int64
	Stride int64

	// The write that granted this range, and the write that it replaced. Both are 0 for
	// a range of another source.
	revision, over store.Revision
	end            uint64        // where that write left the counter
	use            *register.Use // in its record
}

// Len returns how many ids the range holds, and the greatest int if there are more, on 32 bits.
func (r Range) Len() int { return int(min(max(r.Count, 0), math.MaxInt)) }

// stride returns the distance between ids; a Stride that was left out is 1.
func (r Range) stride() firn.ID { return firn.ID(cmp.Or(r.Stride, 1)) }

// Last returns the greatest id of a range that is not empty.
func (r Range) Last() firn.ID { return r.First + firn.ID(r.Count-1)*r.stride() }

// All iterates over the ids in order.
func (r Range) All() iter.Seq[firn.ID] {
	return func(yield func(firn.ID) bool) {
		id := r.First
		for range r.Count {
			if !yield(id) {
				return
			}
			id += r.stride()
		}
	}
}

// AppendTo appends the ids to dst in order. It panics if no slice can hold them.
func (r Range) AppendTo(dst []firn.ID) []firn.ID {
	begin := len(dst)
	dst = slices.Grow(dst, r.Len())[:begin+r.Len()]
	id := r.First
	for i := begin; i < len(dst); i++ { // All would be slower
		dst[i] = id
		id += r.stride()
	}
	return dst
}

// String returns the range as "1 to 1000", with the stride if it is not 1.
func (r Range) String() string {
	switch {
	case r.Count < 1:
		return "no ids"
	case r.stride() == 1:
		return fmt.Sprintf("%d to %d", r.First, r.Last())
	default:
		return fmt.Sprintf("%d to %d by %d", r.First, r.Last(), r.Stride)
	}
}

// check returns an [ErrSource] for an invalid range.
func (r Range) check() error {
	switch {
	case r.First < 0:
		return fmt.Errorf("%w: a range from %d, which is not a valid id", ErrSource, r.First)
	case r.Stride < 1 || r.Stride > maxStride:
		return fmt.Errorf("%w: a range of stride %d, 1 to %d are allowed", ErrSource, r.Stride, maxStride)
	case r.Count < 1 || r.Count-1 > int64(firn.MaxID-r.First)/r.Stride:
		return fmt.Errorf("%w: a range of %d ids from %d, which is empty or ends above %d", ErrSource, r.Count, r.First, firn.MaxID)
	}
	return nil
}

// follows reports whether a range begins where another ends, and its write replaced the
// other's. The counter moves back only over ids that were granted here by such writes in a row:
// with a write in between, another process has ids from there on, or a raise has promised that
// no smaller ids are issued.
func (r Range) follows(before Range) bool {
	return r.over == before.revision && r.Stride == before.Stride && int64(r.First-before.Last()) == r.Stride
}

// after returns a range joined with the one that it follows.
func (r Range) after(before Range) Range {
	r.First, r.Count, r.over = before.First, before.Count+r.Count, before.over
	return r
}

// ends reports whether a range reaches to the end of what its write granted. A part may not, as a caller's
// own [Source] may hand out: another one may hold the ids between it and the counter.
func (r Range) ends() bool {
	return r.revision != 0 && r.check() == nil && uint64(r.Last())+uint64(r.Stride) == r.end
}

// upTo returns the part of a range that is not above last.
func (r Range) upTo(last firn.ID) Range {
	if r.First > last {
		return Range{}
	}
	if further := int64(last-r.First) / r.Stride; further < r.Count-1 { // one more would not fit a whole 2^63
		r.Count, r.revision = further+1, 0
	}
	return r
}
