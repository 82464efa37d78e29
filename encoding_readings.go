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

// Readings returns every way to read text as an id, the likeliest first; the list
// is empty if no encoding reads it. Text with 0x in front that [Hex] reads is only
// hex. Otherwise decimal leads, then come the encodings that would write this very
// text as their fixed-width form, those that read it at that width but write it in
// other letters, those that would write it as their compact form, and the rest;
// encodings of one rank in the order of [Encodings]. The decoded time is the best
// hint which one is meant.
func Readings(text string) []Reading {
	if len(text) > Base2.Width() { // nothing is longer; spares the errors of long texts
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

// rank orders the readings of text, the likeliest lowest.
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
