package idset

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/firn-id/firn"
)

// chunkIDs is how many ids a sorter sorts in memory: 12 MiB, for the chunk that is filled, and twice for each that is sorted.
const chunkIDs = 1 << 20

// sorting is how many chunks are sorted at once.
const sorting = 2

// A Sorter finds the ids that occur more than once among any number of ids, in bounded memory: it sorts chunks of a
// million ids, writes them to a temporary file in about three bytes an id, and merges them. Make it with [NewSorter];
// end it with [Sorter.Close]. One goroutine may use it.
type Sorter struct {
	size    int // of a chunk
	current *chunk
	next    int64 // the position of the next id

	free   chan *chunk
	sort   chan *chunk
	done   sync.WaitGroup
	sorted *spill
}

// A chunk is a part of the ids with their positions.
type chunk struct {
	base      int64 // the position of the first id
	ids       []uint64
	at        []uint32 // positions, from base
	ascending bool
	differ    uint64 // the bits in which ids differ
}

// NewSorter returns a sorter whose temporary file is in dir, "" for the system's folder. It makes the file when there are
// more ids than fit in one chunk.
func NewSorter(dir string) *Sorter { return newSorter(dir, chunkIDs) }

func newSorter(dir string, size int) *Sorter {
	s := &Sorter{size: size, current: &chunk{ascending: true}, free: make(chan *chunk, sorting), sort: make(chan *chunk), sorted: &spill{dir: dir, every: max(size/64, 1)}}
	for range sorting {
		s.free <- new(chunk)
		s.done.Go(func() {
			var scratch chunk
			for c := range s.sort {
				c.order(&scratch)
				s.sorted.write(c)
				s.free <- c
			}
		})
	}
	return s
}

// Add adds ids with consecutive positions. An error is of the temporary file.
func (s *Sorter) Add(ids []firn.ID) error {
	for len(ids) > 0 {
		if c := s.current; len(c.ids) == s.size || s.next-c.base > 1<<32-chunkIDs {
			if len(c.ids) > 0 {
				s.sort <- c
				s.current = <-s.free
			}
			s.current.reset(s.next)
			if err := s.sorted.failed(); err != nil {
				return err
			}
		}
		c := s.current
		some := ids[:min(len(ids), s.size-len(c.ids))]
		c.add(some, uint32(s.next-c.base))
		s.next += int64(len(some))
		ids = ids[len(some):]
	}
	return nil
}

// Skip leaves n positions without an id.
func (s *Sorter) Skip(n int64) { s.next += n }

// Repeats calls a function for each id that occurs again, in the order of the ids, with the position where it occurred
// before and the one where it occurs again. Given several functions, it divides the ids among them, the least to the first,
// and calls them at the same time. No ids may be added afterwards. An error is of the temporary file, or the cause of ctx's
// end.
func (s *Sorter) Repeats(ctx context.Context, do ...func(id firn.ID, before, again int64)) error {
	close(s.sort)
	s.done.Wait()
	s.sort, s.free = nil, nil
	s.current.order(new(chunk))
	return s.sorted.merge(ctx, s.current, do)
}

// Close removes the temporary file.
func (s *Sorter) Close() error {
	if s.sort != nil {
		close(s.sort)
		s.done.Wait()
		s.sort = nil
	}
	return s.sorted.close()
}

func (c *chunk) reset(base int64) {
	*c = chunk{base: base, ids: c.ids[:0], at: c.at[:0], ascending: true}
}

func (c *chunk) add(ids []firn.ID, at uint32) {
	first, last := uint64(ids[0]), uint64(ids[0])
	if n := len(c.ids); n > 0 {
		first, last = c.ids[0], c.ids[n-1]
	}
	ascending, differ := c.ascending, c.differ
	for _, id := range ids {
		n := uint64(id)
		ascending = ascending && n >= last
		differ |= n ^ first
		last = n
		c.ids = append(c.ids, n)
		c.at = append(c.at, at)
		at++
	}
	c.ascending, c.differ = ascending, differ
}

