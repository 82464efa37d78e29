package server

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/lease"
)

// Config is what a server serves, as the configuration file has it.
type Config struct {
	Store      string               `yaml:"store"`
	Listen     Listen               `yaml:"listen"`
	Namespaces map[string]Namespace `yaml:"namespaces"`
	Limits     Limits               `yaml:"limits"`
}

// Listen says on which addresses.
type Listen struct {
	HTTP string `yaml:"http"`
}

// Limits bounds requests.
type Limits struct {
	Batch int `yaml:"batch"` // ids in one answer; default 100,000
}

// Namespace is the settings of one namespace; what is empty has its default.
type Namespace struct {
	Kind string `yaml:"kind"` // one of kindKeys; default: snowflake

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

const (
	defaultBatch = 100_000
	maxBatch     = 10_000_000
	defaultPool  = "default"
)

// keys lists what each level of the file allows, for messages.
const keysHelp = "at the top: store, listen, namespaces, limits; under listen: http; under limits: batch; " +
	"in a namespace: kind (snowflake, serial, segment, sequence, number, uuid, objectid); " +
	"pool, layout, unit, epoch, clock, rollback, ahead, start, window, strict, worker, datacenter; width, check, zone; " +
	"min_step, max_step, target, from, offset, stride; template; version; veil, prefix; " +
	"under veil: key_file, key_env, bits, version_bits"

// ReadConfig reads and checks a file. An error names file, line and key, and
// what would be allowed; all impossible values are reported at once.
func ReadConfig(path string) (Config, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	var cfg Config
	if len(bytes.TrimSpace(source)) > 0 {
		if err := yaml.UnmarshalWithOptions(source, &cfg, yaml.Strict()); err != nil {
			return Config{}, fmt.Errorf("configuration %s:\n%s\nallowed are, %s",
				path, strings.TrimSpace(yaml.FormatError(err, false, true)), keysHelp)
		}
	}
	var errs []error
	report := func(err error, keys ...string) {
		if err != nil {
			errs = append(errs, fmt.Errorf("configuration %s: %s%s: %w", path, line(source, keys), strings.Join(keys, "."), err))
		}
	}
	if cfg.Listen.HTTP != "" {
		report(CheckAddress(cfg.Listen.HTTP), "listen", "http")
	}
	if b := cfg.Limits.Batch; b < 0 || b > maxBatch {
		report(firn.NewRangeError("batch", int64(b), 1, maxBatch, ""), "limits", "batch")
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Namespaces)) {
		report(checkNamespace(name), "namespaces", name)
		ns := cfg.Namespaces[name]
		for key, err := range ns.check() {
			report(err, "namespaces", name, key)
		}
		if key, err := ns.agrees(name, cfg.Namespaces); err != nil {
			report(err, "namespaces", name, key)
		}
	}
	return cfg, errors.Join(errs...)
}

// CheckAddress refuses an address without a port: the system would choose one, and
// for an empty address, as of a variable that is not set, listen on all interfaces.
func CheckAddress(address string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return firn.NewSyntaxError("address to listen on", address, "write HOST:PORT, as in 127.0.0.1:7070, or :7070 for all interfaces")
	}
	return nil
}

// line says where in the file the value of a key stands, or of the one above it
// where it is missing.
func line(source []byte, keys []string) string {
	for ; len(keys) > 0; keys = keys[:len(keys)-1] {
		if at := lineOf(source, keys); at != "" {
			return at
		}
	}
	return ""
}

func lineOf(source []byte, keys []string) string {
	path, err := yaml.PathString("$." + strings.Join(keys, "."))
	if err != nil {
		return ""
	}
	node, err := path.ReadNode(bytes.NewReader(source))
	if err != nil || node == nil || node.GetToken() == nil {
		return ""
	}
	return fmt.Sprintf("line %d: ", node.GetToken().Position.Line)
}

// checkNamespace refuses names that could not stand in a path or a key.
func checkNamespace(name string) error {
	err := lease.CheckPool(name)
	var syntax *firn.SyntaxError
	if errors.As(err, &syntax) {
		syntax.What = "namespace name"
	}
	return err
}

// check returns the mistakes by key.
func (n Namespace) check() map[string]error {
	found := map[string]error{}
	n.checkKind(found)
	defer func() {
		maps.DeleteFunc(found, func(_ string, err error) bool { return err == nil })
	}()
	if keys := kindKeys[n.kind()]; !slices.Contains(keys, "pool") {
		return found // no generator
	}
	if n.Pool != "" {
		found["pool"] = lease.CheckPool(n.Pool)
	}
	layout, err := firn.ParseLayout(n.layout())
	found["layout"] = err
	if err != nil {
		layout = firn.DefaultLayout()
	}
	if n.Unit != "" {
		_, found["unit"] = firn.ParseUnit(n.Unit)
	}
	if n.Epoch != "" {
		_, found["epoch"] = decode.Layout(n.layout(), "", n.Epoch)
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
		if other >= name || !n.generated() || !all[other].generated() || all[other].pool() != n.pool() {
			continue
		}
		if mine, theirs := n.generatorSettings(), all[other].generatorSettings(); mine != theirs {
			return "pool", fmt.Errorf("pool %s is shared with namespace %s, which has other settings (%s, not %s): "+
				"give them the same, or another pool", n.pool(), other, theirs, mine)
		}
	}
	return "", nil
}

// generated reports whether ids come from a pool's generator.
func (n Namespace) generated() bool { return slices.Contains(kindKeys[n.kind()], "pool") }

func (n Namespace) generatorSettings() string {
	worker := "any"
	if n.Worker != nil {
		worker = fmt.Sprint(*n.Worker)
	}
	return fmt.Sprintf("layout %s unit %q epoch %q clock %q rollback %q ahead %q start %q window %q strict %q worker %s datacenter %d",
		n.layout(), n.Unit, n.Epoch, n.Clock, n.Rollback, n.Ahead, n.Start, n.Window, n.Strict, worker, n.Datacenter)
}

func (n Namespace) layout() string {
	if n.Layout == "" {
		return "firn"
	}
	return n.Layout
}

func (n Namespace) pool() string {
	if n.Pool == "" {
		return defaultPool
	}
	return n.Pool
}

// Lease returns the lease that a namespace which passed the check wants.
func (n Namespace) Lease() (lease.Config, error) {
	var errs []error
	keep := func(err error) { errs = append(errs, err) }
	cfg := lease.Config{Slots: lease.SlotsConfig{Pool: n.pool(), Pinned: n.Worker}}
	g := &cfg.Generator
	g.Datacenter = n.Datacenter
	var err error
	g.Layout, err = decode.Layout(n.layout(), n.Unit, n.Epoch)
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
