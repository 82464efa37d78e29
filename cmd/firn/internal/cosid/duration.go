package cosid

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/firn-id/firn"
)

// maxDuration is how long the text of a duration may be; the longest that Java writes has 34.
const maxDuration = 64

// ParseDuration returns the milliseconds of a duration as Java writes and reads it, ISO
// 8601 without years and months: PT5M, P1DT12H, PT0.5S, -PT1H, also PT-5M. A part of a
// millisecond is dropped, towards the past. Anything else, and a duration that does not
// fit, is a *[firn.SyntaxError]. CosId's "for ever" is PT2562047788015H12M55.807S, which is
// the greatest int64.
func ParseDuration(text string) (int64, error) {
	fail := func(why string) (int64, error) { return 0, firn.NewSyntaxError("duration", text, why) }
	if len(text) > maxDuration {
		return 0, firn.NewSyntaxError("duration", text[:maxDuration], fmt.Sprintf("it has %d bytes, at most %d are allowed", len(text), maxDuration))
	}
	rest, negative := sign(strings.ToUpper(text))
	rest, ok := strings.CutPrefix(rest, "P")
	if !ok || rest == "" {
		return fail("it is written as in PT5M for five minutes")
	}
	total := new(big.Int) // nanoseconds
	date, clock, timed := strings.Cut(rest, "T")
	if timed && clock == "" {
		return fail("hours, minutes or seconds are missing after T")
	}
	for _, part := range []struct{ text, units string }{{date, "D"}, {clock, "HMS"}} {
		text, units := part.text, part.units
		for text != "" {
			var n *big.Int
			var unit byte
			if n, unit, text, ok = amount(text); !ok {
				return fail("it is written as in P1DT2H3M4.5S")
			}
			at := strings.IndexByte(units, unit)
			if at < 0 {
				return fail(fmt.Sprintf("%q is out of place: days, T, hours, minutes and seconds follow in this order", unit))
			}
			units = units[at+1:]
			total.Add(total, n)
		}
	}
	if negative {
		total.Neg(total)
	}
	// Java holds a duration as seconds; in milliseconds it must fit as well.
	ms := new(big.Int)
	ms.Div(total, big.NewInt(1_000_000)) // Euclidean: downwards, since the divisor is positive
	if !ms.IsInt64() {
		return fail("it is longer than 292 million years")
	}
	return ms.Int64(), nil
}

// sign takes the sign off the front of a text.
func sign(text string) (rest string, negative bool) {
	if strings.HasPrefix(text, "-") {
		return text[1:], true
	}
	return strings.TrimPrefix(text, "+"), false
}

// nanosIn has the nanoseconds of each unit.
var nanosIn = map[byte]int64{'D': 86_400e9, 'H': 3_600e9, 'M': 60e9, 'S': 1e9}

// amount takes a number and its unit off the front of a text, and returns it in nanoseconds.
func amount(text string) (n *big.Int, unit byte, rest string, ok bool) {
	text, negative := sign(text)
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 1 {
		return nil, 0, "", false
	}
	n, ok = new(big.Int).SetString(text[:end], 10)
	if !ok {
		return nil, 0, "", false
	}
	fraction := ""
	if text[end] == '.' || text[end] == ',' {
		text = text[end+1:]
		end = strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 || end > 9 || text[end] != 'S' {
			return nil, 0, "", false
		}
		fraction = text[:end]
	}
	unit = text[end]
	n.Mul(n, big.NewInt(nanosIn[unit]))
	if fraction != "" {
		f, ok := new(big.Int).SetString((fraction + "000000000")[:9], 10)
		if !ok {
			return nil, 0, "", false
		}
		n.Add(n, f)
	}
	if negative {
		n.Neg(n)
	}
	return n, unit, text[end+1:], true
}
