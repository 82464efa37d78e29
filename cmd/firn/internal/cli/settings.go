package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// addSettings adds the flags of settings. Their values go to n.
func addSettings(flags *pflag.FlagSet, n *settings.Namespace, of []settings.Setting) {
	for _, s := range of {
		if s.Flag == "" || flags.Lookup(s.Flag) != nil {
			continue
		}
		help := s.Help
		if s.Unset != "" {
			help += " (default: " + s.Unset + ")"
		}
		switch into := s.In(n).(type) {
		case *string:
			flags.StringVar(into, s.Flag, "", help)
		case *bool:
			flags.BoolVar(into, s.Flag, false, help)
		case *int:
			flags.IntVar(into, s.Flag, 0, help)
		case *int64:
			flags.Int64Var(into, s.Flag, 0, help)
		case *firn.ID:
			flags.Int64Var((*int64)(into), s.Flag, 0, help)
		case *settings.Duration:
			flags.DurationVar((*time.Duration)(into), s.Flag, 0, help)
		case **int64:
			flags.Var(parsed[*int64]{into, "int", parseNumber, showNumber}, s.Flag, help)
		case *[]int64:
			flags.Var(parsed[[]int64]{into, "ints", parseNumbers, showNumbers}, s.Flag, help)
		case *[]string:
			flags.Var(parsed[[]string]{into, "string", parseList, showList}, s.Flag, help)
		default:
			panic(fmt.Sprintf("--%s: no flag has the type %T", s.Flag, into))
		}
		if s.Default != "" {
			setDefault(flags, s.Flag, s.Default)
		}
	}
}

// setDefault sets the default of a flag.
func setDefault(flags *pflag.FlagSet, name, value string) {
	f := flags.Lookup(name)
	if err := f.Value.Set(value); err != nil {
		panic(fmt.Sprintf("--%s has the default %q: %v", name, value, err)) // a wrong tag in package settings
	}
	f.DefValue = value
}

// A parsed is the value of a flag of a type that pflag does not have.
type parsed[T any] struct {
	into  *T
	kind  string // for the help
	parse func(text string) (T, error)
	show  func(T) string
}

// Set implements [pflag.Value].
func (p parsed[T]) Set(text string) error {
	value, err := p.parse(text)
	if err == nil {
		*p.into = value
	}
	return err
}

func (p parsed[T]) String() string { return p.show(*p.into) }

// Type implements [pflag.Value].
func (p parsed[T]) Type() string { return p.kind }

// A number is nil unless its flag is set.
func parseNumber(text string) (*int64, error) {
	n, err := strconv.ParseInt(text, 0, 64)
	return &n, err
}

func showNumber(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// The items of a list have commas between them.
func parseList(text string) ([]string, error) { return strings.Split(text, ","), nil }

func showList(items []string) string { return strings.Join(items, ",") }

func parseNumbers(text string) (all []int64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := parseNumber(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, *n)
	}
	return all, nil
}

func showNumbers(all []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ","), "[]")
}

// flagged returns the settings with these flags.
func flagged(names ...string) []settings.Setting {
	return slices.DeleteFunc(settings.All(), func(s settings.Setting) bool { return !slices.Contains(names, s.Flag) })
}

// mistaken returns what is wrong with the settings of a kind, with the flag that set each.
func mistaken(flags *pflag.FlagSet, n settings.Namespace) error {
	of := n.Of().Settings()
	errs := []error{refuseEmpty(flags, n, of)}
	found := n.Mistakes()
	for _, key := range slices.Sorted(maps.Keys(found)) {
		err := found[key]
		i := slices.IndexFunc(of, func(s settings.Setting) bool { return s.Key == key })
		if i >= 0 && flags.Changed(of[i].Flag) {
			err = fmt.Errorf("%s: %w", origin(flags, of[i].Flag), err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// refuseEmpty refuses values that would mean the default: 0, and an empty text, as of a variable that is not set.
func refuseEmpty(flags *pflag.FlagSet, n settings.Namespace, of []settings.Setting) error {
	var errs []error
	for _, s := range of {
		f := flags.Lookup(s.Flag)
		if f != nil && f.Changed && !s.AllowsZero() && !s.IsSet(n) {
			assign := "--" + s.Flag + " "
			if byEnvironment(f) {
				assign = variable(s.Flag) + "="
			}
			errs = append(errs, unreadable(f, origin(flags, s.Flag), assign, f.Value.String()))
		}
	}
	return errors.Join(errs...)
}

// A flagKinds returns the names of the kinds that have a flag; nil for all kinds.
type flagKinds func(flag string) []string

// aboutNext is the flagKinds of firn next.
func aboutNext(flag string) (names []string) {
	others := map[string]func(*settings.Kind) bool{ // of flags that are not settings
		"format":       func(k *settings.Kind) bool { return k.Numeric },
		"worker-ahead": func(k *settings.Kind) bool { return k.Source == settings.Generator },
		"store":        func(k *settings.Kind) bool { return k.Source != settings.Local },
		"name":         (*settings.Kind).Counted,
		"step":         func(k *settings.Kind) bool { return k.Source == settings.Ranges },
	}
	for _, k := range settings.Kinds {
		if other := others[flag]; other != nil && other(k) || hasFlag(k, flag) {
			names = append(names, k.Name)
		}
	}
	return names
}

// aboutDecode is the flagKinds of firn decode, which finds prefixes of other kinds by itself.
func aboutDecode(flag string) (names []string) {
	for _, k := range decodable() {
		if flag == "format" && k.Numeric || hasFlag(k, flag) && (flag != "prefix" || k.Format != nil) {
			names = append(names, k.Name)
		}
	}
	return names
}

func hasFlag(k *settings.Kind, flag string) bool {
	return slices.ContainsFunc(k.Settings(), func(s settings.Setting) bool { return s.Flag == flag })
}

// flagsOfOtherKinds returns an error for each flag on the command line that the kind does not have. Flags from the environment
// are ignored: they may be meant for another command.
func flagsOfOtherKinds(flags *pflag.FlagSet, about flagKinds, kind string) error {
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		kinds := about(f.Name)
		if len(kinds) > 0 && given(flags, f.Name) && !slices.Contains(kinds, kind) {
			errs = append(errs, fmt.Errorf("--%s goes with --kind %s, not with --kind %s", f.Name, failure.List(kinds, "and"), kind))
		}
	})
	return errors.Join(errs...)
}

// forKinds puts the names of their kinds before the help of flags that the default kind does not have.
func forKinds(flags *pflag.FlagSet, about flagKinds) {
	flags.VisitAll(func(f *pflag.Flag) {
		if kinds := about(f.Name); len(kinds) > 0 && !slices.Contains(kinds, settings.Kinds[0].Name) {
			f.Usage = "with " + failure.List(kinds, "and") + ": " + f.Usage
		}
	})
}
