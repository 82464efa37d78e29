package settings

import (
	"maps"
	"slices"

	"github.com/firn-id/firn"
)

// A Kind is a kind of ids: its settings, their check, and what its ids are made of. Other
// packages ask for these properties and do not compare names.
type Kind struct {
	Name    string
	Keys    []string // the settings, beside kind
	Source  Source
	Numeric bool // ids are numbers, which can be veiled and written in many ways

	// Wide returns what makes the ids, with Source Local.
	Wide func(Namespace) (NextWide, error)
	// Format returns how a number is written as an id of this kind; nil: as any number.
	Format func(Namespace) (func(firn.ID) (string, error), error)

	check func(Namespace) error // nil: the settings have no check of their own
}

// A Source is what ids are made of.
type Source int

// The sources there are.
const (
	Generator Source = iota // a pool's leased worker
	Ranges                  // ranges of a counter in the store, kept in memory
	Counter                 // a counter in the store, asked for each request
	Template                // a counter that is written by a template
	Local                   // nothing that others share
)

// kinds has every kind by name: the one place where names stand.
var kinds = map[string]*Kind{}

func init() {
	for _, k := range []*Kind{
		{Name: "snowflake", Source: Generator, Numeric: true, Keys: append([]string{"veil", "prefix"}, generatorKeys...)},
		{
			Name: "serial", Source: Generator, Keys: append([]string{"prefix", "width", "check", "zone"}, generatorKeys...),
			Format: func(n Namespace) (func(firn.ID) (string, error), error) {
				f, err := n.SerialSettings()
				if err != nil {
					return nil, err
				}
				return f.Text, nil
			},
			check: func(n Namespace) error { _, err := n.SerialSettings(); return err },
		},
		{
			Name: "segment", Source: Ranges, Numeric: true,
			Keys:  []string{"veil", "prefix", "min_step", "max_step", "target", "from", "offset", "stride"},
			check: func(n Namespace) error { _, err := n.SegmentSettings(); return err },
		},
		{
			Name: "sequence", Source: Counter, Numeric: true, Keys: []string{"veil", "prefix", "from"},
			check: func(n Namespace) error {
				if n.From < 0 {
					return firn.NewRangeError("from", int64(n.From), 1, int64(firn.MaxID), "")
				}
				return nil
			},
		},
		{
			Name: "number", Source: Template, Keys: []string{"template", "zone"},
			check: func(n Namespace) error { _, err := n.NumberSettings(); return err },
		},
		{
			Name: "uuid", Source: Local, Keys: []string{"version", "prefix"},
			Wide:  func(n Namespace) (NextWide, error) { return UUIDs(n.UUIDVersion()) },
			check: func(n Namespace) error { _, err := UUIDs(n.UUIDVersion()); return err },
		},
		{
			Name: "objectid", Source: Local, Keys: []string{"prefix"},
			Wide: func(Namespace) (NextWide, error) { return ObjectIDs() },
		},
	} {
		kinds[k.Name] = k
	}
}

// kindNames returns the names of all kinds, sorted.
func kindNames() []string { return slices.Sorted(maps.Keys(kinds)) }

// Of returns the kind of a namespace that passed the check.
func (n Namespace) Of() *Kind { return kinds[n.KindName()] }
