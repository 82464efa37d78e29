package settings

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/lease"
)

// snowflake makes the numbers of a leased generator.
var snowflake = &Kind{
	Name: "snowflake", Source: Generator, Numeric: true, fixed: []string{"pool"}, settings: []any{Pooled{}, Veiled{}, Prefixed{}},
	Makes: func(n Namespace) string { return "numbers of layout " + decode.Label(n.layout(Mistakes{})) },
	Number: func(n Namespace) func(firn.ID) (decode.Contents, error) {
		layout := n.layout(Mistakes{})
		return func(id firn.ID) (decode.Contents, error) {
			r, err := decode.ID(id, "", layout)
			c := r.Contents(n.KindName())
			if n.Clock != firn.ClockVirtual.String() && r.FarAhead(time.Now()) { // wrong veils have any time
				c.Fields = append(c.Fields, decode.Field{Name: "note", Value: "the time is in the future: most likely this namespace did not make the id"})
			}
			return c, err
		}
	},
	check: Namespace.checkLease,
}

// Pooled has the settings of a pool's generator. They must be equal in all namespaces of the pool.
type Pooled struct {
	Pool       string   `yaml:"pool" flag:"pool" default:"default" help:"pool of processes whose ids never collide; all use the same layout. Ids of two pools may be equal"`
	Layout     string   `yaml:"layout" flag:"layout" default:"firn" help:"layout: a preset (see firn layout) or bits, such as 41/0/10/12"`
	Unit       string   `yaml:"unit" flag:"unit" unset:"the layout's" example:"1ms" help:"length of a tick, such as 1ms"`
	Epoch      string   `yaml:"epoch" flag:"epoch" unset:"the layout's" example:"2025-01-01" help:"start of the first tick: RFC 3339, a date or Unix milliseconds"`
	Clock      string   `yaml:"clock" flag:"clock" default:"steady" allowed:"steady, wall, virtual" help:"where time comes from: steady, wall or virtual"`
	ClockFrom  string   `yaml:"clock_from" flag:"clock-from" config:"From" unset:"the present" is:"time" allowed:"RFC 3339, a date or Unix milliseconds" example:"2025-01-01" help:"with clock virtual: where its times begin, if the fence of the worker is not later; in Redis, MySQL and PostgreSQL not before the pool was created, in etcd and ZooKeeper not before the present"`
	Rollback   []string `yaml:"rollback" flag:"rollback" unset:"refuse" example:"[wait 500ms, history 2000, switch, refuse]" help:"with clock wall: what to do when the clock goes back, such as \"wait 500ms, history 2000, switch, refuse\""`
	Ahead      Duration `yaml:"ahead" flag:"ahead" unset:"10ms with clock steady" is:"duration" allowed:"up to 8760h, or a negative one for not at all" example:"10ms" help:"how far ids may run ahead of the clock, without strict 10s at most; negative for not at all"`
	Lag        Duration `yaml:"lag" flag:"lag" unset:"the clock is read for each id" is:"duration" allowed:"100us to 1s, or 0" example:"1ms" help:"how old a clock reading may be when it is used for an id, so that most ids need none; faster, but times in ids may lag by about so much, and longer if the process stands still"`
	Start      string   `yaml:"start" flag:"start" default:"carry" allowed:"carry, zero, random" help:"where the sequence begins in a new tick: carry, zero or random"`
	Window     Duration `yaml:"window" flag:"window" unset:"5m" is:"duration" allowed:"up to 720h" example:"5m" help:"how far ahead the fence is kept. Store outages of up to half of it, less 3.5s (with strict 43.5s), cause no errors; with strict it is at least 160s and four units of the layout"`
	Strict     Duration `yaml:"strict" flag:"strict" unset:"no wait" is:"duration" allowed:"up to 1440h, or 0 for no wait" example:"5m10s" help:"how long a claimed worker waits before use, so that ids stay unique even if the store loses data: at least the longest window in the pool, the lead, 40s and two units of the layout together (by default the window plus 40.014s); the same for all processes of the pool; needs Redis, MySQL or PostgreSQL"`
	Worker     *int64   `yaml:"worker" flag:"worker" config:"Pinned" unset:"any that is free" is:"worker number" allowed:"whole numbers from 0 to what the layout has" example:"0" help:"use only this worker, and spares"`
	Spares     []int64  `yaml:"spares" flag:"spares" unset:"none" is:"list of workers" allowed:"whole numbers from 0 to what the layout has" example:"[507, 1007]" help:"with worker: use these workers while it is held, in this order; the policy switch needs them then"`
	Datacenter int64    `yaml:"datacenter" flag:"datacenter" default:"0" is:"datacenter number" allowed:"whole numbers from 0 to what the layout has" example:"0" help:"datacenter number, in layouts that have one"`
}

