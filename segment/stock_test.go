package segment

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// pile is what a stock should do, without atomics, and with every id in a list.
type pile struct {
	cell            Range // not issued yet
	chain           []Range
	floor           firn.ID
	issued, dropped int64
}

// cut takes the first ids of the cell.
func (p *pile) cut(count int64) []firn.ID {
	part := p.cell
	part.Count = min(count, p.cell.Count)
	p.cell.First += firn.ID(part.Count * p.cell.Stride)
	p.cell.Count -= part.Count
	p.issued += part.Count
	return part.AppendTo(nil)
}

// run joins range i with those that continue it.
func (p *pile) run(i int) (Range, int) {
	r, n := p.chain[i], i+1
	for n < len(p.chain) && p.chain[n].over == p.chain[n-1].revision && p.chain[n].Stride == r.Stride && p.chain[n].First == r.Last()+firn.ID(r.Stride) {
		r.Count += p.chain[n].Count
		n++
	}
	return r, n
}

func (p *pile) take(count int64, row bool) []firn.ID {
	if p.cell.Count > 0 && (!row || p.cell.Stride == 1 && p.cell.Count >= count) {
		return p.cut(count)
	}
	for i := 0; i < len(p.chain); {
		r, next := p.chain[i], i+1
		if row {
			r, next = p.run(i)
		}
		if row && (r.Stride != 1 || r.Count < count) {
			i = next
			continue
		}
		if i == 0 && p.cell.Count > 0 && p.cell.Stride == r.Stride && p.cell.revision == r.over && r.First == p.cell.Last()+firn.ID(r.Stride) {
			r.First, r.Count = p.cell.First, r.Count+p.cell.Count
		}
		r.revision = p.chain[next-1].revision
		p.cell, p.chain, p.floor = r, p.chain[next:], p.chain[next-1].Last()
		return p.cut(count)
	}
	return nil
}

// takeAll takes count ids from the cell and the chain, or none.
func (p *pile) takeAll(count int64) (ids []firn.ID) {
	if p.left() < count {
		return nil
	}
	for {
		ids = append(ids, p.cut(count-int64(len(ids)))...)
		if int64(len(ids)) == count {
			return ids
		}
		p.cell, p.chain, p.floor = p.chain[0], p.chain[1:], p.chain[0].Last()
	}
}

func (p *pile) accept(r Range, asked firn.ID) (kept, fine bool) {
	overlaps := slices.ContainsFunc(p.chain, func(h Range) bool { return h.First <= r.Last() && r.First <= h.Last() })
	if r.First <= p.floor || overlaps {
		p.dropped++
		return false, r.First <= p.floor && p.floor > asked
	}
	p.chain = append(p.chain, r)
	slices.SortFunc(p.chain, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	return true, true
}

func (p *pile) ruleOut(last firn.ID) {
	if p.cell.First <= last {
		p.cell = Range{}
	}
	p.floor = max(p.floor, last)
	p.chain = slices.DeleteFunc(p.chain, func(r Range) bool { return r.First <= last })
}

func (p *pile) left() (n int64) {
	for _, r := range append([]Range{p.cell}, p.chain...) {
		n += r.Count
	}
	return n
}

// above is the greatest id that is held, issued or ruled out.
func (p *pile) above() firn.ID {
	if len(p.chain) > 0 {
		return p.chain[len(p.chain)-1].Last()
	}
	return p.floor
}

func TestAStockGoesAlongWithAListOfItsIDs(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
		all := &Segments{cfg: Config{Ahead: 0.5, Max: firn.MaxID}, empty: &cell{}}
		all.empty.word.Store(sealed)
		s := &stock{all: all, name: "orders", floor: -1}
		s.cell.Store(all.empty)
		p := &pile{floor: -1}
		top, revision := firn.ID(random.IntN(3)), store.Revision(0)
		for step := range 60 {
			did := ""
			switch random.IntN(9) {
			case 8:
				count := 1 + random.Int64N(20)
				want := p.takeAll(count)
				var got []firn.ID
				for _, r := range s.takeAll(count) {
					got = r.AppendTo(got)
				}
				if did = fmt.Sprintf("took all of %d: %v", count, want); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, %s: got %v", seed, step, did, got)
				}
			case 0, 1, 2:
				count, row := 1+random.Int64N(12), random.IntN(2) == 0
				want := p.take(count, row)
				got := s.take(uint64(count), row).AppendTo(nil)
				if did = fmt.Sprintf("took %d, row %v: %v", count, row, want); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, %s: got %v", seed, step, did, got)
				}
			case 3:
				if random.IntN(4) == 0 {
					last := max(p.floor, 0) + firn.ID(random.IntN(6))
					p.ruleOut(last)
					s.ruleOut(last)
					did = fmt.Sprint("ruled out up to ", last)
				}
			default:
				r := Range{First: top + firn.ID(random.IntN(3)/2), Count: 1 + random.Int64N(9), Stride: 1 + random.Int64N(5)/4, over: revision}
				if random.IntN(10) == 0 { // far below, or in what is held
					r.First = max(0, top-firn.ID(random.IntN(20)))
				}
				if random.IntN(5) == 0 { // others wrote in between
					r.over++
				}
				r.revision = r.over + 1
				revision = r.revision
				asked := p.floor - firn.ID(random.IntN(2))
				kept, fine := p.accept(r, asked)
				err := s.accept(r, asked)
				if kept {
					top = max(top, r.Last()+firn.ID(r.Stride))
				}
				why := "are issued or in use"
				if r.First > p.floor {
					why = "it overlaps "
				}
				if did = fmt.Sprintf("accepted %v, asked above %d: %v, %v", r, asked, kept, fine); (err == nil) != fine || err != nil && !strings.Contains(err.Error(), why) {
					t.Fatalf("seed %d, step %d, %s: %v", seed, step, did, err)
				}
			}
			if s.left() != p.left() || s.issued() != p.issued || s.dropped != p.dropped || len(s.chain) != len(p.chain) || s.floor != p.floor || s.above() != p.above() {
				t.Fatalf("seed %d, step %d, %s: %d left, %d issued, %d dropped, %v ahead, floor %d\nwant %+v", seed, step, did, s.left(), s.issued(), s.dropped, s.chain, s.floor, p)
			}
		}
		whole := append([]Range{p.cell}, p.chain...)
		var want []firn.ID
		for i := range whole {
			if i > 0 && (whole[i-1].Count == 0 || whole[i].over != whole[i-1].revision || whole[i].Stride != whole[i-1].Stride || whole[i].First != whole[i-1].Last()+firn.ID(whole[i].Stride)) {
				want = nil
			}
			want = whole[i].AppendTo(want)
		}
		if got := s.drain().AppendTo(nil); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v stay at the end, want %v", seed, got, want)
		}
		if err := s.accept(Range{First: top + 100, Count: 1}, 0); !errors.Is(err, firn.ErrClosed) {
			t.Fatalf("a range after the end: %v", err)
		}
	}
}
