package serial

import (
	"fmt"
	"slices"

	"github.com/firn-id/firn"
)

// A Check says which check digits end a serial. They are computed from the digits after the
// prefix. Each check always finds some kinds of typing errors. It misses other errors
// once in 10 times (Luhn) or 97 times (Mod97), unless a field is then out of range.
type Check uint8

const (
	// NoCheck means that there are no check digits.
	NoCheck Check = iota
	// Luhn is one digit, as on bank cards (ISO/IEC 7812-1). It finds any one wrong digit,
	// and any two swapped neighbours except 09 and 90.
	Luhn
	// Mod97 is the two digits of ISO/IEC 7064 MOD 97-10, as in an IBAN. It finds any one
	// wrong digit and any two swapped neighbours. The number with its check digits
	// has the remainder 1 when divided by 97.
	Mod97
)

var checkNames = []string{NoCheck: "none", Luhn: "luhn", Mod97: "mod97"}

// String returns the name [ParseCheck] reads.
func (c Check) String() string {
	if int(c) < len(checkNames) {
		return checkNames[c]
	}
	return fmt.Sprintf("Check(%d)", uint8(c))
}

// ParseCheck reads "none", "luhn" or "mod97"; the error is a *[firn.SyntaxError].
func ParseCheck(text string) (Check, error) {
	if i := slices.Index(checkNames, text); i >= 0 {
		return Check(i), nil
	}
	return NoCheck, firn.NewSyntaxError("check of serials", text, "none, luhn and mod97 are allowed")
}

// digits returns how many check digits there are.
func (c Check) digits() int {
	switch c {
	case Luhn:
		return 1
	case Mod97:
		return 2
	default:
		return 0
	}
}

// of returns the check of decimal digits: a number with [Check.digits] digits.
func (c Check) of(digits []byte) uint64 {
	switch c {
	case Luhn:
		return luhn(digits)
	case Mod97:
		return mod97(digits)
	default:
		return 0
	}
}

func luhn(digits []byte) uint64 {
	sum := uint64(0)
	for i, digit := range digits {
		d := uint64(digit - '0')
		if (len(digits)-i)&1 == 1 { // every other digit counts double, the last one first
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return (10 - sum%10) % 10
}

func mod97(digits []byte) uint64 {
	n := uint64(0)
	for _, digit := range digits {
		if n >= 1e18 { // the next digit would overflow
			n %= 97
		}
		n = n*10 + uint64(digit-'0')
	}
	return 98 - n%97*100%97
}
