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
// A Local must not be copied: a copy takes a block of its own, at its first call. A Local needs no end. Where each
// call reads the clock (no Lag, and not ClockVirtual) its Next is that of the generator.
type Local struct {
	_       uncopied
	_       [64]byte // goroutines write their Locals all the time, so these must not share cache lines
	id      ID       // the next one
	stride  ID
	left    uint64 // how many ids of one tick are left, from id on
	cell    *cell
	recalls uint64 // of the cell, before the block was taken
	self    *Local // whose block it is: a copy has none

	block     Run    // what follows these ids
	length    uint64 // of the block at first
	used      uint64 // ids issued since the last recall
	generator *Generator
	_         [64]byte
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
	if l.left > 0 && l.self == l && l.recalls == l.cell.recalls.Load() {
		id := l.id
		l.id += l.stride
		l.left--
		return id, nil
	}
	return l.nextSlowly(ctx)
}

func (l *Local) nextSlowly(ctx context.Context) (ID, error) {
	if l.generator == nil {
		return 0, errNoGenerator
	}
	if !l.generator.unread {
		return l.generator.Next(ctx)
	}
	if l.self != l || l.block.count == 0 || l.recalls != l.cell.recalls.Load() {
		if err := l.refill(ctx); err != nil {
			return 0, err
		}
	}
	s := l.block.stretch(0)
	l.block.first += uint64(s.Count)
	l.block.count -= uint64(s.Count)
	l.id, l.stride, l.left = s.First+s.Stride, s.Stride, uint64(s.Count)-1
	return s.First, nil
}

// refill takes another block.
func (l *Local) refill(ctx context.Context) error {
	g := l.generator
	c := g.cell.Load()
	recalls := c.recalls.Load() // before the block is taken, so that no recall of it is missed
	l.used += l.length
	if l.self != l || c != l.cell || recalls != l.recalls {
		l.used = 0
	}
	l.left, l.length, l.block = 0, 0, Run{}
	n := min(max(l.used/blockPart, 1), maxBlock)
	p, got, ok := c.take(n)
	if !ok {
		var d decision
		var err error
		if c, d, err = g.ask(ctx, n); err != nil {
			return err
		}
		p, got, recalls = d.first, d.count, d.recalls
	}
	l.cell, l.recalls, l.length, l.self = c, recalls, got, l
	l.block = Run{first: p, count: got, composer: c.composer}
	return nil
}
