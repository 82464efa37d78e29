package firn

import "iter"

// A Run is ids taken at once: consecutive positions of one worker, in
// increasing order. It is a small value; copies are independent readers of the
// same ids. The zero Run is empty.
type Run struct {
	first, count uint64
	composer
}

// Len returns how many ids the run holds.
func (r Run) Len() int { return int(r.count) }

// At returns the id at index i, from 0 to Len()-1. It panics for any other, as
// a slice does.
func (r Run) At(i int) ID {
	if i < 0 || uint64(i) >= r.count {
		panic("firn: index out of range of a Run")
	}
	return r.id(r.first + uint64(i))
}

// All iterates over the ids in order.
func (r Run) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for i := range r.count {
			if !yield(r.id(r.first + i)) {
				return
			}
		}
	}
}

// AppendTo appends the ids to dst in order.
func (r Run) AppendTo(dst []ID) []ID {
	for i := range r.count {
		dst = append(dst, r.id(r.first+i))
	}
	return dst
}

// write writes the ids to the front of dst, which is long enough. Within a
// tick ids are an arithmetic progression, so it composes once a tick.
func (r *Run) write(dst []ID) {
	step := ID(1) << (r.seqShift & 63)
	for done := uint64(0); done < r.count; {
		position := r.first + done
		n := min(r.count-done, r.seqMask-position&r.seqMask+1)
		id := r.id(position)
		for i := range dst[done : done+n] {
			dst[done+uint64(i)] = id
			id += step
		}
		done += n
	}
}
