package firn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// FuzzGenerator plays a script of events (clock steps, calls, lease renewals) to one
// generator with any clock and chain. It checks that every id is new, is within a grant of
// its worker and, where order is promised, is greater than all earlier ids.
func FuzzGenerator(f *testing.F) {
	for which := range uint8(80) {
		if which >= 40 { // with a lag
			which += 128
		}
		f.Add([]byte{0, 7, 1, 30, 9, 40, 3, 200, 10, 1, 12, 90, 0, 2, 8, 60, 3, 20, 2, 50, 10, 2, 11, 0, 1, 9, 4, 200, 10, 5, 9, 90, 0, 3}, which)
	}
	f.Fuzz(func(t *testing.T, script []byte, which uint8) {
		s := newScripted(t, which)
		for i := 0; i+1 < min(len(script), 600); i += 2 {
			s.do(script[i], int64(script[i+1]))
		}
	})
}

// scripted is a generator under a script.
type scripted struct {
	t       *testing.T
	time    *firntest.Clock
	gen     *firn.Generator
	layout  firn.Layout
	grants  map[int64][]firn.Grant
	seen    map[firn.ID]bool
	last    firn.ID
	local   *firn.Local
	own     firn.ID // the local's last
	ordered bool
	worker  int64
	through firn.Tick
	free    int64 // the next unused worker
}

var scriptLayouts = []string{"41/0/6/3", "41/0/6/2,unit=100ms", "39/0/6/3,unit=10ms,order=sequence-worker", "41/2/6/1,unit=1s"}

func newScripted(t *testing.T, which uint8) *scripted {
	chains := append(append([]string{}, ordered...), unordered...)
	s := &scripted{
		t: t, time: newClock(), layout: mustLayout(scriptLayouts[int(which)%len(scriptLayouts)]),
		grants: map[int64][]firn.Grant{}, seen: map[firn.ID]bool{}, last: -1, ordered: true,
	}
	cfg := firn.Config{
		Layout: s.layout, Time: s.time, Start: firn.SequenceStart(which % 3), Random: func() uint64 { return uint64(which) * 0x9e3779b97f4a7c15 },
		Switch: func(_ context.Context, from firn.Tick) (firn.Grant, error) {
			if s.free > s.layout.MaxWorker() {
				return firn.Grant{}, errors.New("no worker left")
			}
			return s.grant(from-1, 50), nil
		},
	}
	switch which % 5 {
	case 0:
		cfg.Clock = firn.ClockSteady
	case 1:
		cfg.Clock, cfg.Ahead = firn.ClockVirtual, time.Duration(which)*time.Millisecond
	default:
		chain := chains[int(which)%len(chains)]
		rollback, err := firn.ParseRollback(chain)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Clock, cfg.Rollback = firn.ClockWall, rollback
		s.ordered = int(which)%len(chains) < len(ordered)
	}
	if which >= 128 && cfg.Clock != firn.ClockVirtual {
		cfg.Lag = time.Duration(which-127) * time.Millisecond
	}
	gen, err := firn.NewLeased(cfg, s.grant(s.now()-1, 50))
	if err != nil {
		t.Fatal(err)
	}
	s.gen, s.local, s.own = gen, gen.Local(), -1
	return s
}

func (s *scripted) now() firn.Tick {
	tick, err := s.layout.Tick(s.time.Wall())
	if err != nil {
		s.t.Fatal(err)
	}
	return tick
}

// grant returns a grant of an unused worker.
func (s *scripted) grant(after firn.Tick, ticks int64) firn.Grant {
	g := firn.Grant{Worker: s.free, After: after, Through: after + firn.Tick(ticks)}
	s.free++
	s.grants[g.Worker] = append(s.grants[g.Worker], g)
	s.worker, s.through = g.Worker, g.Through
	return g
}

