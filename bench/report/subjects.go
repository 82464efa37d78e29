package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/sony/sonyflake/v2"

	"github.com/firn-id/firn"
)

// A group is what a subject is in the tables.
type group int

const (
	floor group = iota // what any generator costs at least
	ours
	peers
	texts // an id as a string
)

// A subject is a call to be measured, by one goroutine and by two.
type subject struct {
	name  string
	group group
	ids   int                                   // of one call
	loop  func(goroutine int) func(n int) error // returns what makes n calls
}

// results keep the compiler from leaving out calls.
var results [2]struct {
	id   firn.ID
	text string
	big  [16]byte
	_    [120]byte
}

// wide is a layout whose sequence is never used up, so that a call itself is measured.
const wide = "41/0/0/22"

// A subject's loop calls its function directly: a call through a variable would cost as much as the
// cheapest of them.
func subjects() ([]subject, error) {
	all := floors()
	for _, more := range []func() ([]subject, error){generators, others, encodings} {
		some, err := more()
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func floors() []subject {
	var (
		word struct { // on a cache line of its own
			_ [64]byte
			n atomic.Int64
			_ [64]byte
		}
		mu struct {
			sync.Mutex
			n int64
		}
		start = time.Now()
	)
	return []subject{
		{"atomic add", floor, 1, plain(func(_, n int) {
			for range n {
				word.n.Add(1)
			}
		})},
		{"compare-and-swap", floor, 1, plain(func(_, n int) {
			for range n {
				for old := word.n.Load(); !word.n.CompareAndSwap(old, old+1); old = word.n.Load() {
				}
			}
		})},
		{"mutex", floor, 1, plain(func(_, n int) {
			for range n {
				mu.Lock()
				mu.n++
				mu.Unlock()
			}
		})},
		{"time.Since", floor, 1, plain(func(g, n int) {
			for range n {
				results[g].id = firn.ID(time.Since(start))
			}
		})},
		{"time.Now", floor, 1, plain(func(g, n int) {
			for range n {
				results[g].id = firn.ID(time.Now().UnixMilli())
			}
		})},
	}
}

// plain is a loop without errors.
func plain(calls func(g, n int)) func(int) func(int) error {
	return func(g int) func(int) error {
		return func(n int) error {
			calls(g, n)
			return nil
		}
	}
}

func generators() ([]subject, error) {
	ctx := context.Background()
	nexts := func(gen *firn.Generator) func(int) func(int) error {
		return func(g int) func(int) error {
			return func(n int) error {
				for range n {
					id, err := gen.Next(ctx)
					if err != nil {
						return err
					}
					results[g].id = id
				}
				return nil
			}
		}
	}
	fills := func(gen *firn.Generator, count int) func(int) func(int) error {
		return func(int) func(int) error {
			ids := make([]firn.ID, count)
			return func(n int) error {
				for range n {
					if _, err := gen.Fill(ctx, ids); err != nil {
						return err
					}
				}
				return nil
			}
		}
	}
	takes := func(gen *firn.Generator, count int) func(int) func(int) error {
		return func(int) func(int) error {
			ids := make([]firn.ID, 0, count)
			return func(n int) error {
				for range n {
					for ids = ids[:0]; len(ids) < count; {
						run, err := gen.Take(ctx, count-len(ids))
						if err != nil {
							return err
						}
						ids = run.AppendTo(ids)
					}
				}
				return nil
			}
		}
	}
	locals := func(gen *firn.Generator) func(int) func(int) error {
		each := [2]*firn.Local{gen.Local(), gen.Local()}
		return func(g int) func(int) error {
			return func(n int) error {
				l := each[g]
				for range n {
					id, err := l.Next(ctx)
					if err != nil {
						return err
					}
					results[g].id = id
				}
				return nil
			}
		}
	}
	var exact, wall, virtual, lagging, local *firn.Generator
	for to, cfg := range map[**firn.Generator]firn.Config{
		&exact: {}, &wall: {Clock: firn.ClockWall}, &virtual: {Clock: firn.ClockVirtual}, &lagging: {Lag: time.Millisecond}, &local: {Lag: time.Millisecond},
	} {
		var err error
		if *to, err = generator(wide, cfg); err != nil {
			return nil, err
		}
	}
	return []subject{
		{"`Next`", ours, 1, nexts(exact)},
		{"`Next`, wall clock", ours, 1, nexts(wall)},
		{"`Next`, virtual clock", ours, 1, nexts(virtual)},
		{"`Next`, `Lag` 1ms", ours, 1, nexts(lagging)},
		{"`Local`, `Lag` 1ms", ours, 1, locals(local)},
		{"`Fill` of 16", ours, 16, fills(exact, 16)},
		{"`Fill` of 1,024", ours, 1024, fills(exact, 1024)},
		{"`Take` of 1,024, `AppendTo`", ours, 1024, takes(exact, 1024)},
	}, nil
}

func generator(layout string, cfg firn.Config) (*firn.Generator, error) {
	var err error
	if cfg.Layout, err = firn.ParseLayout(layout); err != nil {
		return nil, err
	}
	return firn.New(0, cfg)
}

// others are generators of others, with the widest sequences that they allow.
func others() ([]subject, error) {
	bits, steps := bwmarrin.NodeBits, bwmarrin.StepBits
	bwmarrin.NodeBits, bwmarrin.StepBits = 0, 22 // settings of the package, read when a node is made
	node, err := bwmarrin.NewNode(0)
	bwmarrin.NodeBits, bwmarrin.StepBits = bits, steps
	if err != nil {
		return nil, err
	}
	sony, err := sonyflake.New(sonyflake.Settings{
		TimeUnit: time.Millisecond, BitsSequence: 22, BitsMachineID: 3, MachineID: func() (int, error) { return 1, nil },
	})
	if err != nil {
		return nil, err
	}
	return []subject{
		{"bwmarrin/snowflake, 22-bit step", peers, 1, plain(func(g, n int) {
			for range n {
				results[g].id = firn.ID(node.Generate())
			}
		})},
		{"sonyflake 2, 1 ms, 22-bit sequence", peers, 1, func(g int) func(int) error {
			return func(n int) error {
				for range n {
					id, err := sony.NextID()
					if err != nil {
						return err
					}
					results[g].id = firn.ID(id)
				}
				return nil
			}
		}},
		{"rs/xid (96 bits)", peers, 1, plain(func(g, n int) {
			for range n {
				id := xid.New()
				copy(results[g].big[:], id[:])
			}
		})},
		{"oklog/ulid (128 bits)", peers, 1, plain(func(g, n int) {
			for range n {
				results[g].big = ulid.Make()
			}
		})},
		{"google/uuid v4", peers, 1, func(g int) func(int) error { return uuids(g, uuid.NewRandom) }},
		{"google/uuid v7", peers, 1, func(g int) func(int) error { return uuids(g, uuid.NewV7) }},
	}, nil
}

func uuids(g int, make func() (uuid.UUID, error)) func(int) error {
	return func(n int) error {
		for range n {
			id, err := make()
			if err != nil {
				return err
			}
			results[g].big = id
		}
		return nil
	}
}

func encodings() ([]subject, error) {
	var ids [256]firn.ID // with the full number of digits
	for i, x := 0, uint64(88172645463325252); i < len(ids); i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		ids[i] = firn.ID(x>>1) | 1<<61
	}
	return []subject{
		{"`ID.String`", texts, 1, plain(func(g, n int) {
			for i := range n {
				results[g].text = ids[i&255].String()
			}
		})},
		{"`Base58.Compact`", texts, 1, plain(func(g, n int) {
			for i := range n {
				results[g].text = firn.Base58.Compact(ids[i&255])
			}
		})},
		{"`Base62.Fixed`", texts, 1, plain(func(g, n int) {
			for i := range n {
				results[g].text = firn.Base62.Fixed(ids[i&255])
			}
		})},
		{"bwmarrin's `String`", texts, 1, plain(func(g, n int) {
			for i := range n {
				results[g].text = bwmarrin.ID(ids[i&255]).String()
			}
		})},
		{"bwmarrin's `Base58`", texts, 1, plain(func(g, n int) {
			for i := range n {
				results[g].text = bwmarrin.ID(ids[i&255]).Base58()
			}
		})},
	}, nil
}
