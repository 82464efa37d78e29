package decode

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/firn-id/firn"
)

// A Reading is one way to read a text as an id.
type Reading struct {
	Encoding firn.Encoding
	ID       firn.ID
}

// readings returns every way to read text as an id, the likeliest first. The list is
// empty if no encoding reads it. Text with the prefix 0x that [firn.Hex] reads is only hex.
// Otherwise the order is:
//
//  1. decimal, without zeros in front;
//  2. encodings whose fixed-width form is exactly this text;
//  3. encodings whose fixed-width form has this length, but other letters;
//  4. encodings whose compact form is exactly this text;
//  5. the rest.
//
// The decoded time is the best hint which reading is meant.
func readings(text string) []Reading {
	if len(text) > len(firn.Base2.Fixed(0)) { // no form is longer
		return nil
	}
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		if id, err := firn.Hex.Parse(text); err == nil {
			return []Reading{{firn.Hex, id}}
		}
	}
	var all []Reading
	for e := firn.Decimal; e <= firn.Base2; e++ {
		if id, err := e.Parse(text); err == nil {
			all = append(all, Reading{e, id})
		}
	}
	slices.SortStableFunc(all, func(a, b Reading) int { return cmp.Compare(a.rank(text), b.rank(text)) })
	return all
}

// MarshalJSON implements [json.Marshaler], with the encoding's name.
func (r Reading) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Encoding string  `json:"encoding"`
		ID       firn.ID `json:"id"`
	}{r.Encoding.String(), r.ID})
}

// plain reports whether text is the id as most write it: in decimal digits, without zeros in front.
func (r Reading) plain(text string) bool {
	return r.Encoding == firn.Decimal && r.Encoding.Compact(r.ID) == text
}

// rank orders the readings of text; the likeliest has the lowest rank.
func (r Reading) rank(text string) int {
	fixed := r.Encoding.Fixed(r.ID)
	switch {
	case r.plain(text):
		return 0
	case fixed == text:
		return 1
	case len(fixed) == len(text):
		return 2
	case r.Encoding.Compact(r.ID) == text:
		return 3
	}
	return 4
}
