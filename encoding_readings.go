package firn

import (
	"cmp"
	"slices"
)

// A Reading is one way to read a text as an id.
type Reading struct {
	Encoding Encoding
	ID       ID
}

// Readings returns every way to read text as an id, the likeliest first. The list is
// empty if no encoding reads it. Text with the prefix 0x that [Hex] reads is only hex.
// Otherwise the order is:
//
//  1. decimal;
//  2. encodings whose fixed-width form is exactly this text;
//  3. encodings whose fixed-width form has this length, but other letters;
//  4. encodings whose compact form is exactly this text;
//  5. the rest.
//
// Within a rank the order is that of [Encodings]. The decoded time is the best hint
// which reading is meant.
func Readings(text string) []Reading {
	if len(text) > Base2.Width() { // no form is longer
		return nil
	}
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		if id, err := Hex.Parse(text); err == nil {
			return []Reading{{Hex, id}}
		}
	}
	var readings []Reading
	for e := range encodings {
		if id, err := e.Parse(text); err == nil {
			readings = append(readings, Reading{e, id})
		}
	}
	slices.SortStableFunc(readings, func(a, b Reading) int { return cmp.Compare(a.rank(text), b.rank(text)) })
	return readings
}

// rank orders the readings of text; the likeliest has the lowest rank.
func (r Reading) rank(text string) int {
	switch {
	case r.Encoding == Decimal:
		return 0
	case r.Encoding.Fixed(r.ID) == text:
		return 1
	case r.Encoding.Width() == len(text):
		return 2
	case r.Encoding.Compact(r.ID) == text:
		return 3
	}
	return 4
}
