package segment_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// Each setting has a least and a greatest value: both are allowed, and what lies beyond
// is refused by name.
func TestSettingsAreAllowedUpToTheirBounds(t *testing.T) {
	month := 30 * 24 * time.Hour
	for _, c := range []struct {
		refused string // what the error says; empty for settings that are allowed
		change  func(c *segment.Config)
	}{
		{"", func(c *segment.Config) { c.MinStep, c.MaxStep = 1, 1 }},
		{"", func(c *segment.Config) { c.MaxStep = 1 }},
		{"", func(c *segment.Config) { c.MinStep = 1 << 40 }},
		{"least step", func(c *segment.Config) { c.MinStep = 1<<40 + 1 }},
		{"greatest step", func(c *segment.Config) { c.MaxStep = 1<<40 + 1 }},
		{"greatest step", func(c *segment.Config) { c.MinStep, c.MaxStep = 5, 4 }},
		{"", func(c *segment.Config) { c.Target = time.Millisecond }},
		{"target", func(c *segment.Config) { c.Target = time.Millisecond - 1 }},
		{"", func(c *segment.Config) { c.Target = month }},
		{"target", func(c *segment.Config) { c.Target = month + 1 }},
		{"", func(c *segment.Config) { c.Ahead = 1 }},
		{"ahead", func(c *segment.Config) { c.Ahead = -1e-9 }},
		{"", func(c *segment.Config) { c.Chain, c.Fetches, c.MaxNames = 1, 1, 1 }},
		{"", func(c *segment.Config) { c.Chain, c.Fetches, c.MaxNames = 64, 1024, 1<<30 }},
		{"chain", func(c *segment.Config) { c.Chain = 65 }},
		{"fetches", func(c *segment.Config) { c.Fetches = 1025 }},
		{"number of names", func(c *segment.Config) { c.MaxNames = 1<<30 + 1 }},
		{"", func(c *segment.Config) { c.Start, c.Max = firn.MaxID, firn.MaxID }},
		{"", func(c *segment.Config) { c.Start, c.Max = 7, 7 }},
		{"first id", func(c *segment.Config) { c.Start, c.Max = 8, 7 }},
		{"first id", func(c *segment.Config) { c.Start = -1 }},
		{"last id", func(c *segment.Config) { c.Max = -1 }},
		{"", func(c *segment.Config) { c.Offset, c.Stride = 1<<20-1, 1<<20 }},
		{"stride", func(c *segment.Config) { c.Stride = 1<<20 + 1 }},
		{"offset", func(c *segment.Config) { c.Offset, c.Stride = 4, 4 }},
		{"offset", func(c *segment.Config) { c.Offset, c.Stride = -1, 4 }},
		{"Source", func(c *segment.Config) { c.Store = nil }},
		{"Source", func(c *segment.Config) { c.Source = &stingy{} }},
	} {
		cfg := segment.Config{Store: memstore.New(nil)}
		c.change(&cfg)
		if err := cfg.Check(); (err != nil) != (c.refused != "" && c.refused != "Source") {
			t.Errorf("%+v: Check returns %v", cfg, err)
		}
		s, err := segment.New(cfg)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%+v: %v", cfg, err)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused) || s != nil):
			t.Errorf("%+v: %v, want an error about the %s", cfg, err, c.refused)
		}
	}
}

