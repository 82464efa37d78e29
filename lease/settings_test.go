package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/memstore"
)

// Each setting with the last value on either side of its limits.
func TestTheLimitsOfTheSettings(t *testing.T) {
	w := newWorld(t)
	worker := func(n int64) func(*SlotsConfig) { return func(c *SlotsConfig) { c.Pinned = &n } }
	for _, c := range []struct {
		change func(*SlotsConfig)
		want   string // the setting that is refused
	}{
		{func(c *SlotsConfig) { c.Pool = strings.Repeat("x", 64) }, ""},
		{func(c *SlotsConfig) { c.Pool = strings.Repeat("x", 65) }, "pool"},
		{func(c *SlotsConfig) { c.Datacenter = 1 }, ""},
		{func(c *SlotsConfig) { c.Datacenter = 2 }, "datacenter 2 is out of range: 0 to 1 are allowed (layout 41/1/4/12)"},
		{func(c *SlotsConfig) { c.Datacenter = -1 }, "datacenter"},
		{worker(15), ""},
		{worker(16), "worker 16 is out of range: 0 to 15 are allowed (layout 41/1/4/12)"},
		{worker(0), ""},
		{worker(-1), "worker"},
		{func(c *SlotsConfig) { c.Look = maxWindow }, ""},
		{func(c *SlotsConfig) { c.Look = maxWindow + 1 }, "look 720h0m0.000000001s is out of range: 1ns to 720h0m0s"},
		{func(c *SlotsConfig) { c.Look = 1 }, ""},
		{func(c *SlotsConfig) { c.Look = -1 }, "look"},
		{func(c *SlotsConfig) { c.Patience = maxWindow }, ""},
		{func(c *SlotsConfig) { c.Patience = maxWindow + 1 }, "patience"},
		{func(c *SlotsConfig) { c.Patience = -1 }, "patience -1ns is out of range: 1ns to 720h0m0s"},
		{func(c *SlotsConfig) { c.Tolerance = maxWindow }, ""},
		{func(c *SlotsConfig) { c.Tolerance = maxWindow + 1 }, "tolerance"},
		{func(c *SlotsConfig) { c.Tolerance = -1 }, "tolerance -1ns is out of range: 1ns to 720h0m0s"},
		{func(c *SlotsConfig) { c.Strict = maxStrict }, ""},
		{func(c *SlotsConfig) { c.Strict = maxStrict + 1 }, "strict wait 1440h0m0.000000001s is out of range: 0s to 1440h0m0s"},
		{func(c *SlotsConfig) { c.Strict = -1 }, "strict wait"},
		{func(c *SlotsConfig) { c.Store = nil }, "SlotsConfig.Store is required"},
		{func(c *SlotsConfig) { c.Store, c.Strict = w.mem, 1 }, "strict pool needs a store with a clock"},
		{func(c *SlotsConfig) { c.Store = w.mem }, ""},
		{func(c *SlotsConfig) { c.Strict, c.PinnedAhead = 1, true }, "in a strict pool no id may carry a time ahead"},
		{func(c *SlotsConfig) { c.PinnedAhead = true }, ""},
	} {
		cfg := SlotsConfig{Store: remote{w.store, w.time.Wall, nil}, Layout: layout("41/1/4/12"), Time: w.time}
		c.change(&cfg)
		_, err := NewSlots(cfg)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	_, err := NewSlots(SlotsConfig{Pool: "a/b", Look: -1})
	for _, what := range []string{"pool", "look", "Store"} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v does not tell that the %s is wrong as well", err, what)
		}
	}
	for window, want := range map[time.Duration]string{
		minWindow: "", minWindow - 1: "window 99.999999ms is out of range: 100ms to 720h0m0s", maxWindow: "", maxWindow + 1: "window", -1: "window",
	} {
		_, err := start(context.Background(), Fixed(1), Config{Window: window, Generator: firn.Config{Time: w.time}})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestAMistakeNamesTheFieldOfTheConfig(t *testing.T) {
	worker, beyond := int64(7), int64(1024)
	for field, cfg := range map[string]Config{
		"Window":     {Window: time.Millisecond},
		"Strict":     {Window: 3 * time.Minute, Slots: SlotsConfig{Strict: time.Second}},
		"Pool":       {Slots: SlotsConfig{Pool: "a/b"}},
		"Pinned":     {Slots: SlotsConfig{Pinned: &beyond}},
		"Datacenter": {Generator: firn.Config{Datacenter: 1}},
		"Ahead":      {Generator: firn.Config{Ahead: 10_000 * time.Hour}},
		"Clock":      {Window: 3 * time.Minute, Slots: SlotsConfig{Strict: time.Hour}, Generator: firn.Config{Clock: firn.ClockVirtual}},
		"Rollback":   {Slots: SlotsConfig{Pinned: &worker}, Generator: firn.Config{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}}},
	} {
		err := cfg.Check()
		var (
			outside *firn.RangeError
			syntax  *firn.SyntaxError
		)
		if errors.As(err, &outside) && outside.Field == field || errors.As(err, &syntax) && syntax.Field == field {
			continue
		}
		t.Errorf("%v does not name %s", err, field)
	}
}

