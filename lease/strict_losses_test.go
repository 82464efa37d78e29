//go:build !race

// One goroutine plays all of a history, which the race detector would only slow down.
package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// TestNoLossOfAStoreMakesADuplicateInAStrictPool plays random histories in which
// the store loses what it acknowledged, wholly or since some moment, while
// holders are paused for as long as they like and clocks differ by less than the
// tolerance.
func TestNoLossOfAStoreMakesADuplicateInAStrictPool(t *testing.T) {
	total, losses := 0, 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 12))
		w := newWorld(t)
		w.mem = memstore.New(random.Uint64)
		w.store = storetest.NewFaulty(w.mem)
		w.seed = seed << 20
		var players []*Lease
		var copies []memstore.Snapshot
		busy := map[*Lease]bool{} // its background has one goroutine
		var step func(depth int)
		join := func(depth int) {
			l, err := w.try(func(c *Config) {
				c.Generator.Layout = layout("41/0/1/4,unit=1s")
				w.shared(c)
				c.Window, c.Tolerance, c.Strict = 40*time.Second, 2*time.Second, 52*time.Second
				c.Generator.Time = &during{w.time, time.Duration(random.IntN(4000)-2000) * time.Millisecond, func() { step(depth + 1) }}
				if random.IntN(2) == 0 {
					c.Generator.Clock, c.Generator.Rollback = firn.ClockWall, firn.Rollback{firn.RunAhead(500)}
				}
			})
			if err == nil {
				players = append(players, l)
			} else if !errors.Is(err, ErrFull) && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrConflict) {
				t.Fatalf("seed %d: join: %v", seed, err)
			}
		}
		step = func(depth int) {
			if len(players) == 0 || len(players) < 5 && random.IntN(12) == 0 {
				if depth < 3 {
					join(depth)
				}
				return
			}
			l := players[random.IntN(len(players))]
			switch random.IntN(12) {
			case 0:
				copies = append(copies, w.mem.Snapshot())
			case 1:
				losses++
				if n := len(copies); n > 0 && random.IntN(3) > 0 {
					at := random.IntN(n)
					w.mem.Restore(copies[at])
					copies = copies[:at+1]
				} else {
					w.mem.Restore(nil)
				}
			case 2, 3:
				w.time.Pass(time.Duration(random.IntN(6000)) * time.Millisecond)
			case 4, 5, 6:
				if depth < 3 && !busy[l] {
					busy[l] = true
					l.turn(context.Background())
					busy[l] = false
				}
			default:
				if err := w.take(l, random.IntN(20)); err != nil && !errors.Is(err, firn.ErrFence) && !errors.Is(err, firn.ErrClockBack) {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		}
		for range 300 {
			step(0)
		}
		total += len(w.ids)
	}
	if total < 15_000 || losses < 300 {
		t.Errorf("only %d ids and %d losses of the store in all histories", total, losses)
	}
	t.Logf("%d ids, %d losses", total, losses)
}
