package firn

import (
	"context"
	"errors"
)

// A Local hands out ids of a generator to one goroutine, several times as fast as
// [Generator.Next]: it takes them in blocks. Its ids increase. Compared with ids that other callers
// have received meanwhile they may be smaller. Goroutines on different processors do not slow each
// other down if each has its own Local.
//
// A block is at most 256 ids, and at most an eighth of those that the Local has issued since the
// last recall of its block, at least one. Blocks are recalled when their clock reading is [Config.Lag]
// old, and by Stop, Halt and a change of workers. The rest of a block is then never issued. So a
// Local wastes at most an eighth of its ids, and they lag as those of Next do.
//
// Do not copy a Local; a copy repeats no id, and takes a block of its own at its first call. It need not be closed. Where each
// call reads the clock (no Lag, and not ClockVirtual) its Next is that of the generator.
type Local struct {
	_         uncopied
	generator *Generator
	self      *Local // whose block it is: a copy has none
	at        *place // not here, or an earlier copy that is put back would have an earlier place
}

// A place is in a block.
type place struct {
	_       [64]byte // goroutines write their places all the time, so these must not share cache lines
	id      ID       // the next one
	stride  ID
	left    uint64 // how many ids of one tick are left, from id on
	cell    *cell
	recalls uint64 // of the cell, before the block was taken

	block  Run    // what follows these ids
	length uint64 // of the block at first
	used   uint64 // ids issued since the last recall
	_      [64]byte
}

// uncopied has go vet report copies of a type.
type uncopied struct{}

func (*uncopied) Lock()   {}
func (*uncopied) Unlock() {}

var errNoGenerator = errors.New("firn: this Local has no generator: use the one that Generator.Local returns")

const (
	maxBlock = 256
	// blockPart is the part of the ids issued that a block may have: what a recall may waste.
	blockPart = 8
)

// Local returns a handle for one goroutine.
func (g *Generator) Local() *Local { return &Local{generator: g} }

// Next returns the next id. It waits and fails as [Generator.Next] does. Only one goroutine at a
// time may call it.
func (l *Local) Next(ctx context.Context) (ID, error) {
	if l.self == l {
		if p := l.at; p.left > 0 && p.recalls == p.cell.recalls.Load() {
			id := p.id
			p.id += p.stride
			p.left--
			return id, nil
		}
	}
	return l.nextSlowly(ctx)
}

func (l *Local) nextSlowly(ctx context.Context) (ID, error) {
	switch {
	case l.generator == nil:
		return 0, errNoGenerator
	case !l.generator.unread:
		return l.generator.Next(ctx)
	case l.self != l:
		l.self, l.at = l, new(place)
	}
	p := l.at
	if p.block.count == 0 || p.recalls != p.cell.recalls.Load() {
		if err := p.refill(ctx, l.generator); err != nil {
			return 0, err
		}
	}
	s := p.block.stretch(0)
	p.block.first += uint64(s.Count)
	p.block.count -= uint64(s.Count)
	p.id, p.stride, p.left = s.First+s.Stride, s.Stride, uint64(s.Count)-1
	return s.First, nil
}

// refill takes another block.
func (p *place) refill(ctx context.Context, g *Generator) error {
	c := g.cell.Load()
	recalls := c.recalls.Load() // before the block is taken, so that no recall of it is missed
	p.used += p.length
	if c != p.cell || recalls != p.recalls {
		p.used = 0
	}
	p.left, p.length, p.block = 0, 0, Run{}
	n := min(max(p.used/blockPart, 1), maxBlock)
	first, got, ok := c.take(n)
	if !ok {
		var d decision
		var err error
		if c, d, err = g.ask(ctx, n); err != nil {
			return err
		}
		first, got, recalls = d.first, d.count, d.recalls
	}
	p.cell, p.recalls, p.length = c, recalls, got
	p.block = Run{first: first, count: got, composer: c.composer}
	return nil
}
