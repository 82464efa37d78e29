package settings

import (
	"fmt"
	"slices"
)

// A Verb is a way to ask for ids, in whatever protocol. Which namespaces it fits is decided here, for all of them.
type Verb int

// The verbs.
const (
	Any             Verb = iota // ids in their own form
	Single                      // single ids, as numbers
	SingleGenerated             // single ids, as numbers of a generator
	SingleCounted               // single ids, as numbers of a counter
	Row                         // consecutive ids, of which only the last is answered
	Range                       // a range that the client hands out itself, with its stride
	CounterRange                // a range from the counter in the store, as long as the client says: it computes the first id from the last
)

// verbs have the names of the verbs, for documents, and where ids that can be asked for so come from; nil: it does not matter.
var verbs = [...]struct {
	name string
	from []Source
}{
	Any:             {"ids in their own form", nil},
	Single:          {"single numbers", nil},
	SingleGenerated: {"single numbers of a generator", []Source{Generator}},
	SingleCounted:   {"single numbers of a counter", []Source{Ranges, Counter}},
	Row:             {"consecutive numbers", []Source{Ranges, Counter}},
	Range:           {"ranges of numbers", []Source{Ranges, Counter}},
	CounterRange:    {"ranges from the counter", []Source{Ranges}},
}

func (v Verb) String() string { return verbs[v].name }

// Verbs returns all verbs.
func Verbs() (all []Verb) {
	for v := range verbs {
		all = append(all, Verb(v))
	}
	return all
}

// A Request is a request for ids, with its verb.
type Request struct {
	Protocol, Form string
	Verb           Verb
}

// Requests has all requests that a namespace answers, or refuses by its settings.
var Requests = []Request{
	{"HTTP", "POST /v1/ids/NAME", Any},
	{"HTTP", "GET /v1/decode/ID?namespace=NAME", Any},
	{"HTTP", "POST /v1/ids/NAME?numbers=true", Single},
	{"gRPC", "Generate", Any},
	{"gRPC", "GenerateStream", Any},
	{"gRPC", "Decode", Any},
	{"Redis", "FIRN.NEXT NAME", Any},
	{"Redis", "FIRN.DECODE NAME ID", Any},
	{"Redis", "INCR NAME", Single},
	{"Redis", "SET NAME 0 NX", Single},
	{"Redis", `redisson.getIdGenerator("NAME").nextId()`, Single},
	{"Redis", "INCRBY NAME 3", Row},
	{"Leaf", "/api/snowflake/get/NAME", SingleGenerated},
	{"Leaf", "/api/segment/get/NAME", SingleCounted},
	{"TinyId", "nextId", Single},
	{"TinyId", "nextIdSimple", Single},
	{"TinyId", "nextSegmentId", Range},
	{"TinyId", "nextSegmentIdSimple", Range},
	{"CosId", "GET /ids/as-string/NAME", Any},
	{"CosId", "GET /ids/NAME", Single},
	{"CosId", "PATCH /segments/NAMESPACE/NAME", CounterRange},
	{"CosId", "POST /segments/distributor/NAMESPACE/NAME", CounterRange},
}

// A Shape is a kind with the settings that decide which verbs fit it.
type Shape struct {
	Name string // for documents
	Namespace
}

// Shapes returns all shapes. Their veils have no key.
func Shapes() (all []Shape) {
	for _, k := range Kinds {
		add := func(with string, change func(*Namespace)) {
			n := Namespace{Kind: k.Name}
			change(&n)
			all = append(all, Shape{"`" + k.Name + "`" + with, n})
		}
		add("", func(*Namespace) {})
		if has := keysOf(k.Settings()); k.Numeric {
			add(" with `veil`", func(n *Namespace) { n.Veil = &Veil{} })
			add(" with `prefix`", func(n *Namespace) { n.Prefix = "ord" })
			if slices.Contains(has, "stride") {
				add(" with `stride`", func(n *Namespace) { n.Stride = 2 })
			}
		}
	}
	return all
}

// Lacks returns "" if the ids can be asked for so, and otherwise what they are: "of kind segment and veiled".
func (n Namespace) Lacks(v Verb) string {
	k, also := n.Of(), ""
	switch from := verbs[v].from; {
	case v == Any:
		return ""
	case !k.Numeric, from != nil && !slices.Contains(from, k.Source):
	case n.Prefix != "":
		also = " and written with a prefix"
	case v < Row:
		return ""
	case n.Veil != nil:
		also = " and veiled"
	case n.Stride > 1 && v != Range:
		also = fmt.Sprintf(" and %d apart", n.Stride)
	default:
		return ""
	}
	return "of kind " + k.Name + also
}