func TestALookOfALeaseIsLongerThanNothing(t *testing.T) {
	for look, want := range map[time.Duration]string{-1: "look -1ns is out of range: 1ns to 720h0m0s", 1: "", maxWindow: "", maxWindow + 1: "look"} {
		_, err := start(context.Background(), Fixed(1), Config{Look: look})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTheDefaultsOfTheSettings(t *testing.T) {
	s := must(NewSlots(SlotsConfig{Store: memstore.New(nil)})).cfg
	host := must(os.Hostname())
	if s.Pool != "default" || s.Layout != firn.DefaultLayout() || s.Datacenter != 0 || s.Tolerance != 10*time.Second ||
		s.Look != 3*time.Second || s.Patience != 2*time.Second || s.Host != host || s.PID != os.Getpid() {
		t.Errorf("%+v", s)
	}
	if a, b := s.Random(), s.Random(); a == b {
		t.Errorf("it draws %d twice", a)
	}
	if off := time.Until(s.Time.Wall()).Abs(); off > time.Minute {
		t.Errorf("its clock is %v off", off)
	}
	own := must(NewSlots(SlotsConfig{Store: memstore.New(nil), Pool: "p", Host: "h", PID: 7, Random: func() uint64 { return 4 }})).cfg
	if own.Pool != "p" || own.Host != "h" || own.PID != 7 || own.Random() != 4 {
		t.Errorf("%+v", own)
	}
	l := must(start(context.Background(), Fixed(1), Config{Look: time.Hour}))
	if l.cfg.Window != 5*time.Minute || l.cfg.Look != 75*time.Second || l.window != 300_001 || l.cfg.Generator.Layout != firn.DefaultLayout() {
		t.Errorf("%+v", l.cfg)
	}
	if l := must(start(context.Background(), Fixed(1), Config{})); l.cfg.Look != 3*time.Second {
		t.Errorf("it looks every %v", l.cfg.Look)
	}
	// A unit longer than the window: a look is a quarter of that.
	long := must(start(context.Background(), Fixed(1), Config{Look: time.Hour, Window: time.Second, Generator: firn.Config{Layout: layout("35/0/10/12,unit=1m")}}))
	if long.cfg.Look != 15*time.Second || long.window != 1 {
		t.Errorf("%v, a window of %d units", long.cfg.Look, long.window)
	}
}

// What [Open] hands to its slots.
func TestOpenPassesItsSettingsToSlots(t *testing.T) {
	w := newWorld(t)
	var warned strings.Builder
	for i, c := range []struct{ look, slots, want time.Duration }{{time.Second, 0, 3 * time.Second}, {time.Second, 2 * time.Second, 2 * time.Second}, {0, 2 * time.Second, 2 * time.Second}, {0, 0, 3 * time.Second}, {4 * time.Second, 0, 0}} {
		l, err := Open(context.Background(), Config{Look: c.look, Log: logTo(&warned),
			Slots:     SlotsConfig{Store: w.mem, Look: c.slots, Pool: fmt.Sprint("p", i)},
			Generator: firn.Config{Time: w.time, Layout: layout("41/1/4/12"), Datacenter: 1, Random: func() uint64 { return 3 }}})
		if c.want == 0 {
			if !errors.Is(err, firn.ErrRange) || !strings.Contains(err.Error(), "SlotsConfig.Look") {
				t.Errorf("a look of %v, of %v by its slots: %v", c.look, c.slots, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		s := l.source.(*Slots).cfg
		if s.Look != c.want || s.Layout != l.cfg.Generator.Layout || s.Datacenter != 1 || s.Time != l.cfg.Generator.Time || s.Random() != 3 || l.cfg.Generator.Random() != 3 || s.Log != l.cfg.Log {
			t.Errorf("%+v", s)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(warned.String(), "worker leased") || !strings.Contains(warned.String(), "fence=2026-11-20T12:05:0") {
		t.Errorf("an operator is told %s", warned.String())
	}
	if _, err := Open(context.Background(), Config{}); err == nil || !strings.Contains(err.Error(), "SlotsConfig.Store is required") {
		t.Errorf("without a store: %v", err)
	}
}

// Leases that the slots of a pool, or a number that is given, cannot keep.
func TestALeaseThatItsSourceCannotKeepIsRefused(t *testing.T) {
	w := newWorld(t)
	one := int64(1)
	change := firn.Rollback{firn.SwitchWorker()}
	strict := func(c *Config) {
		w.shared(c)
		c.Window, c.Slots.Tolerance, c.Slots.Strict = time.Minute, 2*time.Second, 80*time.Second
	}
	for want, changes := range map[string][]func(*Config){
		"the worker is fixed": {func(c *Config) {
			c.Slots.Pinned, c.Generator.Rollback, c.Generator.Clock = &one, change, firn.ClockWall
		}},
		"another worker can be used after 1m22s only": {strict, func(c *Config) { c.Generator.Rollback, c.Generator.Clock = change, firn.ClockWall }},
		"in a strict pool ids follow a clock":         {strict, func(c *Config) { c.Generator.Clock = firn.ClockVirtual }},
		"look 4s is out of range: 1ns to 3s":          {func(c *Config) { c.Look = 4 * time.Second }},
	} {
		if _, err := w.try(changes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err := start(context.Background(), Fixed(1), Config{Generator: firn.Config{Time: w.time, Clock: firn.ClockWall, Rollback: change}})
	if !errors.Is(err, errNoOther) {
		t.Errorf("a number that is given: %v", err)
	}
	if c := w.store.Counts(); c.CompareAndSwap+c.Get+c.List != 0 {
		t.Errorf("the store was touched: %+v", c)
	}
	w.start(strict)
	if !slices.Contains(change, firn.SwitchWorker()) {
		t.Error("policies are not compared")
	}
}
