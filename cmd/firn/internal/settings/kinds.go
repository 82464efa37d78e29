package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/serial"
	"github.com/firn-id/firn/veil"
)

// Veil says with what the ids of a namespace are veiled. Keys stand in a file, or in
// an environment variable, never in the configuration.
type Veil struct {
	KeyFile     string `yaml:"key_file"`
	KeyEnv      string `yaml:"key_env"`
	Bits        int    `yaml:"bits"`
	VersionBits int    `yaml:"version_bits"`
}

// generatorKeys are the settings of kinds that are made by a leased generator.
var generatorKeys = []string{
	"pool", "layout", "unit", "epoch", "clock", "rollback", "ahead", "start", "window", "strict", "worker", "datacenter",
}

// KindName returns the kind.
func (n Namespace) KindName() string {
	if n.Kind == "" {
		return "snowflake"
	}
	return n.Kind
}

// UUIDVersion returns the version of UUIDs: 7, unless another is set.
func (n Namespace) UUIDVersion() int {
	if n.Version == 0 {
		return 7
	}
	return n.Version
}

// given are the keys that are set.
func (n Namespace) given() []string {
	set := map[string]bool{
		"pool": n.Pool != "", "layout": n.Layout != "", "unit": n.Unit != "", "epoch": n.Epoch != "", "clock": n.Clock != "",
		"rollback": n.Rollback != nil, "ahead": n.Ahead != "", "start": n.Start != "", "window": n.Window != "", "strict": n.Strict != "",
		"worker": n.Worker != nil, "datacenter": n.Datacenter != 0,
		"veil": n.Veil != nil, "prefix": n.Prefix != "", "width": n.Width != 0, "check": n.Check != "", "zone": n.Zone != "",
		"min_step": n.MinStep != 0, "max_step": n.MaxStep != 0, "target": n.Target != "", "from": n.From != 0,
		"offset": n.Offset != 0, "stride": n.Stride != 0, "template": n.Template != "", "version": n.Version != 0,
	}
	maps.DeleteFunc(set, func(_ string, given bool) bool { return !given })
	return slices.Sorted(maps.Keys(set))
}

// checkKind adds the mistakes that have to do with the kind.
func (n Namespace) checkKind(found map[string]error) {
	k := n.Of()
	if k == nil {
		found["kind"] = firn.NewSyntaxError("kind", n.Kind, strings.Join(kindNames(), ", ")+" are allowed")
		return
	}
	for _, key := range n.given() {
		if !slices.Contains(k.Keys, key) {
			found[key] = fmt.Errorf("a namespace of kind %s has no %s: it has %s", n.KindName(), key, strings.Join(k.Keys, ", "))
		}
	}
	if k.check != nil {
		if err := k.check(n); err != nil {
			found["kind"] = err
		}
	}
	if n.Prefix != "" && k.Format == nil {
		if _, err := prefixed.New(n.Prefix); err != nil {
			found["prefix"] = err
		}
	}
	if n.Veil != nil && n.Veil.KeyFile == "" && n.Veil.KeyEnv == "" {
		found["veil"] = errors.New("a key is needed: key_file: FILE, or key_env: VARIABLE")
	}
	if n.Veil != nil && n.Veil.KeyFile != "" && n.Veil.KeyEnv != "" {
		found["veil"] = errors.New("give key_file or key_env, not both")
	}
}

// Numeric reports whether ids are numbers, which may be written in many ways.
func (n Namespace) Numeric() bool {
	return n.Prefix == "" && n.Of().Numeric
}

// SerialSettings returns the format of a serial namespace.
func (n Namespace) SerialSettings() (*serial.Format, error) {
	layout, err := decode.Layout(n.LayoutText(), n.Unit, n.Epoch)
	if err != nil {
		return nil, err
	}
	cfg := serial.Config{Layout: layout, Width: n.Width, Prefix: n.Prefix}
	if n.Check != "" {
		if cfg.Check, err = serial.ParseCheck(n.Check); err != nil {
			return nil, err
		}
	}
	if cfg.Zone, err = ParseZone(n.Zone); err != nil {
		return nil, err
	}
	return serial.New(cfg)
}

// SegmentSettings returns the settings of a segment namespace, but for its store.
func (n Namespace) SegmentSettings() (cfg segment.Config, err error) {
	cfg = segment.Config{MinStep: n.MinStep, MaxStep: n.MaxStep, Start: n.From, Offset: n.Offset, Stride: n.Stride}
	if n.Target != "" {
		if cfg.Target, err = parseDuration("target", n.Target); err != nil {
			return cfg, err
		}
	}
	check := cfg
	check.Source = noRanges{}
	_, err = segment.New(check)
	return cfg, err
}

// noRanges is a source that is not asked.
type noRanges struct{ segment.Source }

// NumberSettings returns the settings of a number namespace, but for its counter.
func (n Namespace) NumberSettings() (cfg numbering.Config, err error) {
	cfg = numbering.Config{Template: n.Template, Time: firn.SystemTime()}
	if cfg.Zone, err = ParseZone(n.Zone); err != nil {
		return cfg, err
	}
	check := cfg
	check.Counter = (*sequence.Namespace)(nil)
	_, err = numbering.New(check)
	return cfg, err
}

// Cipher reads the keys and returns the permutation of a namespace.
func (v *Veil) Cipher(namespace string) (*veil.Cipher, error) {
	all, err := ReadKeys(v.KeyFile, v.KeyEnv)
	if err != nil {
		return nil, err
	}
	return veil.New(veil.Config{Keys: all, Bits: v.Bits, VersionBits: v.VersionBits, Namespace: namespace})
}