// order sorts the chunk by ids, equal ones by positions. It is a radix sort that leaves out the digits in which no ids
// differ: ids of one system have their highest bits in common.
func (c *chunk) order(scratch *chunk) {
	if c.ascending {
		return
	}
	const bits = 11
	if min(len(scratch.ids), len(scratch.at)) < len(c.ids) { // chunks may be cut short, and their slices have different capacities
		scratch.ids, scratch.at = make([]uint64, len(c.ids)), make([]uint32, len(c.ids))
	}
	ids, at := c.ids, c.at
	toIDs, toAt := scratch.ids[:len(ids)], scratch.at[:len(ids)]
	for shift := 0; shift < 64; shift += bits {
		if c.differ>>shift&(1<<bits-1) == 0 {
			continue
		}
		var place [1 << bits]uint32
		for _, id := range ids {
			place[id>>shift&(1<<bits-1)]++
		}
		sum := uint32(0)
		for i, n := range place {
			place[i] = sum
			sum += n
		}
		for i, id := range ids {
			digit := id >> shift & (1<<bits - 1)
			to := place[digit]
			place[digit]++
			toIDs[to], toAt[to] = id, at[i]
		}
		ids, toIDs = toIDs, ids
		at, toAt = toAt, at
	}
	scratch.ids, scratch.at = toIDs[:cap(toIDs)], toAt[:cap(toAt)]
	c.ids, c.at = ids, at
}

// A spill is the temporary file of sorted chunks.
type spill struct {
	dir   string
	every int // ids between two marks

	mu   sync.Mutex // guards all below
	file *os.File
	runs []written
	end  int64
	err  error
}

// A written run is a sorted chunk in the file.
type written struct {
	marks   []mark // the first is the begin
	through int64
	base    int64 // of the positions
	ids     int
}

// A mark is a place in a run from which it can be read.
type mark struct {
	offset int64
	done   int // ids before it
	id     uint64
	at     int64 // that of the id before it
}

func (s *spill) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// write appends a sorted chunk: the differences of the ids, and those of the positions, which are mostly one.
func (s *spill) write(c *chunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if err := s.append(c); err != nil {
		s.err = fmt.Errorf("temporary file for sorted ids: %w", err)
	}
}

// append is called with mu held.
func (s *spill) append(c *chunk) (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp(s.dir, "firn-verify-*"); err != nil {
			return err
		}
	}
	out := bufio.NewWriterSize(s.file, 1<<20)
	r := written{base: c.base, ids: len(c.ids)}
	id, at := uint64(0), int64(-1)
	buf := make([]byte, 0, 2*binary.MaxVarintLen64)
	for i, n := range c.ids {
		if i%s.every == 0 {
			r.marks = append(r.marks, mark{s.end, i, id, at})
		}
		buf = binary.AppendUvarint(buf[:0], n-id)
		buf = binary.AppendVarint(buf, int64(c.at[i])-at-1)
		id, at = n, int64(c.at[i])
		if _, err := out.Write(buf); err != nil {
			return err
		}
		s.end += int64(len(buf))
	}
	r.through = s.end
	s.runs = append(s.runs, r)
	return out.Flush()
}

func (s *spill) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

// mergeMemory is what the buffers of all merges take together.
const mergeMemory = 64 << 20

// blockIDs is how many ids of a run are decoded at once.
const blockIDs = 256

// A span is the ids from low on, below high.
type span struct{ low, high uint64 }

// merge reads all runs and the chunk, each part of the ids in their order.
func (s *spill) merge(ctx context.Context, rest *chunk, do []func(id firn.ID, before, again int64)) error {
	if s.err != nil {
		return s.err
	}
	errs := make([]error, len(do))
	var parts sync.WaitGroup
	for i, part := range s.spans(rest, len(do)) {
		parts.Go(func() { errs[i] = s.mergePart(ctx, rest, part, len(do), do[i]) })
	}
	parts.Wait()
	return errors.Join(errs...)
}

// spans divides the ids into n spans with about as many ids each.
func (s *spill) spans(rest *chunk, n int) []span {
	var some []uint64
	for _, r := range s.runs {
		for _, m := range r.marks {
			some = append(some, m.id)
		}
	}
	for i := 0; i < len(rest.ids); i += s.every {
		some = append(some, rest.ids[i])
	}
	slices.Sort(some)
	spans := make([]span, n)
	for i := range spans {
		spans[i].high = ^uint64(0) // no id is as high
		if i > 0 && len(some) > 0 {
			spans[i].low = some[len(some)*i/n]
			spans[i-1].high = spans[i].low
		}
	}
	return spans
}