func TestAMistakeNamesThePackageAndTheField(t *testing.T) {
	for field, change := range map[string]func(c *segment.Config){
		"Max":      func(c *segment.Config) { c.Max = -1 },
		"Start":    func(c *segment.Config) { c.Start = -1 },
		"Ahead":    func(c *segment.Config) { c.Ahead = 2 },
		"Chain":    func(c *segment.Config) { c.Chain = -1 },
		"Fetches":  func(c *segment.Config) { c.Fetches = -1 },
		"MaxNames": func(c *segment.Config) { c.MaxNames = -1 },
		"MinStep":  func(c *segment.Config) { c.MinStep = -1 },
		"Stride":   func(c *segment.Config) { c.Stride = -1 },
		"Source":   func(c *segment.Config) { c.Source, c.Start = &stingy{}, 7 },
	} {
		cfg := segment.Config{Store: memstore.New(nil)}
		change(&cfg)
		if _, err := segment.New(cfg); err == nil || !strings.HasPrefix(err.Error(), "segment: Config."+field) && !strings.Contains(err.Error(), "\nsegment: Config."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := segment.NewSource(segment.Config{Store: memstore.New(nil), Max: -1})
	if want := "segment: Config.Max: last id -1 is out of range: 1 to 9223372036854775807 are allowed"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Errors of an exhausted name advise to raise Max.
func TestANameGoesOnWithAGreaterMax(t *testing.T) {
	for _, c := range []struct{ offset, stride int64 }{{0, 1}, {1, 3}} {
		w := newWorld(t, 1)
		used := func(last firn.ID) (ids []firn.ID, err error) {
			n := w.orders(func(cfg *segment.Config) { cfg.Max, cfg.Offset, cfg.Stride = last, c.offset, c.stride })
			for {
				id, err := n.Next(t.Context())
				if err != nil {
					return ids, err
				}
				ids = append(ids, id)
			}
		}
		before, err := used(10)
		if !errors.Is(err, segment.ErrExhausted) || !strings.Contains(err.Error(), "10 is the last allowed; raise Max, unless a veil ends there, or use another name") {
			t.Errorf("%v", err)
		}
		after, err := used(20)
		if !errors.Is(err, segment.ErrExhausted) {
			t.Errorf("%v", err)
		}
		for i, id := range append(before, after...) {
			if want := firn.ID(1 + c.stride*int64(i)); id != want {
				t.Errorf("stride %d: id %d, want %d", c.stride, id, want)
			}
		}
		if len(after) == 0 || after[len(after)-1] < 19 {
			t.Errorf("stride %d: with a greater Max: %v", c.stride, after)
		}
	}
}

func TestDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	w := newWorld(t, 1)
	var asks []segment.Ask
	next := firn.ID(1)
	n := w.orders(func(c *segment.Config) {
		c.Source = sourceFunc(func(_ context.Context, _ string, ask segment.Ask) (segment.Range, error) {
			asks = append(asks, ask)
			r := segment.Range{First: next, Count: ask.Step}
			next += firn.ID(ask.Step)
			return r, nil
		})
	})
	if s := n.State(); s.Lasts != 0 || s.Left != 0 || s.Step != 1000 || s.Name != "orders" {
		t.Errorf("of a new name: %+v", s)
	}
	w.mustTake(n, 198)
	w.stage.settle()
	if len(asks) != 1 || asks[0] != (segment.Ask{Step: 1000, Above: -1}) {
		t.Errorf("asked for: %+v", asks)
	}
	w.mustTake(n, 2)
	w.stage.settle() // less than 0.8 of the range is left
	if len(asks) != 2 || asks[1].Above != 1000 {
		t.Errorf("asked for: %+v", asks)
	}
	for range 20 { // as fast as it can: up to a million at once
		for left := int(n.State().Left); left > 0; {
			r, err := n.Take(t.Context(), left)
			if err != nil {
				t.Fatal(err)
			}
			left -= r.Len()
		}
		w.stage.now += time.Second
		w.stage.settle()
	}
	if most := asks[len(asks)-1].Step; most != 1_000_000 {
		t.Errorf("at most %d are asked for", most)
	}
}

func TestTakeHasABound(t *testing.T) {
	w := newWorld(t, 1)
	n := w.orders(steps(1<<22, 1<<22))
	for _, count := range []int{1 << 20, 1<<20 + 1, math.MaxInt} {
		if r, err := n.Take(t.Context(), count); err != nil || r.Count != 1<<20 {
			t.Errorf("%d at once: %v, %v", count, r, err)
		}
	}
	if r, err := n.Reserve(t.Context(), 1<<20); err != nil || r.Count != 1<<20 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestASecondCloseHasNothingToGiveBackAndCloseCountsWhatWasIssued(t *testing.T) {
	w := newWorld(t, 1)
	s := w.open(steps(100, 100))
	n := w.name(s, "orders")
	w.mustTake(n, 30)
	w.stage.settle()
	w.store.SetDown(true)
	first := s.Close(t.Context())
	if first == nil || !strings.Contains(first.Error(), "unused ids of 1 names stay unused") {
		t.Errorf("nothing could be given back: %v", first)
	}
	w.store.SetDown(false)
	if again := s.Close(t.Context()); again != nil {
		t.Errorf("the second time: %v", again)
	}
	if id := w.mustTake(w.name(w.open(steps(100, 100)), "orders"), 1); id != 201 {
		t.Errorf("the next process begins at %d: ids whose return failed must not be issued", id)
	}
	if s := n.State(); s.Issued != 30 || s.Left != 0 || s.Lasts != 0 {
		t.Errorf("after Close: %+v", s)
	}
}

// A fetch that outlasts Close brings a range that is never issued.
func TestARangeThatArrivesAfterCloseIsNotKept(t *testing.T) {
	w := newWorld(t, 1)
	var s *segment.Segments
	s = w.open(func(c *segment.Config) {
		c.Source = sourceFunc(func(context.Context, string, segment.Ask) (segment.Range, error) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			if err := s.Close(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("closed during a fetch: %v", err)
			}
			return segment.Range{First: 1, Count: 10}, nil
		})
	})
	n := w.name(s, "orders")
	if r, err := n.Reserve(t.Context(), 5); !errors.Is(err, firn.ErrClosed) {
		t.Errorf("%v, %v", r, err)
	}
	if s := n.State(); s.Left != 0 || !errors.Is(s.Err, firn.ErrClosed) {
		t.Errorf("%+v", s)
	}
}

// A nil pointer is what a call returned whose error was ignored.
func TestNoStoreOrSourceIsAnError(t *testing.T) {
	for _, s := range []store.Store{nil, (*memstore.Store)(nil)} {
		for what, call := range map[string]func() error{
			"ReadCounter":  func() error { _, err := segment.ReadCounter(t.Context(), s, "orders"); return err },
			"RaiseCounter": func() error { _, err := segment.RaiseCounter(t.Context(), s, "orders", 1, whole); return err },
			"New":          func() error { _, err := segment.New(segment.Config{Store: s}); return err },
			"NewSource":    func() error { _, err := segment.NewSource(segment.Config{Store: s}); return err },
		} {
			if err := call(); !errors.Is(err, firn.ErrSyntax) || s != nil && !strings.Contains(err.Error(), "is a nil *memstore.Store") {
				t.Errorf("%s of %T: %v", what, s, err)
			}
		}
	}
	for _, source := range []segment.Source{sourceFunc(nil), (*stingy)(nil)} {
		if _, err := segment.New(segment.Config{Source: source}); !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "is a nil") {
			t.Errorf("New of %T: %v", source, err)
		}
	}
}
