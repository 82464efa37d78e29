package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// Namespace is the settings of one namespace; what is empty has its default.
type Namespace struct {
	Kind string `yaml:"kind"` // one of kinds; default: snowflake

	// Snowflake and serial.
	Pool       string   `yaml:"pool"`
	Layout     string   `yaml:"layout"`
	Unit       string   `yaml:"unit"`
	Epoch      string   `yaml:"epoch"`
	Clock      string   `yaml:"clock"`
	Rollback   []string `yaml:"rollback"`
	Ahead      string   `yaml:"ahead"`
	Start      string   `yaml:"start"`
	Window     string   `yaml:"window"`
	Strict     string   `yaml:"strict"`
	Worker     *int64   `yaml:"worker"`
	Datacenter int64    `yaml:"datacenter"`

	// Serial, and zone also number.
	Width int    `yaml:"width"`
	Check string `yaml:"check"`
	Zone  string `yaml:"zone"`
	// Segment, and from also sequence.
	MinStep int64   `yaml:"min_step"`
	MaxStep int64   `yaml:"max_step"`
	Target  string  `yaml:"target"`
	From    firn.ID `yaml:"from"`
	Offset  int64   `yaml:"offset"`
	Stride  int64   `yaml:"stride"`
	// Number.
	Template string `yaml:"template"`
	// Uuid.
	Version int `yaml:"version"`

	Veil   *Veil  `yaml:"veil"`   // of 64-bit kinds
	Prefix string `yaml:"prefix"` // of all but numbers
}

// CheckName refuses names that could not stand in a path or a key.
func CheckName(name string) error { return store.CheckName("namespace", name) }

// check returns the mistakes by key.
func (n Namespace) check() map[string]error {
	found := map[string]error{}
	n.checkKind(found)
	defer func() {
		maps.DeleteFunc(found, func(_ string, err error) bool { return err == nil })
	}()
	if !n.Generated() {
		return found // no generator
	}
	if n.Pool != "" {
		found["pool"] = store.CheckName("pool", n.Pool)
	}
	layout, err := firn.ParseLayout(n.LayoutText())
	found["layout"] = err
	if err != nil {
		layout = firn.DefaultLayout()
	}
	if n.Unit != "" {
		_, found["unit"] = firn.ParseUnit(n.Unit)
	}
	if n.Epoch != "" {
		_, found["epoch"] = decode.Layout(n.LayoutText(), "", n.Epoch)
	}
	if n.Worker != nil && (*n.Worker < 0 || *n.Worker > layout.MaxWorker()) {
		found["worker"] = firn.NewRangeError("worker", *n.Worker, 0, layout.MaxWorker(), "layout "+layout.Bits())
	}
	if d := n.Datacenter; d < 0 || d > layout.MaxDatacenter() {
		found["datacenter"] = firn.NewRangeError("datacenter", d, 0, layout.MaxDatacenter(), "layout "+layout.Bits())
	}
	if n.Clock != "" {
		_, found["clock"] = firn.ParseClock(n.Clock)
	}
	if n.Start != "" {
		_, found["start"] = firn.ParseSequenceStart(n.Start)
	}
	_, found["rollback"] = firn.ParseRollback(strings.Join(n.Rollback, ", "))
	if n.Ahead != "" {
		_, found["ahead"] = parseDuration("ahead", n.Ahead)
	}
	if n.Window != "" {
		_, found["window"] = parseDuration("window", n.Window)
	}
	if n.Strict != "" {
		_, found["strict"] = parseDuration("strict", n.Strict)
	}
	maps.DeleteFunc(found, func(_ string, err error) bool { return err == nil })
	if len(found) == 0 {
		n.tryLease(found)
	}
	return found
}

func parseDuration(what, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, firn.NewSyntaxError(what, text, "write a duration, as in 500ms, 1s or 5m")
	}
	return d, nil
}

// agrees reports a setting in which the namespace differs from an earlier one
// of its pool: they share one generator.
func (n Namespace) agrees(name string, all map[string]Namespace) (key string, err error) {
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if other >= name || !n.Generated() || !all[other].Generated() || all[other].PoolName() != n.PoolName() {
			continue
		}
		if mine, theirs := n.GeneratorSettings(), all[other].GeneratorSettings(); mine != theirs {
			return "pool", fmt.Errorf("pool %s is shared with namespace %s, which has other settings (%s, not %s): "+
				"give them the same, or another pool", n.PoolName(), other, theirs, mine)
		}
	}
	return "", nil
}

// Generated reports whether ids come from a pool's generator.
func (n Namespace) Generated() bool { return n.Of() != nil && n.Of().Source == Generator }

// GeneratorSettings names all that the namespaces of a pool must have in common.
func (n Namespace) GeneratorSettings() string {
	worker := "any"
	if n.Worker != nil {
		worker = fmt.Sprint(*n.Worker)
	}
	return fmt.Sprintf("layout %s unit %q epoch %q clock %q rollback %q ahead %q start %q window %q strict %q worker %s datacenter %d",
		n.LayoutText(), n.Unit, n.Epoch, n.Clock, n.Rollback, n.Ahead, n.Start, n.Window, n.Strict, worker, n.Datacenter)
}

// LayoutText returns the layout as it is written.
func (n Namespace) LayoutText() string {
	if n.Layout == "" {
		return "firn"
	}
	return n.Layout
}

// PoolName returns the pool that ids come from.
func (n Namespace) PoolName() string {
	if n.Pool == "" {
		return DefaultPool
	}
	return n.Pool
}

// Lease returns the lease that a namespace which passed the check wants.
func (n Namespace) Lease() (lease.Config, error) {
	var errs []error
	keep := func(err error) { errs = append(errs, err) }
	cfg := lease.Config{Slots: lease.SlotsConfig{Pool: n.PoolName(), Pinned: n.Worker}}
	g := &cfg.Generator
	g.Datacenter = n.Datacenter
	var err error
	g.Layout, err = decode.Layout(n.LayoutText(), n.Unit, n.Epoch)
	keep(err)
	if n.Clock != "" {
		g.Clock, err = firn.ParseClock(n.Clock)
		keep(err)
	}
	if n.Start != "" {
		g.Start, err = firn.ParseSequenceStart(n.Start)
		keep(err)
	}
	g.Rollback, err = firn.ParseRollback(strings.Join(n.Rollback, ", "))
	keep(err)
	if n.Ahead != "" {
		g.Ahead, err = parseDuration("ahead", n.Ahead)
		keep(err)
	}
	if n.Window != "" {
		cfg.Window, err = parseDuration("window", n.Window)
		keep(err)
	}
	if n.Strict != "" {
		cfg.Slots.Strict, err = parseDuration("strict", n.Strict)
		keep(err)
	}
	return cfg, errors.Join(errs...)
}