// mergePart reads a part of all runs and of the chunk in the order of the ids.
func (s *spill) mergePart(ctx context.Context, rest *chunk, part span, parts int, do func(id firn.ID, before, again int64)) error {
	var runs []*run
	buffer := min(max(mergeMemory/parts/(len(s.runs)+1), 4<<10), 1<<20)
	for i := range s.runs {
		runs = append(runs, s.runs[i].read(s.file, part, buffer))
	}
	runs = append(runs, rest.part(part))
	live := runs[:0]
	for _, r := range runs {
		more, err := r.more()
		if err != nil {
			return fmt.Errorf("temporary file for sorted ids: %w", err)
		}
		if more {
			live = append(live, r)
		}
	}
	runs = live
	for i := len(runs)/2 - 1; i >= 0; i-- {
		sink(runs, i)
	}
	var seen bool
	var last uint64
	var before int64
	for len(runs) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := runs[0]
		limit := nextHead(runs)
		// All ids of this run up to the next run's head come before that.
		ids, places := r.ids, r.places
		n := 0
		for ; n < len(ids) && (n == 0 || ids[n] < limit); n++ {
			if seen && ids[n] == last {
				do(firn.ID(last), before, places[n])
			}
			seen, last, before = true, ids[n], places[n]
		}
		r.ids, r.places = ids[n:], places[n:]
		more, err := r.more()
		if err != nil {
			return fmt.Errorf("temporary file for sorted ids: %w", err)
		}
		if !more {
			runs[0] = runs[len(runs)-1]
			runs = runs[:len(runs)-1]
		}
		sink(runs, 0)
	}
	return nil
}

// A run is the part of a sorted chunk that is being merged: of one in the file, or in memory.
type run struct {
	span
	base int64 // of the positions
	left int   // ids that are not yet in block

	in     *bufio.Reader
	id     uint64 // the last one that was read
	at     int64
	ids    []uint64 // decoded, with their places
	places []int64

	idBlock    []uint64
	placeBlock []int64
}

// read returns a part of a run, which begins at the last mark before it.
func (w *written) read(file io.ReaderAt, part span, buffer int) *run {
	i, _ := slices.BinarySearchFunc(w.marks, part.low, func(m mark, low uint64) int { return cmp.Compare(m.id, low) })
	m := w.marks[max(i-1, 0)]
	return &run{
		span: part, base: w.base, left: w.ids - m.done, id: m.id, at: m.at,
		in:      bufio.NewReaderSize(io.NewSectionReader(file, m.offset, w.through-m.offset), buffer),
		idBlock: make([]uint64, blockIDs), placeBlock: make([]int64, blockIDs),
	}
}

// part returns a part of a sorted chunk.
func (c *chunk) part(of span) *run {
	from, _ := slices.BinarySearch(c.ids, of.low)
	through, _ := slices.BinarySearch(c.ids, of.high)
	r := &run{ids: c.ids[from:through], places: make([]int64, through-from)}
	for i, at := range c.at[from:through] {
		r.places[i] = c.base + int64(at)
	}
	return r
}

// more fills an empty block, and reports whether the run has an id.
func (r *run) more() (bool, error) {
	for len(r.ids) == 0 && r.left > 0 {
		n := min(r.left, blockIDs)
		r.left -= n
		ids, places := r.idBlock[:n], r.placeBlock[:n]
		for i := range n {
			step, err := binary.ReadUvarint(r.in)
			if err != nil {
				return false, err
			}
			move, err := binary.ReadVarint(r.in)
			if err != nil {
				return false, err
			}
			r.id += step
			r.at += move + 1
			ids[i], places[i] = r.id, r.base+r.at
		}
		from, through := 0, n
		if ids[0] < r.low {
			from, _ = slices.BinarySearch(ids, r.low)
		}
		if ids[n-1] >= r.high {
			through, _ = slices.BinarySearch(ids, r.high)
			r.left = 0
		}
		r.ids, r.places = ids[from:through], places[from:through]
	}
	return len(r.ids) > 0, nil
}

// precedes orders runs by their first id, equal ones by its position.
func (r *run) precedes(other *run) bool {
	if r.ids[0] != other.ids[0] {
		return r.ids[0] < other.ids[0]
	}
	return r.places[0] < other.places[0]
}

// nextHead returns the least first id of the runs but the first.
func nextHead(runs []*run) uint64 {
	head := ^uint64(0)
	for _, r := range runs[min(1, len(runs)):min(3, len(runs))] {
		head = min(head, r.ids[0])
	}
	return head
}

// sink restores the heap below i.
func sink(runs []*run, i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(runs); child++ {
			if runs[child].precedes(runs[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		runs[i], runs[least] = runs[least], runs[i]
		i = least
	}
}
