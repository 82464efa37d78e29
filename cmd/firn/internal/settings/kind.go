package settings

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// A Kind is a kind of ids: its settings, their check, and where its ids come from. Each is declared in a file of its
// own. Other packages use these properties instead of comparing names.
type Kind struct {
	Name    string
	Source  Source
	Numeric bool   // ids are numbers, which can be veiled and have several text forms
	Help    string // what distinguishes its ids; may be empty

	// Variants are other names of the kind on the command line, such as uuid4, each with the settings it stands for.
	Variants map[string]func(*Namespace)

	// Wide returns the function that makes the ids. Only for Source Local. Behind a prefix, the number of bytes alone
	// tells the kind: if another kind has as many, leave out Prefixed.
	Wide func(Namespace) (NextWide, error)
	// Bytes is how many bytes Wide makes, and Text is their usual text. Only for Source Local.
	Bytes int
	Text  func(id []byte) string
	// Format returns the text form of a number as an id of this kind. Nil: ids are written as numbers.
	Format func(Namespace) (func(firn.ID) (string, error), error)

	// Makes says which ids a namespace makes, without prefix and veil: "UUIDs of version 7". For errors.
	Makes func(Namespace) string
	// Read returns the function that decodes the text of an id. Only for kinds that are not Numeric. It refuses what the
	// settings exclude; a setting without a value excludes nothing.
	Read func(Namespace) (func(text string) (decode.Contents, error), error)
	// Number returns the function that decodes a number. Only for kinds that are Numeric.
	Number func(Namespace) func(firn.ID) (decode.Contents, error)

	fixed    []string                  // settings that cannot change while a namespace is served; kind and veil never can
	settings []any                     // the structs that declare its settings
	once     sync.Once                 // fills declared
	declared []Setting                 // the settings of those structs
	check    func(Namespace, Mistakes) // checks several settings together; nil: not needed
}

// A Source is where ids come from.
type Source int

// The sources.
const (
	Generator Source = iota // a pool's leased worker
	Ranges                  // ranges of a counter in the store, kept in memory
	Counter                 // a counter in the store, one addition per request
	Template                // a counter in the store, written with a template
	Local                   // this process alone: neither a store nor a lease
)

// Counted reports whether a counter in the store makes the ids.
func (k *Kind) Counted() bool { return k.Source != Generator && k.Source != Local }

// NextWide makes an id of more than 64 bits without a store: its bytes and its usual text. It may be called
// concurrently.
type NextWide func(ctx context.Context) (id []byte, text string, err error)

// Kinds has all kinds, the default first.
var Kinds []*Kind

func init() { // in its declaration this would be an initialization cycle: methods of kinds use Kinds
	Kinds = []*Kind{snowflake, serials, segments, sequences, numbers, uuids, objectIDs}
}

// KindOf returns the kind with a name; the default kind for the empty name. The error is a *[firn.SyntaxError].
func KindOf(name string) (*Kind, error) {
	if name == "" {
		return Kinds[0], nil
	}
	for _, k := range Kinds {
		if k.Name == name {
			return k, nil
		}
	}
	var names []string
	meant := ""
	for _, k := range Kinds {
		names = append(names, k.Name)
		if variant := k.Variants[name]; variant != nil {
			meant = ": did you mean kind: " + k.Name + " with " + k.written(variant) + "?"
		}
	}
	return nil, firn.NewSyntaxError("kind", name, strings.Join(names, ", ")+" are allowed"+cmp.Or(meant, failure.DidYouMean(name, names)))
}

// Settings returns the settings of the kind. They are looked up once: the flags of a command ask for them hundreds of times.
func (k *Kind) Settings() []Setting {
	k.once.Do(func() { k.declared = slices.Clip(Group(k.settings...)) })
	return k.declared
}

// written returns what a variant sets, as a file has it.
func (k *Kind) written(variant func(*Namespace)) string {
	var n Namespace
	variant(&n)
	var all []string
	for _, s := range k.Settings() {
		if s.IsSet(n) {
			all = append(all, s.Key+": "+s.of(n))
		}
	}
	return strings.Join(all, ", ")
}

// lacks is the error about a setting that the kind does not have.
func (k *Kind) lacks(key string) error {
	return fmt.Errorf("a namespace of kind %s has no %s: it has %s", k.Name, key, cmp.Or(strings.Join(keysOf(k.Settings()), ", "), "no settings"))
}

// Fixed returns the settings that cannot change while a namespace is served, since its ids could repeat earlier ones.
// For example, stripes of one counter overlap, and ids of two pools may be equal, as may serials of two zones.
func (k *Kind) Fixed() []string {
	fixed := append([]string{"kind"}, k.fixed...)
	if k.Numeric {
		fixed = append(fixed, "veil")
	}
	return fixed
}

// Changed returns the first setting of Fixed in which now differs from n, with both values; "" if all are equal.
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

// Only returns n as a namespace of this kind, without settings that the kind does not have.
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
	// Counted has the settings of ids that a counter in the store counts.
	Counted struct {
		From      firn.ID `yaml:"from" flag:"first" config:"Start" default:"1" is:"id" allowed:"1 to 9223372036854775807" example:"1" help:"least id: a counter that is new in the store begins there, and one that is below goes on there"`
		MustExist bool    `yaml:"must_exist" default:"false" help:"no ids, but the error set_back, if the store has no such counter, or one below what the server has had of it; firn raise makes and raises it: [backup.md](backup.md#a-counter-that-must-exist)"`
	}
	// Dated has the settings of ids that contain a date.
	Dated struct {
		Zone string `yaml:"zone" flag:"zone" default:"UTC" allowed:"UTC, an offset such as +08:00, or for numbers a name such as Asia/Shanghai" help:"time zone, such as UTC or +08:00"`
	}
	// Prefixed has the settings of ids that may have a prefix.
	Prefixed struct {
		Prefix string `yaml:"prefix" flag:"prefix" example:"ord" help:"prefix of the ids: ord makes ord_… in sortable base32 of fixed width (13 characters for numbers, 26 for UUIDs); in serials it counts towards the width"`
	}
	// Veiled has the settings of ids that may be veiled.
	Veiled struct {
		Veil *Veil `yaml:"veil" unset:"none" example:"{key_file: FILE}" help:"what hides the order of ids; the name of the namespace is part of it"`
	}
)

// countedNumbers says which ids a counter makes.
const countedNumbers = "numbers of a counter"

// counted returns the contents of an id that a counter made.
func counted(n Namespace, id firn.ID) (decode.Contents, error) {
	if id < 1 {
		return decode.Contents{}, firn.NewRangeError("id of kind "+n.KindName(), int64(id), 1, int64(firn.MaxID), "")
	}
	return decode.Contents{Kind: n.KindName(), Fields: []decode.Field{
		{Name: "id", Value: id}, {Name: "note", Value: "a counter made this id: it has neither a time nor a worker in it"},
	}}, nil
}
