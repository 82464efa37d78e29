package settings

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/store"
)

// Namespace is the settings of one namespace. A zero value stands for the default. Each group of settings is declared
// in the file of a kind that has it.
type Namespace struct {
	Kind string `yaml:"kind" default:"snowflake" help:"what ids are made: the settings below depend on it"`

	Pooled   `yaml:",inline"`
	Serial   `yaml:",inline"`
	Dated    `yaml:",inline"`
	Segment  `yaml:",inline"`
	Counted  `yaml:",inline"`
	Number   `yaml:",inline"`
	UUID     `yaml:",inline"`
	Veiled   `yaml:",inline"`
	Prefixed `yaml:",inline"`
}

// CheckName refuses names that cannot be part of a URL path or a key of the store.
func CheckName(name string) error { return store.CheckName("namespace", name) }

// Of returns the kind of a namespace whose kind was checked.
func (n Namespace) Of() *Kind {
	k, _ := KindOf(n.Kind) // nil with an error
	return k
}

// KindName returns the name of the kind.
func (n Namespace) KindName() string { return n.Of().Name }

// Generated reports whether ids come from a pool's generator.
func (n Namespace) Generated() bool { return n.Of() != nil && n.Of().Source == Generator }

// filled returns n with the defaults that the tags declare, so they are those of the documentation.
func (n Namespace) filled() Namespace {
	for _, s := range ofNamespaces {
		if s.Default == "" || s.IsSet(n) {
			continue
		}
		var err error
		switch into := s.In(&n).(type) {
		case *string:
			*into = s.Default
		case encoding.TextUnmarshaler:
			err = into.UnmarshalText([]byte(s.Default))
		default:
			_, err = fmt.Sscan(s.Default, into)
		}
		if err != nil {
			panic(fmt.Sprintf("%s has the default %q: %v", s.Key, s.Default, err)) // a wrong tag
		}
	}
	return n
}

// Mistakes returns what is wrong with the settings.
func (n Namespace) Mistakes() Mistakes {
	k, err := KindOf(n.Kind)
	if err != nil {
		return Mistakes{"kind": err}
	}
	has := keysOf(k.Settings())
	found := Mistakes{}
	for _, s := range ofNamespaces {
		if s.IsSet(n) && s.Key != "kind" && !slices.Contains(has, s.Key) {
			found[s.Key] = k.lacks(s.Key)
		}
	}
	if n.Prefix != "" && found["prefix"] == nil && k.Format == nil {
		_, found["prefix"] = prefixed.New(n.Prefix)
	}
	if n.Veil != nil && found["veil"] == nil {
		found["veil"] = n.Veil.check()
	}
	if k.check != nil {
		k.check(n, found)
	}
	maps.DeleteFunc(found, func(_ string, err error) bool { return err == nil })
	return found
}

// poolmates has the first namespace of each pool, by the pool's name.
type poolmates map[string]poolmate

type poolmate struct {
	name     string
	settings Namespace
	lease    lease.Config
}

// agree returns an error if the settings of the pool differ from those of the first namespace in the same pool: they
// share one generator.
func (p poolmates) agree(name string, n Namespace) error {
	if !n.Generated() {
		return nil
	}
	mine, err := n.Lease()
	if err != nil {
		return nil // it has mistakes of its own
	}
	first, ok := p[mine.Pool]
	switch {
	case !ok:
		p[mine.Pool] = poolmate{name, n, mine}
	case !reflect.DeepEqual(mine, first.lease):
		return fmt.Errorf("namespaces %s and %s share pool %s but differ in %s: "+
			"use the same settings, or another pool", first.name, name, mine.Pool, differences(first.settings, n))
	}
	return nil
}

// differences returns the pool settings in which two namespaces differ, with both values.
func differences(a, b Namespace) string {
	var all []string
	for _, s := range ofNamespaces {
		if one, two := s.of(a), s.of(b); s.group == reflect.TypeFor[Pooled]() && one != two {
			all = append(all, fmt.Sprintf("%s (%s, %s)", s.Key, one, two))
		}
	}
	return strings.Join(all, ", ")
}
