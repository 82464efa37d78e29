package leases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
)

// A fault is a row of the matrix: a disturbance of the processes of a pool with two workers, and of
// their store.
type fault struct {
	name string
	// needs reports whether a backend supports the row; nil: every backend does.
	needs func(*backend) bool
	// strict runs the row a second time with that setting, which must produce no duplicate; without it
	// the duplicates are counted.
	strict bool
	do     func(w *world)
}

func served(b *backend) bool { return b.kill != nil }

var faults = []fault{
	{name: "two newcomers at the same moment on an empty store", do: func(w *world) {
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				if _, err := w.try(0); err != nil {
					w.t.Error(err)
				}
			})
		}
		group.Wait()
		w.makes(w.processes[0], 500)
		w.makes(w.processes[1], 500)
		if a, b := w.processes[0].lease.State().Worker, w.processes[1].lease.State().Worker; a == b {
			w.t.Errorf("both hold worker %d", a)
		}
	}},
	{name: "a pool that is full", do: func(w *world) {
		w.makes(w.start(), 10)
		w.makes(w.start(), 10)
		var full *lease.FullError
		if _, err := w.try(0); !errors.As(err, &full) || full.Workers != 2 || full.Next.Before(time.Now()) {
			w.t.Errorf("a third process in a pool of two: %v", err)
		}
	}},
	{name: "graceful leave, and a restart at once on the same worker", do: func(w *world) {
		p := w.start()
		worker := p.lease.State().Worker
		for range 5 {
			w.makes(p, 200)
			w.close(p)
			p = w.start(func(c *lease.Config) { c.Pinned = &worker })
		}
		w.makes(p, 200)
	}},
	{name: "crash; the slot comes back after its fence, longest idle first", do: func(w *world) {
		s, l := w.b.onLine(w.t)
		crashed, err := w.over(s, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		w.makes(crashed, 500)
		crashed.crash(l)
		fence := crashed.lease.State().Until
		other := w.start()
		w.makes(other, 100)
		var next *process
		w.until("the crashed one's slot", func() bool {
			next, err = w.try(0)
			if err == nil && time.Now().Before(fence) {
				w.t.Errorf("granted at %v, before the fence %v", time.Now(), fence)
			}
			return err == nil
		})
		w.makes(next, 500)
	}},
	{name: "slot taken away by an operator", do: func(w *world) {
		p := w.start()
		w.makes(p, 500)
		if _, err := lease.Reclaim(context.Background(), w.b.open(w.t), w.pool, 0, p.lease.State().Worker, time.Time{}); err != nil {
			w.t.Fatal(err)
		}
		w.until("the holder to leave it", func() bool { return p.lease.State().Losses == 1 })
		w.makes(p, 500)
		var next *process
		w.until("the slot taken away, after its fence", func() bool {
			var err error
			next, err = w.try(0)
			return err == nil
		})
		w.makes(next, 500)
		if failures := p.failures(); len(failures) > 0 {
			w.t.Errorf("callers noticed: %v", failures)
		}
	}},
	{name: "outage shorter than the window", needs: served, do: func(w *world) {
		p := w.start()
		w.makes(p, 500)
		w.until("a fresh window", func() bool { return p.lease.State().Left > w.window()*9/10 })
		w.b.kill()
		time.Sleep(window / 4)
		w.b.restart()
		w.makes(p, 500)
		if failures := p.failures(); len(failures) > 0 && p.lease.State().Left > 0 {
			w.t.Logf("callers noticed: %v; the server took longer to restart than the window", failures)
		}
		w.until("renewals to continue", func() bool { s := p.lease.State(); return s.Err == nil && s.Left > window/2 })
	}},
	{name: "outage longer than the window", needs: served, do: func(w *world) {
		p, q := w.start(), w.start()
		w.makes(p, 500)
		w.makes(q, 500)
		w.b.kill()
		w.until("the fence", func() bool { return p.failures()[firn.ErrFence.Error()] > 0 && q.failures()[firn.ErrFence.Error()] > 0 })
		w.b.restart()
		w.makes(p, 500)
		w.makes(q, 500)
	}},
	{name: "store that accepts connections and answers nothing", needs: served, do: func(w *world) {
		p, q := w.start(), w.start()
		w.makes(p, 500)
		w.b.pause()
		w.until("the fence", func() bool { return p.failures()[firn.ErrFence.Error()] > 0 })
		w.b.resume()
		w.makes(p, 500)
		w.makes(q, 500)
	}},
	{name: "store killed and restarted, again and again", needs: served, do: func(w *world) {
		p, q := w.start(), w.start()
		for range 4 {
			w.makes(p, 100)
			w.makes(q, 100)
			w.b.kill()
			w.b.restart()
		}
		w.makes(p, 500)
		w.makes(q, 500)
	}},
	{name: "store wiped under running holders, newcomers at once", strict: true, do: func(w *world) {
		p := w.start()
		w.makes(p, 500)
		for range 2 {
			w.b.wipe(w.t)
			q := w.start()
			w.makes(q, 200)
			w.makes(p, 200)
			w.close(q)
		}
	}},
	{name: "slot removed (evicted) under its holder, newcomers at once", strict: true, do: func(w *world) {
		p := w.start()
		w.makes(p, 500)
		for range 5 {
			w.b.remove(w.t, fmt.Sprintf("firn/%s/slot/0/%d", w.pool, p.lease.State().Worker))
			q, err := w.try(0)
			if errors.Is(err, lease.ErrFull) {
				continue
			}
			if err != nil {
				w.t.Fatal(err)
			}
			w.makes(q, 100)
			w.makes(p, 100)
			w.close(q)
		}
	}},
	{name: "last renewals lost: an older copy is restored under its holders", do: func(w *world) {
		p, q := w.start(), w.start()
		w.makes(p, 200)
		w.makes(q, 200)
		// Restore a copy that lacks renewals, but whose fences are still ahead for longer than holders
		// need until their next look.
		for {
			p, q := p.lease.State(), q.lease.State()
			older, taken := w.b.dump(w.t), time.Now()
			w.until("a renewal", func() bool {
				return w.processes[0].lease.State().Renewals > p.Renewals || w.processes[1].lease.State().Renewals > q.Renewals
			})
			if min(p.Left, q.Left)-time.Since(taken) > 3*look {
				w.b.restore(w.t, older)
				break
			}
		}
		time.Sleep(3 * look)
		if _, err := w.try(0); !errors.Is(err, lease.ErrFull) && err != nil {
			w.t.Errorf("a newcomer: %v", err)
		}
		w.makes(p, 2000)
		w.makes(q, 2000)
	}},
	{name: "a claim lost: a copy from before it is restored, newcomers at once", strict: true, do: func(w *world) {
		p := w.start()
		w.makes(p, 200)
		older := w.b.dump(w.t)
		q := w.start()
		w.makes(q, 200)
		w.b.restore(w.t, older)
		r, err := w.try(0)
		if err == nil { // three processes share two workers: its worker's earlier holder may take it back
			want := r.made() + 500
			w.until("500 ids, or a full pool", func() bool { return r.made() >= want || errors.Is(r.lease.State().Err, lease.ErrFull) })
			w.close(r)
		} else if !errors.Is(err, lease.ErrFull) {
			w.t.Error(err)
		}
		w.makes(p, 500)
		w.makes(q, 500)
	}},
	{name: "wiped while a holder is cut off, a newcomer takes over", strict: true, do: func(w *world) {
		s, l := w.b.onLine(w.t)
		p, err := w.over(s, 0, func(c *lease.Config) {
			if !w.strict {
				c.Window = 5 * window // longer than newcomers wait
			}
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.makes(p, 200)
		w.until("a fresh window", func() bool { return p.lease.State().Left > w.window()*9/10 })
		l.cut()
		w.b.wipe(w.t)
		// They take both workers, one of which belongs to the process that is cut off.
		q, r := w.start(), w.start()
		w.makes(q, 200)
		w.makes(r, 200)
		w.until("the fence", func() bool { return p.failures()[firn.ErrFence.Error()] > 0 })
		l.mend()
		w.close(p) // otherwise it would take one of the two workers again
		w.makes(q, 200)
	}},
	{name: "a process stopped past its window (SIGSTOP) and resumed", do: stopped},
	{name: "clock of a newcomer an hour ahead", do: func(w *world) { wrongClock(w, time.Hour) }},
	{name: "clock of a newcomer an hour behind", do: func(w *world) { wrongClock(w, -time.Hour) }},
	{name: "clock of a holder steps an hour ahead, back, and behind", do: func(w *world) {
		p := w.start(eightWorkers, func(c *lease.Config) {
			c.Generator.Clock = firn.ClockWall
			c.Generator.Rollback, _ = firn.ParseRollback("wait 50ms, history 2000, switch, refuse")
		})
		q := w.start(eightWorkers)
		w.makes(p, 300)
		for _, offset := range []time.Duration{time.Hour, 0, -time.Hour, 0} {
			p.time.offset.Store(int64(offset))
			time.Sleep(window / 2)
		}
		w.makes(p, 300)
		w.makes(q, 300)
	}},
}

// eightWorkers leaves spare workers to switch to.
func eightWorkers(c *lease.Config) {
	l, err := firn.ParseLayout("41/0/3/12")
	if err != nil {
		panic(err)
	}
	c.Generator.Layout = l
}

// wrongClock lets a process with a wrong clock join. It is refused if the store has a clock;
// otherwise it does no harm.
func wrongClock(w *world, offset time.Duration) {
	p := w.start()
	w.makes(p, 300)
	q, err := w.try(offset)
	if w.b.clock {
		var wrong *lease.ClockError
		if !errors.As(err, &wrong) || wrong.Here.Sub(wrong.There).Abs() < time.Hour-time.Minute {
			w.t.Errorf("a clock %v off: %v", offset, err)
		}
	} else if err == nil {
		w.makes(q, 300)
		w.close(q)
	}
	w.makes(p, 300)
	if w.b.clock { // otherwise the other worker may be unusable for an hour
		w.makes(w.start(), 300)
	}
}

func TestMatrix(t *testing.T) {
	var mu sync.Mutex
	table := map[string]map[string]string{}
	t.Cleanup(func() { report(t, table) })
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			b := m.make(t)
			b.name = m.name
			for i, f := range faults {
				t.Run(f.name, func(t *testing.T) {
					cell := "—"
					if f.needs == nil || f.needs(b) {
						cell = play(t, b, f, fmt.Sprint("row", i))
					}
					mu.Lock()
					defer mu.Unlock()
					if table[f.name] == nil {
						table[f.name] = map[string]string{}
					}
					table[f.name][m.name] = cell
				})
			}
		})
	}
}

