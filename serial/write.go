package serial

import (
	"time"

	"github.com/firn-id/firn"
)

// Text returns the serial of id. The error is a *[firn.RangeError] for an id that the
// layout cannot have made, and for a time after the year 9999.
func (f *Format) Text(id firn.ID) (string, error) {
	p, err := f.layout.Decompose(id)
	if err != nil {
		return "", err
	}
	t := f.layout.Time(p.Tick)
	local := t.Add(time.Duration(f.offset) * time.Second)
	year, month, day := local.Date()
	if t.Unix() >= endOfYears || year > lastYear {
		return "", &firn.RangeError{
			What: "time", Value: t.Format(time.RFC3339), Min: f.layout.Epoch().Format(time.RFC3339), Max: "the year 9999",
			Where: "serials have four digits for the year",
		}
	}
	hour, minute, second := local.Clock()

	var buf [maxWidth]byte
	text := buf[:f.width]
	body := text[copy(text, f.prefix):]
	out := put(body, 4, uint64(year))
	out = put(out, 2, uint64(month))
	out = put(out, 2, uint64(day))
	out = put(out, 2, uint64(hour))
	out = put(out, 2, uint64(minute))
	out = put(out, 2, uint64(second))
	out = put(out, f.decimals, uint64(local.Nanosecond())/powers[9-f.decimals])
	out = put(out, f.fill, 0)
	for i := range f.fields {
		out = put(out, f.fields[i].digits, uint64(*f.fields[i].of(&p)))
	}
	put(out, len(out), f.check.of(body[:len(body)-len(out)]))
	return string(text), nil
}

// put writes n with the given number of digits and returns the rest of out.
func put(out []byte, digits int, n uint64) []byte {
	for i := digits - 1; i >= 0; i-- {
		out[i] = '0' + byte(n%10)
		n /= 10
	}
	return out[digits:]
}

// powers has the powers of ten.
var powers = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6}
