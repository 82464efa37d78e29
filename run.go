package firn

import (
	"encoding/json"
	"iter"
	"slices"
)

// A Run is a set of ids of one worker, in increasing order, as [Generator.Take] returns
// them. It is a small value that computes its ids when they are read; copies are
// independent. The zero Run is empty.
type Run struct {
	first, count uint64
	composer
}

// Len returns how many ids the run holds.
func (r Run) Len() int { return int(r.count) }

// At returns the id at index i, from 0 to Len()-1. It panics for any other index, as a
// slice does.
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
	n := len(dst)
	dst = slices.Grow(dst, r.Len())[:n+r.Len()]
	r.write(dst[n:])
	return dst
}

// MarshalJSON implements [json.Marshaler]: an array of the ids, each as [ID.MarshalJSON] writes it.
func (r Run) MarshalJSON() ([]byte, error) { return json.Marshal(r.AppendTo([]ID{})) }

// A Stretch is the part of a run within one tick: Count ids from First on, Stride apart.
// Stride is 1 if the sequence is the lowest field.
type Stretch struct {
	First  ID
	Count  int
	Stride ID
}

// Stretches iterates over the run in order, one stretch per tick. Use it to store or send
// many ids in little space. The ids are those of [Run.All].
func (r Run) Stretches() iter.Seq[Stretch] {
	return func(yield func(Stretch) bool) {
		for done := uint64(0); done < r.count; {
			s := r.stretch(done)
			if !yield(s) {
				return
			}
			done += uint64(s.Count)
		}
	}
}

// stretch returns the ids from index i on that have the tick of the id at i.
func (r *Run) stretch(i uint64) Stretch {
	position := r.first + i
	n := min(r.count-i, r.seqMask()-position&r.seqMask()+1)
	return Stretch{First: r.id(position), Count: int(n), Stride: ID(1) << (r.seqShift & 63)}
}

// write writes the ids to dst, which must be long enough. It composes one id per tick and
// adds to get the others.
func (r *Run) write(dst []ID) {
	for done := uint64(0); done < r.count; {
		s := r.stretch(done)
		id := s.First
		for i := range dst[done : done+uint64(s.Count)] {
			dst[done+uint64(i)] = id
			id += s.Stride
		}
		done += uint64(s.Count)
	}
}
