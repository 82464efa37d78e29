package settings

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"sync"
)

// A schema is a JSON schema of the draft 2020-12.
type schema map[string]any

// Schema returns the JSON schema of the configuration file, for editors. It knows the form of each setting, but neither what
// several settings together must be nor the texts that the library parses, such as layouts.
func Schema() []byte {
	whole := object(declared(reflect.TypeFor[Config]()))
	whole["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	settings := schema{}                 // of namespaces: several kinds have one
	for _, s := range ofNamespaces[1:] { // the first is the kind
		settings[s.Key] = s.schema()
	}
	whole["$defs"] = settings
	whole["title"] = "Configuration of firn serve"
	whole["minProperties"] = 1
	text, _ := json.MarshalIndent(whole, "", "  ") // its values have a JSON
	return append(text, '\n')
}

// object returns the schema of a part of the file that has these settings and no others.
func object(of []Setting) schema {
	properties := schema{}
	for _, s := range of {
		properties[s.Key] = s.schema()
	}
	all := schema{"type": []string{"object", "null"}, "additionalProperties": false, "properties": properties}
	if needs := requiredOf(of); needs != nil {
		all["required"] = needs
	}
	return all
}

// schema returns the schema of a setting, with what an editor shows of it.
func (s Setting) schema() schema {
	all := s.form(s.value)
	all["description"] = markdownLink().ReplaceAllString(s.Help, "$1")
	if s.Unset != "" {
		all["description"] = fmt.Sprintf("%s (default: %s)", all["description"], s.Unset)
	}
	for key, text := range map[string]string{"default": s.Default, "examples": s.Example} {
		var value any
		if text == "" || unmarshal([]byte(text), &value) != nil {
			continue
		}
		if key == "examples" {
			value = []any{value}
		}
		all[key] = value
	}
	return all
}

// markdownLink matches a link of a document. It is compiled on first use.
var markdownLink = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[(.*?)\]\(.*?\)`) })

// form returns the schema of values of a type.
func (s Setting) form(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[Namespace]():
		return namespaceForm()
	case reflect.TypeFor[Duration]():
		all := schema{"type": []string{"string", "null"}, "pattern": `^[-+]?(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)?$`}
		if s.AllowsZero() { // which needs no unit
			all["type"], all["minimum"], all["maximum"] = []string{"string", "integer", "null"}, 0, 0
		} else {
			all["allOf"] = []any{schema{"pattern": "^$|[1-9]"}}
		}
		return all
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.form(t.Elem())
	case reflect.Struct:
		return object(declared(t))
	case reflect.Map:
		return schema{"type": []string{"object", "null"}, "additionalProperties": s.form(t.Elem())}
	case reflect.Slice:
		return schema{"type": []string{"array", "null"}, "items": s.form(t.Elem())}
	case reflect.Bool:
		return schema{"type": []string{"boolean", "null"}}
	case reflect.Int, reflect.Int64:
		return s.whole()
	}
	if words := s.Words(); words != nil {
		all := []any{nil}
		for _, w := range words {
			all = append(all, w)
		}
		return schema{"enum": all}
	}
	return schema{"type": []string{"string", "number", "null"}} // YAML reads 2025 as a number
}

// whole returns the schema of whole numbers, in the range that the setting allows.
func (s Setting) whole() schema {
	if words := s.Words(); words != nil {
		all := []any{nil}
		for _, w := range words {
			all = append(all, json.Number(w))
		}
		return schema{"enum": all}
	}
	all := schema{"type": []string{"integer", "null"}}
	least, most := s.ends()
	if least != nil {
		all["minimum"] = *least
	}
	if most != nil {
		all["maximum"] = *most
	}
	return all
}

// namespaceForm returns the schema of a namespace. Its kind decides which settings it has, so that an editor offers these alone.
func namespaceForm() schema {
	var names []any
	var kinds []schema
	for i, k := range Kinds {
		is, given := []any{k.Name}, []string{"kind"}
		if i == 0 { // the default
			is, given = append(is, nil), []string{}
		}
		names = append(names, is...)
		has := schema{"kind": true}
		for _, s := range k.Settings() {
			has[s.Key] = schema{"$ref": "#/$defs/" + s.Key}
		}
		then := schema{"properties": has, "additionalProperties": false}
		if needs := requiredOf(k.Settings()); needs != nil {
			then["required"] = needs
		}
		kinds = append(kinds, schema{"if": schema{"properties": schema{"kind": schema{"enum": is}}, "required": given}, "then": then})
	}
	kind := ofNamespaces[0].schema()
	delete(kind, "type")
	kind["enum"] = names
	return schema{"type": []string{"object", "null"}, "properties": schema{"kind": kind}, "allOf": kinds}
}

// requiredOf returns the keys that must be there.
func requiredOf(of []Setting) (keys []string) {
	for _, s := range of {
		if s.required {
			keys = append(keys, s.Key)
		}
	}
	return keys
}