// play runs a row on a backend, and returns the cell of the table.
func play(t *testing.T, b *backend, f fault, pool string) string {
	w := &world{t: t, b: b, pool: pool}
	f.do(w)
	ids, duplicates := w.count()
	t.Logf("%d ids, %d duplicates", ids, duplicates)
	if !f.strict {
		if duplicates > 0 {
			t.Errorf("%d duplicates among %d ids", duplicates, ids)
		}
		return fmt.Sprint(duplicates)
	}
	w = &world{t: t, b: b, pool: pool + "strict", strict: true}
	if b.open(t).Traits().Clock == nil {
		if p, err := w.try(0); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("a strict pool over a store without a clock: %v, %v", p, err)
		}
		return fmt.Sprintf("%d / refused", duplicates)
	}
	f.do(w)
	ids, strictly := w.count()
	t.Logf("strict: %d ids, %d duplicates", ids, strictly)
	if strictly > 0 {
		t.Errorf("%d duplicates among %d ids in a strict pool", strictly, ids)
	}
	return fmt.Sprintf("%d / %d", duplicates, strictly)
}

// report logs the table, and writes it to the file that FIRN_MATRIX names.
func report(t *testing.T, table map[string]map[string]string) {
	var b strings.Builder
	b.WriteString("| fault |")
	for _, m := range makers {
		b.WriteString(" " + m.name + " |")
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(makers)) + "\n")
	for _, f := range faults {
		b.WriteString("| " + f.name + " |")
		for _, m := range makers {
			b.WriteString(" " + table[f.name][m.name] + " |")
		}
		b.WriteString("\n")
	}
	t.Log("\n" + b.String())
	if file := os.Getenv("FIRN_MATRIX"); file != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}
