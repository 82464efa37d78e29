package settings

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
)

// A Kind is a kind of ids: its settings, their check, and what its ids are made of. Each has a
// file of its own. Other packages ask for these properties and do not compare names.
type Kind struct {
	Name    string
	Source  Source
	Numeric bool   // ids are numbers, which can be veiled and written in many ways
	Help    string // what distinguishes its ids; may be empty

	// Variants are other names of the command for the kind, and the settings that they stand for.
	Variants map[string]func(*Namespace)

	// Wide returns what makes the ids, with Source Local.
	Wide func(Namespace) (NextWide, error)
	// Format returns how a number is written as an id of this kind; nil: as any number.
	Format func(Namespace) (func(firn.ID) (string, error), error)

	// Read returns what takes the text of an id apart; nil: ids are numbers, which a layout takes apart,
	// or only a counter.
	Read func(Namespace) (func(text string) (decode.Contents, error), error)

	fixed    []string                  // settings that cannot change while a namespace is served, beside its kind and veil
	settings []any                     // the structs that declare its settings
	check    func(Namespace, Mistakes) // nil: the settings have no check of their own
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

// NextWide makes an id of more than 64 bits, without a store: its bytes, and the text that it usually has. It may be called
// concurrently.
type NextWide func(ctx context.Context) (id []byte, text string, err error)

// Kinds has every kind, the default first. It is the one list of them.
var Kinds []*Kind

func init() { // since kinds have methods that look them up
	Kinds = []*Kind{snowflake, serials, segments, sequences, numbers, uuids, objectIDs}
}

// KindOf returns the kind of a name, the default kind for an empty one. The error is a
// *[firn.SyntaxError].
func KindOf(name string) (*Kind, error) {
	if name == "" {
		return Kinds[0], nil
	}
	var names []string
	for _, k := range Kinds {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return nil, firn.NewSyntaxError("kind", name, strings.Join(names, ", ")+" are allowed")
}

// Settings returns the settings of the kind.
func (k *Kind) Settings() []Setting { return Group(k.settings...) }

// lacks is the error about a setting that the kind does not have.
func (k *Kind) lacks(key string) error {
	return fmt.Errorf("a namespace of kind %s has no %s: it has %s", k.Name, key, strings.Join(keysOf(k.Settings()), ", "))
}

// Fixed returns the settings that cannot change while a namespace is served, since its ids could repeat
// earlier ones: segments and sequences have separate counters, stripes of one counter overlap, ids of
// two pools may be equal, and so may serials of two zones or checks.
func (k *Kind) Fixed() []string {
	fixed := append([]string{"kind"}, k.fixed...)
	if k.Numeric {
		fixed = append(fixed, "veil")
	}
	return fixed
}

// Changed returns the first such setting in which now differs from n, and both values; "" for none.
func (n Namespace) Changed(now Namespace) (key, from, to string) {
	for _, key := range n.Of().Fixed() {
		for _, s := range ofNamespaces {
			if s.Key == key && s.of(n) != s.of(now) {
				return key, s.of(n), s.of(now)
			}
		}
	}
	return "", "", ""
}

// Only returns n as one of this kind, without the settings that the kind does not have.
func (k *Kind) Only(n Namespace) Namespace {
	only := Namespace{Kind: k.Name}
	from, to := reflect.ValueOf(n), reflect.ValueOf(&only).Elem()
	for _, s := range k.Settings() {
		to.FieldByIndex(s.field).Set(from.FieldByIndex(s.field))
	}
	return only
}

// Settings that several kinds have.
type (
	// Counted are ids that a counter in the store counts.
	Counted struct {
		From firn.ID `yaml:"from" flag:"first" config:"Start" default:"1" is:"id" allowed:"1 to 9223372036854775807" example:"1" help:"first id of a name that is new in the store"`
	}
	// Dated are ids in which a time is written.
	Dated struct {
		Zone string `yaml:"zone" flag:"zone" default:"UTC" allowed:"UTC, an offset such as +08:00, or a name such as Asia/Shanghai" help:"time zone, such as UTC or +08:00"`
	}
	// Prefixed are ids that may have a prefix.
	Prefixed struct {
		Prefix string `yaml:"prefix" flag:"prefix" example:"ord" help:"prefix of the ids: ord makes ord_… in sortable fixed-width base32; in serials it counts towards the width"`
	}
	// Veiled are ids that do not show their order.
	Veiled struct {
		Veil *Veil `yaml:"veil" unset:"none" example:"{key_file: FILE}" help:"what hides the order of ids; the name of the namespace is part of it"`
	}
)
