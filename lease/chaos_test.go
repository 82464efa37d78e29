package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

// TestNoFaultMakesADuplicate plays random histories of a few processes that
// want fewer workers, each on a machine with a clock of its own: clocks step,
// processes crash, pause, leave and come back, answers of the store are lost
// with and without the write being applied, at once or late.
func TestNoFaultMakesADuplicate(t *testing.T) {
	total, errored := 0, map[string]int{}
	for seed := range uint64(100) {
		total += playFaults(t, seed, errored)
	}
	if total < 15_000 {
		t.Errorf("only %d ids in all histories", total)
	}
	for _, kind := range []string{"fence", "clock back", "full"} {
		if errored[kind] == 0 {
			t.Errorf("no history met the error %q: the faults are too tame", kind)
		}
	}
	t.Logf("%d ids; errors met: %v", total, errored)
}

type player struct {
	lease   *Lease
	machine *machine
}

func playFaults(t *testing.T, seed uint64, errored map[string]int) int {
	random := rand.New(rand.NewPCG(seed, 11))
	w := &world{t: t, mem: memstore.New(random.Uint64), ids: map[firn.ID]string{}, ticks: map[[2]int64]*Lease{}, seed: seed << 20}
	w.store = storetest.NewFaulty(w.mem)
	quiet := false
	w.store.Script = func(storetest.Call) storetest.Outcome {
		if quiet || random.IntN(8) > 0 {
			return storetest.Pass
		}
		return []storetest.Outcome{storetest.FailApplied, storetest.FailUnapplied, storetest.FailLate, storetest.Refuse}[random.IntN(4)]
	}
	chains := []firn.Rollback{
		nil, {firn.Refuse()}, {firn.SwitchWorker()}, {firn.History(64, time.Second)}, {firn.RunAhead(10)},
		{firn.Wait(50*time.Millisecond, 2), firn.History(2000, time.Second), firn.SwitchWorker()},
	}
	// Ticks of a second make it likely that two want the same one.
	l := layout([]string{"41/0/2/3", "41/0/2/3,unit=1s", "41/0/1/4,unit=1s"}[seed%3])
	now := noon
	var players []player
	join := func() {
		m := newMachine()
		m.Set(now.Add(time.Duration(random.IntN(60_000)-30_000) * time.Millisecond))
		w.time = m
		l, err := w.try(func(c *Config) {
			c.Generator.Layout = l
			c.Generator.Time = m
			c.Window = 20 * time.Second
			if chain := chains[random.IntN(len(chains))]; chain != nil {
				c.Generator.Clock, c.Generator.Rollback = firn.ClockWall, chain
			} else if random.IntN(4) == 0 {
				c.Generator.Clock = firn.ClockVirtual
			}
		})
		if err != nil {
			if errors.Is(err, ErrFull) {
				errored["full"]++
			}
			return
		}
		players = append(players, player{l, m})
	}
	leave := func(i int) { players = append(players[:i], players[i+1:]...) }
	for range 400 {
		if len(players) == 0 {
			join()
			continue
		}
		i := random.IntN(len(players))
		p := players[i]
		switch random.IntN(16) {
		case 0:
			if len(players) < 6 {
				join()
			}
		case 1:
			leave(i) // a crash
		case 2:
			// Whether giving back succeeds or not, no id may come after it.
			_ = p.lease.Close(context.Background())
			if _, err := p.lease.Next(t.Context()); !errors.Is(err, firn.ErrClosed) {
				t.Fatalf("seed %d: an id after Close, %v", seed, err)
			}
			leave(i)
		case 3:
			p.machine.Step(time.Duration(random.IntN(180_000)-90_000) * time.Millisecond)
		case 4, 5:
			d := time.Duration(random.IntN(6000)) * time.Millisecond
			now = now.Add(d)
			for _, each := range players {
				each.machine.Pass(d)
			}
		case 6, 7, 8:
			p.lease.turn(context.Background())
		default:
			switch err := w.take(p.lease, random.IntN(30)); {
			case err == nil:
			case errors.Is(err, firn.ErrFence):
				errored["fence"]++
			case errors.Is(err, firn.ErrClockBack):
				errored["clock back"]++
			default:
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	// When the faults stop, every remaining process makes ids again.
	quiet = true
	for i, p := range players {
		if g := p.lease.cfg.Generator; g.Clock != firn.ClockSteady {
			continue // a wall clock may be behind for as long as it likes
		}
		p.machine.Pass(5 * time.Minute)
		if err := revive(p); err != nil && !errors.Is(err, ErrFull) {
			t.Errorf("seed %d: process %d of %d does not come back: %v", seed, i, len(players), err)
		}
		if err := w.take(p.lease, 10); err != nil && !errors.Is(p.lease.State().Err, ErrFull) {
			t.Errorf("seed %d: process %d of %d: %v, state %+v", seed, i, len(players), err, p.lease.State())
		}
	}
	return len(w.ids)
}

// revive lets a lease look often enough to recover.
func revive(p player) error {
	for range 10 {
		p.lease.turn(context.Background())
		if s := p.lease.State(); s.Err == nil {
			return nil
		}
	}
	return fmt.Errorf("after ten looks: %w", p.lease.State().Err)
}