// do is one step. Clock steps are limited to an hour, since catching up takes 16 times as long.
func (s *scripted) do(what byte, arg int64) {
	unit := s.layout.Unit()
	switch what % 13 {
	case 0, 1:
		s.next(func() ([]firn.ID, error) { id, err := s.gen.Next(context.Background()); return []firn.ID{id}, err })
	case 2:
		s.next(func() ([]firn.ID, error) {
			run, err := s.gen.Take(context.Background(), int(arg)+1)
			return run.AppendTo(nil), err
		})
	case 3:
		ids := make([]firn.ID, arg%20)
		s.next(func() ([]firn.ID, error) { n, err := s.gen.Fill(context.Background(), ids); return ids[:n], err })
	case 4:
		s.time.Step(-time.Duration(arg) * unit)
	case 5:
		s.time.Step(-time.Duration(arg) * unit / 7)
	case 6:
		s.time.Step(time.Duration(arg) * unit)
	case 7, 8:
		s.time.Pass(time.Duration(arg) * unit / 5)
	case 9:
		s.through += firn.Tick(arg)
		s.grants[s.worker] = append(s.grants[s.worker], firn.Grant{Worker: s.worker, After: s.grants[s.worker][0].After, Through: s.through})
		if err := s.gen.Extend(s.worker, s.through); err != nil {
			s.t.Fatal(err)
		}
	case 10:
		if s.free <= s.layout.MaxWorker() {
			if err := s.gen.Replace(s.grant(s.now()-1+firn.Tick(arg%9)-4, arg+1)); err != nil {
				s.t.Fatal(err)
			}
		}
	case 11:
		s.gen.Now()
	case 12:
		last := s.last
		s.last = s.own // ids of others may be greater
		s.next(func() (ids []firn.ID, err error) {
			for range arg {
				id, err := s.local.Next(context.Background())
				if err != nil {
					return ids, err
				}
				ids = append(ids, id)
			}
			return ids, nil
		})
		s.own = s.last
		s.last = max(s.last, last)
	}
}

func (s *scripted) next(call func() ([]firn.ID, error)) {
	s.t.Helper()
	ids, err := call()
	switch {
	case err == nil:
	case errors.Is(err, firn.ErrClockBack), errors.Is(err, firn.ErrFence):
	default:
		s.t.Fatal(err)
	}
	for _, id := range ids {
		if err != nil && id == 0 {
			continue
		}
		p := partsOf(s.layout, id)
		if s.seen[id] {
			s.t.Fatalf("id %d %+v was issued before", id, p)
		}
		s.seen[id] = true
		if s.ordered && id <= s.last {
			s.t.Fatalf("id %d %+v after %d %+v", id, p, s.last, partsOf(s.layout, s.last))
		}
		s.last = max(s.last, id)
		if !s.granted(p) {
			s.t.Fatalf("id %d %+v lies in no grant: %v", id, p, s.grants[p.Worker])
		}
	}
}

func (s *scripted) granted(p firn.Parts) bool {
	for _, g := range s.grants[p.Worker] {
		if p.Tick > g.After && p.Tick <= g.Through {
			return true
		}
	}
	return false
}

// FuzzParseSettings checks that each value is printed as text that is parsed to the same value.
func FuzzParseSettings(f *testing.F) {
	for _, text := range []string{
		"wait 500ms 2, history 2000, switch, refuse", "ahead 5", "steady", "carry", "10ms", "2025-01-01", "1288834974657",
		"2020-02-29T23:59:59+08:00", "wait", "history 0", "1e9s", "-1ms", "9223372036854775807", "base62",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		again(t, text, firn.ParseRollback, firn.Rollback.String)
		again(t, text, firn.ParseClock, firn.ClockKind.String)
		again(t, text, firn.ParseSequenceStart, firn.SequenceStart.String)
		again(t, text, firn.ParseUnit, time.Duration.String)
		again(t, text, firn.ParseEpoch, func(epoch time.Time) string { return epoch.Format(time.RFC3339Nano) })
	})
}

func again[T any](t *testing.T, text string, parse func(string) (T, error), write func(T) string) {
	t.Helper()
	value, err := parse(text)
	if err != nil {
		if !errors.Is(err, firn.ErrSyntax) && !errors.Is(err, firn.ErrRange) {
			t.Fatalf("%q: %v matches neither ErrSyntax nor ErrRange", text, err)
		}
		return
	}
	written := write(value)
	if second, err := parse(written); err != nil || fmt.Sprint(second) != fmt.Sprint(value) {
		t.Fatalf("%q was read as %v, written as %q and read as %v, %v", text, value, written, second, err)
	}
}