// PoolName returns the name of the pool.
func (n Namespace) PoolName() string { return n.filled().Pool }

// LayoutText returns the layout as in the configuration, or the default one.
func (n Namespace) LayoutText() string { return n.filled().Layout }

// Layouts returns the layouts of namespaces, by pool and namespace.
func (c Config) Layouts() map[string]map[string]firn.Layout {
	pools := map[string]map[string]firn.Layout{}
	for name, n := range c.Namespaces {
		cfg, err := n.Lease()
		if !n.Generated() || err != nil { // then it was not read
			continue
		}
		if pools[cfg.Pool] == nil {
			pools[cfg.Pool] = map[string]firn.Layout{}
		}
		pools[cfg.Pool][name] = cfg.Generator.Layout
	}
	return pools
}

// Lease returns the configuration of the lease without its store.
func (n Namespace) Lease() (lease.Config, error) {
	found := Mistakes{}
	cfg := n.lease(found)
	return cfg, found.Join()
}

func (n Namespace) lease(found Mistakes) lease.Config {
	n = n.filled()
	cfg := lease.Config{Pool: n.Pool, Pinned: n.Worker, Spares: n.Spares, Window: time.Duration(n.Window), Strict: time.Duration(n.Strict)}
	g := &cfg.Generator
	g.Datacenter, g.Ahead, g.Lag = n.Datacenter, time.Duration(n.Ahead), time.Duration(n.Lag)
	g.Layout = n.layout(found)
	g.Clock, found["clock"] = firn.ParseClock(n.Clock)
	g.From, found["clock_from"] = n.clockFrom(g.Layout)
	g.Start, found["start"] = firn.ParseSequenceStart(n.Start)
	g.Rollback, found["rollback"] = firn.ParseRollback(strings.Join(n.Rollback, ", "))
	return cfg
}

// clockFrom returns where the virtual clock begins; the zero time if that is not set.
func (n Namespace) clockFrom(l firn.Layout) (time.Time, error) {
	if n.ClockFrom == "" {
		return time.Time{}, nil
	}
	from, err := firn.ParseEpoch(n.ClockFrom)
	syntax, ok := errors.AsType[*firn.SyntaxError](err)
	switch {
	case ok:
		syntax.What = "time"
	case err == nil && n.Clock != firn.ClockVirtual.String():
		err = firn.NewSyntaxError("clock_from", n.ClockFrom, "only clock virtual begins at a time of its own, and the clock is "+n.Clock+": choose virtual, or leave this out")
	case err == nil:
		if _, err = l.Tick(from); err != nil {
			return time.Time{}, err
		}
	}
	return from, err
}

// layout returns the layout; the default one after a mistake.
func (n Namespace) layout(found Mistakes) firn.Layout {
	n = n.filled()
	named, err := decode.ParseLayout(n.Layout)
	if found["layout"] = err; err != nil {
		named = firn.DefaultLayout()
	}
	_, found["unit"] = decode.Layout(named.String(), n.Unit, "")
	_, found["epoch"] = decode.Layout(named.String(), "", n.Epoch)
	l, err := decode.Layout(named.String(), n.Unit, n.Epoch)
	if err != nil {
		return named
	}
	return l
}

// checkLease adds the mistakes that package lease finds. Its check makes no call of a store.
func (n Namespace) checkLease(found Mistakes) {
	cfg := n.lease(found)
	if found["clock"] != nil || found["rollback"] != nil { // the policies depend on the clock: one mistake is enough
		cfg.Generator.Clock, cfg.Generator.Rollback = firn.ClockSteady, nil
	}
	found.place(n.Of(), cfg.Check())
	if most := n.Veil.most(); most > 0 && found["veil"] == nil && found["layout"] == nil && found["unit"] == nil && found["epoch"] == nil {
		now := time.Now()
		if from := cfg.Generator.From; !from.IsZero() {
			now = from
		}
		found["veil"] = narrow(cfg.Generator.Layout, most, now)
	}
}

// narrow returns an error if ids of a time are greater than a veil has room for.
func narrow(l firn.Layout, most firn.ID, now time.Time) error {
	tick, err := l.Tick(now)
	if err != nil {
		return nil // the layout begins later, or has ended: other checks say so
	}
	id, err := l.Compose(firn.Parts{Tick: tick})
	if err != nil || id <= most {
		return err
	}
	return fmt.Errorf("ids of layout %s have %d bits now, and the veil has room for %d: give it more bits, or choose a layout with fewer, such as js53", l.Bits(), bits.Len64(uint64(id)), bits.Len64(uint64(most)))
}
