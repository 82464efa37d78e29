package settings

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
)

// A Setting is declared by the tags of a struct field. The configuration file, the flags of the command, their errors
// and docs/configuration.md all use these tags.
type Setting struct {
	Key     string // tag yaml: the key in the configuration file
	Flag    string // tag flag: the flag of the command; empty: none
	Help    string // tag help: what it sets
	Default string // tag default: the value if it is not set
	Unset   string // tag unset: what happens if it is not set, in words
	Noun    string // tag is: what a value is, for errors
	Allowed string // tag allowed: the values that are allowed
	Example string // tag example: one of them

	required bool         // tag required: whether its part of the file is wrong without it
	config   string       // tag config: the field of the library's Config; default: that of the struct
	field    []int        // its index in the struct, for reflection
	value    reflect.Type // of the field
	group    reflect.Type // the struct that declares it
}

// AllowsZero reports whether 0 is a value like others. Otherwise the zero value stands for the default, and a 0 that someone
// wrote is a mistake.
func (s Setting) AllowsZero() bool {
	return s.value.Kind() == reflect.Bool || s.Default == "0" || strings.Contains(s.Allowed, "or 0") || strings.Contains(s.Allowed, "from 0")
}

// Words returns the values of a setting that allows only a few, such as "none, luhn, mod97"; nil for others.
func (s Setting) Words() []string {
	words := strings.Split(s.Allowed, ", ")
	if len(words) == 1 || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, " ") }) {
		return nil
	}
	return words
}

// ends returns the least and the greatest number allowed, as in "1 to 100" and "whole numbers from 0 to what the layout
// has"; nil where none is said.
func (s Setting) ends() (least, most *int64) {
	number := func(text string) *int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil
		}
		return &n
	}
	low, high, _ := strings.Cut(s.Allowed, " to ")
	return number(strings.TrimPrefix(low, "whole numbers from ")), number(high)
}

// declared returns the settings that a struct declares, with those of embedded structs.
func declared(of reflect.Type) (all []Setting) {
	for _, f := range reflect.VisibleFields(of) {
		key, tagged := f.Tag.Lookup("yaml")
		if f.Anonymous || !tagged {
			continue
		}
		group := of
		if up := f.Index[:len(f.Index)-1]; len(up) > 0 {
			group = of.FieldByIndex(up).Type
		}
		all = append(all, Setting{
			Key: key, Flag: f.Tag.Get("flag"), Help: f.Tag.Get("help"), Default: f.Tag.Get("default"), Unset: f.Tag.Get("unset"),
			Noun: f.Tag.Get("is"), Allowed: f.Tag.Get("allowed"), Example: f.Tag.Get("example"), required: f.Tag.Get("required") != "",
			config: cmp.Or(f.Tag.Get("config"), f.Name), field: f.Index, value: f.Type, group: group,
		})
	}
	return all
}

// reportOutside reports the numbers in a part of the file that are outside of what their tags allow, as in "1 to 100".
func reportOutside(part any, report func(err error, key string)) {
	for _, s := range declared(reflect.TypeOf(part)) {
		n, ok := reflect.ValueOf(part).FieldByIndex(s.field).Interface().(*int)
		if !ok || n == nil {
			continue
		}
		least, most := s.ends()
		if least == nil || most == nil {
			panic(fmt.Sprintf("settings: %s needs a range in its tag, not %q", s.Key, s.Allowed))
		}
		if value := int64(*n); value < *least || value > *most {
			report(firn.NewRangeError(s.Key, value, *least, *most, ""), s.Key)
		}
	}
}

// Group returns the settings that these structs declare, such as [Pooled]. Each must be embedded in [Namespace].
func Group(groups ...any) []Setting {
	for _, group := range groups {
		if !slices.ContainsFunc(ofNamespaces, func(s Setting) bool { return s.group == reflect.TypeOf(group) }) {
			panic(fmt.Sprintf("settings: embed %T in Namespace", group))
		}
	}
	return slices.DeleteFunc(slices.Clone(ofNamespaces), func(s Setting) bool {
		return !slices.ContainsFunc(groups, func(group any) bool { return reflect.TypeOf(group) == s.group })
	})
}

// All returns the settings of all kinds.
func All() []Setting { return slices.Clone(ofNamespaces) }

// ofNamespaces has the settings of namespaces of all kinds.
var ofNamespaces = declared(reflect.TypeFor[Namespace]())

// In returns a pointer to the setting's value in n.
func (s Setting) In(n *Namespace) any {
	return reflect.ValueOf(n).Elem().FieldByIndex(s.field).Addr().Interface()
}

// IsSet reports whether n has another value than the zero value.
func (s Setting) IsSet(n Namespace) bool {
	return !reflect.ValueOf(n).FieldByIndex(s.field).IsZero()
}

// of returns the value in n, or the default or what happens without a value, for people.
func (s Setting) of(n Namespace) string {
	if s.IsSet(n) {
		return fmt.Sprint(reflect.Indirect(reflect.ValueOf(n).FieldByIndex(s.field)))
	}
	return cmp.Or(s.Default, s.Unset)
}

// keysOf returns the keys of settings.
func keysOf(of []Setting) []string {
	var all []string
	for _, s := range of {
		all = append(all, s.Key)
	}
	return all
}

// A Duration is a time.Duration that is written as in 500ms, 1s or 5m.
type Duration = lease.Duration
