package httpapi

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// A schema is a JSON schema of the draft 2020-12, as OpenAPI 3.1 uses it.
type schema map[string]any

var (
	text   = schema{"type": "string"}
	number = schema{"type": "integer", "format": "int64"}
	moment = schema{"type": "string", "format": "date-time"}
)

// object returns the schema of an object that has these properties, and may have the optional ones.
func object(has schema, optional ...schema) schema {
	properties, required := schema{}, []string{}
	for name, s := range has {
		properties[name] = s
		required = append(required, name)
	}
	for _, more := range optional {
		maps.Copy(properties, more)
	}
	slices.Sort(required)
	return schema{"type": "object", "properties": properties, "required": required}
}

// of returns the schema of what [json.Marshal] writes of a type.
func of[T any]() schema { return ofType(reflect.TypeFor[T]()) }

func ofType(t reflect.Type) schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return moment
	case t.Implements(reflect.TypeFor[json.Marshaler]()), t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return text // ids
	}
	switch t.Kind() {
	case reflect.Pointer:
		return ofType(t.Elem())
	case reflect.Slice:
		return schema{"type": "array", "items": ofType(t.Elem())}
	case reflect.Struct:
		has, optional := schema{}, schema{}
		addFields(t, has, optional)
		return object(has, optional)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Int, reflect.Int64:
		return number
	default:
		return text
	}
}

// addFields adds the fields of a struct. Those of an embedded pointer are there or not together.
func addFields(t reflect.Type, has, optional schema) {
	for f := range t.Fields() {
		name, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Pointer:
			addFields(f.Type.Elem(), optional, optional)
		case name == "":
		case tagged && options == "string":
			has[name] = text
		case tagged:
			optional[name] = ofType(f.Type)
		default:
			has[name] = ofType(f.Type)
		}
	}
}

// ids returns the schema of an answer with ids.
func ids() schema {
	return object(schema{
		"namespace": text, "ids": schema{"type": "array", "items": schema{"type": []string{"string", "integer"}}, "minItems": 1},
	})
}

// listOfNamespaces returns the schema of [namespaces].
func listOfNamespaces() schema {
	return object(schema{"namespaces": schema{"type": "array", "items": reference("Namespace")}})
}

// reference returns a reference to a schema that has a name.
func reference(name string) schema { return schema{"$ref": "#/components/schemas/" + name} }

func anyObject() schema { return schema{"type": "object"} }

// contents returns the schema of [decode.Contents], whose fields depend on the kind.
func contents() schema {
	return object(schema{"id": text}, schema{
		"kind":   schema{"type": "string", "description": "missing if only a layout is known", "examples": kinds()},
		"layout": text, "time": moment, "tick": text, "datacenter": number, "worker": number, "sequence": number, "note": text,
		"prefix": text, "check": text, "veiled": text, "template": text, "period": text, "begins": moment, "number": number,
		"version": number, "variant": text, "unique": text, "counter": number, "machine": text, "process": number,
	})
}

func kinds() (all []string) {
	for _, k := range settings.Kinds {
		all = append(all, k.Name)
	}
	return all
}
