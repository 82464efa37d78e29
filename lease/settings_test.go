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

func TestAClockErrorSaysWhichClockIsAhead(t *testing.T) {
	for off, want := range map[time.Duration]string{
		time.Hour:  "the clock here is 1h0m0s ahead of the store's: 2026-11-20T13:00:00Z here, 2026-11-20T12:00:00Z there, 10s are tolerated; correct the one that is wrong",
		-time.Hour: "the clock here is 1h0m0s behind the store's: 2026-11-20T11:00:00Z here, 2026-11-20T12:00:00Z there, 10s are tolerated; correct the one that is wrong",
	} {
		if got := (&ClockError{Here: noon.Add(off), There: noon, Whose: "the store's", Tolerance: 10 * time.Second}).Error(); got != want {
			t.Errorf("%s\nwant: %s", got, want)
		}
	}
}

// Each setting with the last value on either side of its limits.
func TestTheLimitsOfTheSettings(t *testing.T) {
	w := newWorld(t)
	worker := func(n int64) func(*Config) { return func(c *Config) { c.Pinned = &n } }
	for _, c := range []struct {
		change func(*Config)
		want   string // the setting that is refused
	}{
		{func(c *Config) { c.Pool = strings.Repeat("x", 64) }, ""},
		{func(c *Config) { c.Pool = strings.Repeat("x", 65) }, "pool"},
		{func(c *Config) { c.Generator.Datacenter = 1 }, ""},
		{func(c *Config) { c.Generator.Datacenter = 2 }, "datacenter 2 is out of range: 0 to 1 are allowed (layout 41/1/4/12)"},
		{func(c *Config) { c.Generator.Datacenter = -1 }, "datacenter"},
		{worker(15), ""},
		{worker(16), "worker 16 is out of range: 0 to 15 are allowed (layout 41/1/4/12)"},
		{worker(0), ""},
		{worker(-1), "worker"},
		{func(c *Config) { c.Look = maxWindow }, ""},
		{func(c *Config) { c.Look = maxWindow + 1 }, "look 720h0m0.000000001s is out of range: 25ms to 720h0m0s"},
		{func(c *Config) { c.Look = minLook }, ""},
		{func(c *Config) { c.Look = minLook - 1 }, "look 24.999999ms is out of range: 25ms to 720h0m0s"},
		{func(c *Config) { c.Look = -1 }, "look"},
		{func(c *Config) { c.Tolerance = maxWindow }, ""},
		{func(c *Config) { c.Tolerance = maxWindow + 1 }, "tolerance"},
		{func(c *Config) { c.Tolerance = -1 }, "tolerance -1ns is out of range: 1ns to 720h0m0s"},
		{func(c *Config) { c.Strict = maxStrict }, ""},
		{func(c *Config) { c.Strict = maxStrict + 1 }, "strict wait 1440h0m0.000000001s is out of range: 0s to 1440h0m0s"},
		{func(c *Config) { c.Strict = -1 }, "strict wait"},
		{func(c *Config) { c.Store = nil }, "Config.Store is required"},
		{func(c *Config) { c.Store, c.Strict = w.mem, 1 }, "strict pool needs a store with a clock"},
		{func(c *Config) { c.Store = w.mem }, ""},
		{func(c *Config) { c.Strict, c.PinnedAhead = 1, true }, "in a strict pool no id may carry a time ahead"},
		{func(c *Config) { c.PinnedAhead = true }, "only a fixed worker, in Go Config.Pinned, can be"},
		{func(c *Config) { c.Pinned, c.PinnedAhead = new(int64), true }, ""},
	} {
		cfg := Config{Store: remote{w.store, w.time.Wall, nil}, Generator: firn.Config{Layout: layout("41/1/4/12"), Time: w.time}}
		c.change(&cfg)
		_, err := newPoolSource(cfg)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	_, err := newPoolSource(Config{Pool: "a/b", Look: -1})
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
		"Strict":     {Window: 3 * time.Minute, Strict: time.Second},
		"Pool":       {Pool: "a/b"},
		"Pinned":     {Pinned: &beyond},
		"Datacenter": {Generator: firn.Config{Datacenter: 1}},
		"Ahead":      {Generator: firn.Config{Ahead: 10_000 * time.Hour}},
		"Clock":      {Window: 3 * time.Minute, Strict: time.Hour, Generator: firn.Config{Clock: firn.ClockVirtual}},
		"Rollback":   {Pinned: &worker, Generator: firn.Config{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker()}}},
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

func TestAMistakeThatOpenFindsSaysThePackageAndWhereTheFieldIs(t *testing.T) {
	w := newWorld(t)
	for want, change := range map[string]func(*Config){
		"lease: Config.Window: window 1ms is out of range: 100ms to 720h0m0s are allowed": func(c *Config) { c.Window = time.Millisecond },
		"lease: Config.Look: look -1ns":                    func(c *Config) { c.Look = -1 },
		"lease: Config.Tolerance: tolerance -1ns":          func(c *Config) { c.Tolerance = -1 },
		"lease: Config.Pool: ":                             func(c *Config) { c.Pool = "a/b" },
		"lease: Config.Strict: ":                           func(c *Config) { c.Strict = -1 },
		"lease: Config.Store is required":                  func(c *Config) { c.Store = nil },
		"lease: Config.Generator.Datacenter: datacenter 1": func(c *Config) { c.Generator.Datacenter = 1 },
		"lease: Config.Generator.Ahead: ahead 10000h0m0s":  func(c *Config) { c.Generator.Ahead = 10_000 * time.Hour },
	} {
		cfg := Config{Store: w.mem}
		change(&cfg)
		if _, err := Open(context.Background(), cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	// Config.Check leaves the package out: a program with settings of its own has other names for them.
	if err := (Config{Window: time.Millisecond}).Check(); err == nil || !strings.HasPrefix(err.Error(), "window 1ms") {
		t.Error(err)
	}
}

func TestCheckReportsTheMistakesOfThePoolAndOfTheGeneratorTogether(t *testing.T) {
	for _, cfg := range []Config{
		{Pool: "a/b", Window: time.Millisecond, Look: -1, Generator: firn.Config{Ahead: 10_000 * time.Hour, Datacenter: 1}},
		{Window: time.Millisecond, Generator: firn.Config{Ahead: 10_000 * time.Hour}},
	} {
		want := []string{"window", "ahead"}
		if cfg.Pool != "" {
			want = append(want, "pool", "look", "datacenter 1 is")
		}
		err := cfg.Check()
		for _, what := range want {
			if err == nil || strings.Count(err.Error(), what) != 1 {
				t.Errorf("%v does not name the %s once", err, what)
			}
		}
		if err != nil && strings.Count(err.Error(), "\n")+1 != len(want) {
			t.Errorf("%v: more than %d mistakes", err, len(want))
		}
	}
}

func TestALookOfALeaseIsLongerThanNothing(t *testing.T) {
	for look, want := range map[time.Duration]string{
		-1: "look -1ns is out of range: 25ms to 1m15s are allowed (a quarter of the window, or the default)", minLook - 1: "look", minLook: "", 75 * time.Second: "", 75*time.Second + 1: "look",
	} {
		_, err := start(context.Background(), Fixed(1), Config{Look: look})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A record has the grace alone: an equal one must mean that members wait as long for a call. It must cover the time
// until the next look begins, the call that hangs, the three after it, and the waits between them.
func TestMembersWithTheSameGraceAreAsPatient(t *testing.T) {
	patient := map[time.Duration]time.Duration{}
	for _, look := range []time.Duration{minLook, minLook + 1, 100 * time.Millisecond, 499 * time.Millisecond, 500 * time.Millisecond, 501 * time.Millisecond, 3 * time.Second, time.Minute, maxWindow} {
		s := must(newPoolSource(Config{Store: memstore.New(nil), Look: look}))
		grace, p := s.rules.grace, patience(look)
		if other, ok := patient[grace]; ok && other != p {
			t.Errorf("members with a grace of %v wait for %v and for %v", grace, other, p)
		}
		if patient[grace] = p; grace < max(look, p)+4*p+50*time.Millisecond {
			t.Errorf("a look every %v: a grace of %v", look, grace)
		}
	}
}

func TestTheDefaultsOfTheSettings(t *testing.T) {
	s := must(newPoolSource(Config{Store: memstore.New(nil)})).cfg
	host := must(os.Hostname())
	if s.Pool != "default" || s.Generator.Layout != firn.DefaultLayout() || s.Generator.Datacenter != 0 || s.Tolerance != 10*time.Second ||
		s.Look != 3*time.Second || s.Host != host || s.PID != os.Getpid() {
		t.Errorf("%+v", s)
	}
	if a, b := s.Generator.Random(), s.Generator.Random(); a == b {
		t.Errorf("it draws %d twice", a)
	}
	if off := time.Until(s.Generator.Time.Wall()).Abs(); off > time.Minute {
		t.Errorf("its clock is %v off", off)
	}
	own := must(newPoolSource(Config{Store: memstore.New(nil), Pool: "p", Host: "h", PID: 7, Generator: firn.Config{Random: func() uint64 { return 4 }}})).cfg
	if own.Pool != "p" || own.Host != "h" || own.PID != 7 || own.Generator.Random() != 4 {
		t.Errorf("%+v", own)
	}
	l := must(start(context.Background(), Fixed(1), Config{Look: time.Minute}))
	if l.cfg.Window != 5*time.Minute || l.cfg.Look != time.Minute || l.window != 300_001 || l.cfg.Generator.Layout != firn.DefaultLayout() {
		t.Errorf("%+v", l.cfg)
	}
	if l := must(start(context.Background(), Fixed(1), Config{})); l.cfg.Look != 3*time.Second {
		t.Errorf("it looks every %v", l.cfg.Look)
	}
	for _, look := range []time.Duration{0, 3 * time.Second} {
		if l := must(start(context.Background(), Fixed(1), Config{Window: time.Second, Look: look})); l.cfg.Look != 250*time.Millisecond {
			t.Errorf("with a window of a second it looks every %v", l.cfg.Look)
		}
	}
	// A unit longer than the window: a look is a quarter of that.
	long := must(start(context.Background(), Fixed(1), Config{Look: 15 * time.Second, Window: time.Second, Generator: firn.Config{Layout: layout("35/0/10/12,unit=1m")}}))
	if long.cfg.Look != 15*time.Second || long.window != 1 {
		t.Errorf("%v, a window of %d units", long.cfg.Look, long.window)
	}
}

// What [Open] hands to its slots.
func TestOpenPassesItsSettingsToSlots(t *testing.T) {
	w := newWorld(t)
	var warned strings.Builder
	for i, c := range []struct{ look, want time.Duration }{{2 * time.Second, 2 * time.Second}, {0, 3 * time.Second}} {
		l, err := Open(context.Background(), Config{Look: c.look, Log: logTo(&warned), Store: w.mem, Pool: fmt.Sprint("p", i),
			Generator: firn.Config{Time: w.time, Layout: layout("41/1/4/12"), Datacenter: 1, Random: func() uint64 { return 3 }}})
		if err != nil {
			t.Fatal(err)
		}
		s := l.source.(*poolSource).cfg
		if s.Look != c.want || s.Generator.Layout != l.cfg.Generator.Layout || s.Generator.Datacenter != 1 || s.Generator.Time != l.cfg.Generator.Time || s.Generator.Random() != 3 || l.cfg.Generator.Random() != 3 {
			t.Errorf("%+v", s)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(warned.String(), `msg="worker leased" pool=p0 worker=`) || !strings.Contains(warned.String(), "fence=2026-11-20T12:05:0") {
		t.Errorf("the log has %s", warned.String())
	}
	slots := must(newPoolSource(Config{Store: w.mem, Pool: "p", Look: time.Second, Generator: firn.Config{Time: w.time}}))
	if _, err := Keep(context.Background(), slots, Config{Look: 2 * time.Second, Generator: firn.Config{Time: w.time}}); !errors.Is(err, firn.ErrRange) || !strings.Contains(err.Error(), "look 2s") {
		t.Errorf("a holder looks less often than its pool demands: %v", err)
	}
	if _, err := Open(context.Background(), Config{}); err == nil || !strings.Contains(err.Error(), "Config.Store is required") {
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
		c.Window, c.Tolerance, c.Strict = time.Minute, 2*time.Second, 80*time.Second
	}
	for want, changes := range map[string][]func(*Config){
		"the worker is fixed": {func(c *Config) {
			c.Pinned, c.Generator.Rollback, c.Generator.Clock = &one, change, firn.ClockWall
		}},
		"another worker can be used after 1m22s only": {strict, func(c *Config) { c.Generator.Rollback, c.Generator.Clock = change, firn.ClockWall }},
		"in a strict pool ids follow a clock":         {strict, func(c *Config) { c.Generator.Clock = firn.ClockVirtual }},
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

// No setting is ignored or overwritten in silence.
func TestSettingsWithoutEffectAreRefused(t *testing.T) {
	w := newWorld(t)
	one := int64(1)
	for name, cfg := range map[string]Config{
		"Store": {Store: w.mem}, "Pool": {Pool: "p"}, "Tolerance": {Tolerance: 1}, "Strict": {Strict: 1},
		"Pinned": {Pinned: &one}, "PinnedAhead": {PinnedAhead: true}, "Host": {Host: "h"}, "PID": {PID: 1},
	} {
		if _, err := Keep(context.Background(), Fixed(1), cfg); !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), name) {
			t.Errorf("Keep with %s: %v", name, err)
		}
	}
	for _, g := range []firn.Config{
		{Switch: func(context.Context, firn.Tick) (firn.Grant, error) { return firn.Grant{}, nil }},
		{Retired: func(int64, int64, firn.Tick) {}},
		{AtFence: func(context.Context, *firn.FenceError) error { return nil }},
		{Unfenced: true},
	} {
		if _, err := Open(context.Background(), Config{Store: w.mem, Generator: g}); !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "Retired") {
			t.Errorf("Open with functions of a lease: %v", err)
		}
	}
}

func TestANilStoreOrSourceIsAnErrorThatSaysSo(t *testing.T) {
	ctx := context.Background()
	for name, call := range map[string]func() error{
		"source":       func() error { _, err := Keep(ctx, nil, Config{}); return err },
		"Store":        func() error { _, err := Open(ctx, Config{}); return err },
		"store":        func() error { _, err := Inspect(ctx, nil, "default"); return err },
		"store ":       func() error { _, err := Reclaim(ctx, nil, "default", 0, 0, time.Time{}); return err },
		"required":     func() error { _, err := Pools(ctx, nil); return err },
		"Config.Store": func() error { _, err := NewSource(Config{}); return err },
		"function":     func() error { _, err := Keep(ctx, FixedFunc(nil), Config{}); return err },
		"store is":     func() error { _, err := Relax(ctx, nil, "default"); return err },
	} {
		if err := call(); !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A program may build its next Config in the same slice.
func TestAChainIsTheCallersNoMore(t *testing.T) {
	w := newWorld(t)
	chain := firn.Rollback{firn.RunAhead(5)}
	l := w.start(func(c *Config) { c.Generator.Clock, c.Generator.Rollback = firn.ClockWall, chain })
	chain[0] = firn.RunAhead(5000)
	for of, g := range map[string]firn.Config{"lease": l.cfg.Generator, "slots": l.source.(*poolSource).cfg.Generator} {
		if lead := g.Lead(); lead > time.Second {
			t.Errorf("the lead of the %s became %v", of, lead)
		}
	}
}

// A program that does not look at the error of its store's Open has such a pointer.
func TestAStoreThatIsANilPointerIsRefused(t *testing.T) {
	for _, strict := range []time.Duration{0, time.Hour} { // in a strict pool the store is asked for its clock
		_, err := Open(t.Context(), Config{Store: (*memstore.Store)(nil), Strict: strict})
		if !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), "lease: Config.Store is a nil *memstore.Store") || strings.Contains(err.Error(), "clock") {
			t.Error(err)
		}
	}
}
