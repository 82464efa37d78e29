package settings

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// withoutMisread returns what the file has at these keys, without the values that cannot be read as a setting of this
// type. It reports each of them, and each unknown key. The YAML library stops at the first, and names types of Go.
func withoutMisread(given any, as reflect.Type, s Setting, keys []string, report reporter) any {
	for as.Kind() == reflect.Pointer {
		as = as.Elem()
	}
	entries, isMap := given.(map[string]any)
	items, isList := given.([]any)
	switch n := max(len(entries), len(items)); {
	case given == nil:
		return nil
	case n > maxEntries:
		report(firn.NewRangeError("number of entries", int64(n), 0, maxEntries, "divide them among several servers"), keys...)
		return nil
	case isMap && as.Kind() == reflect.Struct:
		of := declared(as)
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			at := append(slices.Clone(keys), key)
			i := slices.IndexFunc(of, func(s Setting) bool { return s.Key == key })
			if i < 0 {
				report(unknownKey(as, of, key, entries), at...)
				delete(entries, key)
				continue
			}
			entries[key] = withoutMisread(entries[key], as.FieldByIndex(of[i].field).Type, of[i], at, report)
		}
		return entries
	case isMap && as.Kind() == reflect.Map:
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			entries[key] = withoutMisread(entries[key], as.Elem(), Setting{Key: key}, append(slices.Clone(keys), key), report)
		}
		return entries
	case isList && as.Kind() == reflect.Slice:
		for i := range items {
			at := slices.Clone(keys)
			at[len(at)-1] += fmt.Sprintf("[%d]", i)
			items[i] = withoutMisread(items[i], as.Elem(), Setting{Key: s.Key}, at, report)
		}
		return items
	}
	if err := misread(given, as, s, isMap || isList); err != nil {
		report(err, keys...)
		return nil
	}
	return given
}

// unknownKey is the error about a key that a part of the file does not have.
func unknownKey(part reflect.Type, of []Setting, key string, entries map[string]any) error {
	if part == reflect.TypeFor[Namespace]() {
		kind, _ := entries["kind"].(string)
		if k, err := KindOf(kind); err == nil {
			return fmt.Errorf("%w%s", k.lacks(key), likely(key, append(k.Settings(), ofNamespaces[0])))
		}
	}
	return fmt.Errorf("there is no such setting: %s are allowed%s", strings.Join(keysOf(of), ", "), likely(key, of))
}

// likely ends the error about an unknown key: with the setting of which it is the flag, or the keys that are near.
func likely(key string, of []Setting) string {
	for _, s := range of {
		if s.Flag == key {
			return ": did you mean " + s.Key + "?"
		}
	}
	return failure.DidYouMean(key, keysOf(of))
}

// misread returns an error if a value of the file cannot be read as this type.
func misread(given any, as reflect.Type, s Setting, composite bool) error {
	into := reflect.New(as).Interface()
	meansDefault := func() bool { // a 0 that someone wrote
		return s.value == as && (as.Kind() == reflect.Int || as.Kind() == reflect.Int64) && !s.AllowsZero() && reflect.ValueOf(into).Elem().IsZero()
	}
	if text, ok := into.(encoding.TextUnmarshaler); ok && !composite {
		err := text.UnmarshalText(fmt.Append(nil, given))
		if err == nil && meansDefault() {
			return firn.NewSyntaxError(cmp.Or(s.Noun, s.Key), fmt.Sprint(given), allowedIn(as, s))
		}
		return err
	}
	if _, ok := given.(string); ok && as.Kind() == reflect.String {
		return nil
	}
	written, err := yaml.Marshal(given)
	if err == nil {
		err = unmarshal(written, into)
	}
	if err == nil && !meansDefault() {
		return nil
	}
	allowed := allowedIn(as, s)
	if _, braces := given.(map[string]any); braces && s.Key == "template" {
		allowed = quoteTemplate
	}
	if composite || as.Kind() == reflect.Struct && s.Key != "listen" || as == reflect.TypeFor[[]Token]() {
		return errors.New(allowed) // a text in this place may be a secret
	}
	return firn.NewSyntaxError(cmp.Or(s.Noun, s.Key), fmt.Sprint(given), allowed)
}

// allowedIn says what a setting of a type may be.
func allowedIn(as reflect.Type, s Setting) string {
	example := ""
	if s.Example != "" {
		example = ", as in " + s.Example
	}
	switch as.Kind() {
	case reflect.Bool:
		return "true and false are allowed"
	case reflect.Int, reflect.Int64:
		return cmp.Or(s.Allowed, "whole numbers") + " are allowed"
	case reflect.Struct:
		if as == reflect.TypeFor[Namespace]() {
			return "write its settings, as in {kind: segment}, or {} for the defaults"
		}
		return "write its settings: {" + strings.Join(keysOf(declared(as)), ", ") + "}"
	case reflect.Map:
		return "write entries" + cmp.Or(example, ", as in {NAME: VALUE}")
	case reflect.Slice:
		return "write a list" + cmp.Or(example, ", as in [ONE, ANOTHER]")
	default:
		return "write one value" + example
	}
}
