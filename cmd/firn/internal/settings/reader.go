package settings

import (
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/veil"
)

// Reader returns what reads back the ids of a namespace with these settings, which were checked. Cipher is its veil,
// nil without one: whoever reads an id may learn what the veil hides.
func (n Namespace) Reader(cipher *veil.Cipher) (decode.Reader, error) {
	n = n.filled()
	k := n.Of()
	makes := k.Makes(n)
	if cipher != nil {
		makes = "veiled " + makes
	}
	if n.Prefix != "" && k.Format == nil { // which writes prefixes by itself
		makes += " behind the prefix " + n.Prefix + "_"
	}
	if k.Numeric {
		read, err := n.readsNumbers(cipher)
		return decode.Reader{Makes: makes, Read: read}, err
	}
	read, err := k.Read(n)
	if err == nil && n.Prefix != "" && k.Format == nil {
		read, err = n.behindPrefix(read)
	}
	return decode.Reader{Makes: makes, Read: func(text, _ string) (decode.Contents, error) { return read(text) }}, err
}

// ReadByForm returns what reads an id of the kind of n with any prefix, or without one.
func (n Namespace) ReadByForm() (func(string) (decode.Contents, error), error) {
	k := n.Of()
	read, err := k.Read(n)
	if err != nil || k.Format != nil { // which reads prefixes by itself
		return read, err
	}
	return func(text string) (decode.Contents, error) {
		if end := strings.LastIndexByte(text, '_'); end >= 0 {
			of := n
			of.Prefix = text[:end]
			behind, err := of.behindPrefix(read)
			if err != nil {
				return decode.Contents{}, err
			}
			return behind(text)
		}
		return read(text)
	}, nil
}

// behindPrefix returns read for ids whose bytes follow a prefix.
func (n Namespace) behindPrefix(read func(string) (decode.Contents, error)) (func(string) (decode.Contents, error), error) {
	k := n.Of()
	prefix, err := prefixed.New(n.Prefix)
	return func(text string) (decode.Contents, error) {
		id, err := prefix.ParseBytes(text, k.Bytes)
		if err != nil {
			return decode.Contents{}, err
		}
		c, err := read(k.Text(id))
		return c.With(decode.Prefix(n.Prefix)), err
	}, err
}

// readsNumbers returns the function that reads back the ids of a numeric kind: in any encoding or behind a prefix,
// and veiled or not.
func (n Namespace) readsNumbers(cipher *veil.Cipher) (func(text, format string) (decode.Contents, error), error) {
	parse, err := n.parser(cipher != nil)
	explain := n.Of().Number(n)
	return func(text, format string) (decode.Contents, error) {
		var first []decode.Field
		if n.Prefix != "" {
			first = append(first, decode.Prefix(n.Prefix))
		}
		id, err := parse(text, format)
		if err != nil {
			return decode.Contents{}, err
		}
		if cipher != nil {
			first = append(first, decode.Field{Name: "veiled", Value: id})
			if id, err = cipher.Unveil(id); err != nil {
				return decode.Contents{}, err
			}
		}
		c, err := explain(id)
		return c.With(first...), err
	}, err
}

// parser returns the function that parses the text of a number.
func (n Namespace) parser(isVeiled bool) (parse func(text, format string) (firn.ID, error), err error) {
	switch {
	case n.Prefix != "":
		prefix, err := prefixed.New(n.Prefix)
		return func(text, _ string) (firn.ID, error) { return prefix.ParseID(text) }, err
	case n.Generated() && !isVeiled: // the time tells the encoding
		layout := n.layout(Mistakes{})
		return func(text, format string) (firn.ID, error) {
			r, err := decode.Text(text, format, layout, time.Now())
			return r.ID, err
		}, nil
	default:
		return decode.Number, nil
	}
}
