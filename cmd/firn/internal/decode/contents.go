package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/firn-id/firn"
)

// Contents is a decoded id.
type Contents struct {
	Kind   string // empty for a number that a layout decoded and whose kind is not known
	Fields []Field
	Parts  *Result // the same of a number that a layout decoded; nil for others
}

// A Field is one part of an id. Its value is a string, an int64, a time.Time, a [firn.ID] or a [firn.Tick].
type Field struct {
	Name  string
	Value any
}

// Prefix returns the field of an id that has a prefix.
func Prefix(prefix string) Field { return Field{"prefix", prefix} }

// All returns the kind, if it is known, and then the fields.
func (c Contents) All() []Field {
	if c.Kind == "" {
		return c.Fields
	}
	return append([]Field{{"kind", c.Kind}}, c.Fields...)
}

// With returns c with more fields in front of its own.
func (c Contents) With(first ...Field) Contents {
	c.Fields = append(first, c.Fields...)
	return c
}

// MarshalJSON writes the kind and the fields, in order. Ids and ticks are strings: they may exceed 2^53.
func (c Contents) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{")
	for i, f := range c.All() {
		if tick, ok := f.Value.(firn.Tick); ok {
			f.Value = strconv.FormatInt(int64(tick), 10)
		}
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "%q:%s", f.Name, value)
	}
	b.WriteString("}")
	return b.Bytes(), nil
}

// Contents returns the same as the contents of an id of a kind; empty if the kind is not known.
func (r Result) Contents(kind string) Contents {
	return Contents{Kind: kind, Parts: &r, Fields: []Field{
		{"id", r.ID}, {"layout", r.Layout}, timeField(r.Time, r.Note), {"tick", r.Tick},
		{"datacenter", r.Datacenter}, {"worker", r.Worker}, {"sequence", r.Sequence},
	}}
}

// FarAhead reports whether the time is so far in the future that hardly any generator has made the id.
func (r Result) FarAhead(now time.Time) bool { return r.Time.After(now.Add(plausible)) }
