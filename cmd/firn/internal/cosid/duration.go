package cosid

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/firn-id/firn"
)

// maxDuration bounds the text of a duration, in bytes; the longest that Java writes has 34.
const maxDuration = 64

// ParseDuration returns the milliseconds of a duration in the format of Java, ISO 8601
// without years and months: PT5M, P1DT12H, PT0.5S, -PT1H, also PT-5M. It rounds down to
// milliseconds. Any other text, or a duration beyond an int64, is a *[firn.SyntaxError].
// CosId's "for ever" is PT2562047788015H12M55.807S, the greatest int64.
func ParseDuration(text string) (int64, error) {
	fail := func(why string) (int64, error) { return 0, firn.NewSyntaxError("duration", text, why) }
	if len(text) > maxDuration {
		return 0, firn.NewSyntaxError("duration", text[:maxDuration], fmt.Sprintf("it has %d bytes; at most %d are allowed", len(text), maxDuration))
	}
	rest, negative := sign(strings.ToUpper(text))
	rest, ok := strings.CutPrefix(rest, "P")
	if !ok || rest == "" {
		return fail("write five minutes as PT5M")
	}
	total := new(big.Int) // nanoseconds
	date, clock, timed := strings.Cut(rest, "T")
	if timed && clock == "" {
		return fail("T must be followed by hours, minutes or seconds")
	}
	for _, part := range []struct{ text, units string }{{date, "D"}, {clock, "HMS"}} {
		text, units := part.text, part.units
		for text != "" {
			var n *big.Int
			var unit byte
			if n, unit, text, ok = amount(text); !ok {
				return fail("write it as in P1DT2H3M4.5S")
			}
			at := strings.IndexByte(units, unit)
			if at < 0 {
				return fail(fmt.Sprintf("%q is in the wrong place: the order is days, T, hours, minutes, seconds", unit))
			}
			units = units[at+1:]
			total.Add(total, n)
		}
	}
	if negative {
		total.Neg(total)
	}
	// Java keeps a duration in seconds; here it must also fit in milliseconds.
	ms := new(big.Int)
	ms.Div(total, big.NewInt(1_000_000)) // Euclidean division rounds down, as the divisor is positive
	if !ms.IsInt64() {
		return fail("it is longer than 292 million years")
	}
	return ms.Int64(), nil
}

// sign cuts the sign off the front of text.
func sign(text string) (rest string, negative bool) {
	if strings.HasPrefix(text, "-") {
		return text[1:], true
	}
	return strings.TrimPrefix(text, "+"), false
}

// secondsIn maps each unit to its seconds.
var secondsIn = map[byte]int64{'D': 86_400, 'H': 3_600, 'M': 60, 'S': 1}

// amount cuts a number and its unit off the front of text, and returns the nanoseconds.
func amount(text string) (n *big.Int, unit byte, rest string, ok bool) {
	text, negative := sign(text)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != ',' })
	if end < 1 {
		return nil, 0, "", false
	}
	unit = text[end]
	whole, fraction, fractional := strings.Cut(strings.Replace(text[:end], ",", ".", 1), ".")
	n, ok = new(big.Int).SetString(whole+(fraction + "000000000")[:9], 10)
	if !ok || whole == "" || fractional && (unit != 'S' || len(fraction) > 9) {
		return nil, 0, "", false
	}
	n.Mul(n, big.NewInt(secondsIn[unit]))
	if negative {
		n.Neg(n)
	}
	return n, unit, text[end+1:], true
}
