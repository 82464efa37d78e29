package serial

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firn-id/firn"
)

// Parts are the fields of a serial.
type Parts struct {
	firn.Parts           // tick, datacenter, worker, sequence
	ID         firn.ID   // the id of the serial
	Time       time.Time // when the tick began, in the format's zone
}

// Parse returns the id of a serial. It accepts only the exact text that [Format.Text]
// returns for the id. It allocates memory for errors only. Errors are:
//
//   - a *[firn.SyntaxError] for a wrong prefix, length, character or check, for a fill that
//     is not zeros, and for a time that is between two ticks;
//   - a *[firn.RangeError] for a month, an hour or another field that is too great, and for
//     a time before the layout's epoch;
//   - a *[firn.TimeExhaustedError] for a time past the layout's end.
func (f *Format) Parse(text string) (firn.ID, error) {
	p, _, err := f.read(text)
	if err != nil {
		return 0, err
	}
	return f.layout.Compose(p)
}

// Parts returns the fields of a serial. Errors are those of Parse.
func (f *Format) Parts(text string) (Parts, error) {
	p, t, err := f.read(text)
	if err != nil {
		return Parts{}, err
	}
	id, err := f.layout.Compose(p)
	if err != nil {
		return Parts{}, err
	}
	return Parts{Parts: p, ID: id, Time: t.In(f.zone)}, nil
}

const what = "serial"

// read returns the fields of text and checks their ranges.
func (f *Format) read(text string) (p firn.Parts, t time.Time, err error) {
	body, err := f.body(text)
	if err != nil {
		return p, t, err
	}
	digits := clockDigits + f.decimals
	if p.Tick, t, err = f.tick(text, body[:digits]); err != nil {
		return p, t, err
	}
	if strings.Trim(body[digits:digits+f.fill], "0") != "" { // read as a number, it could overflow
		at := len(f.prefix) + digits
		return p, t, firn.NewSyntaxError(what, text, fmt.Sprintf("only zeros are allowed at positions %d to %d, which fill the width", at+1, at+f.fill))
	}
	digits += f.fill
	for i := range f.fields {
		field := &f.fields[i]
		n := take(body[digits:], field.digits)
		if n > uint64(field.max) {
			return p, t, &firn.RangeError{
				What: field.name, Value: fmt.Sprint(n), Min: "0", Max: fmt.Sprint(field.max),
				Where: "layout " + f.layout.Bits() + ", serial " + text,
			}
		}
		*field.of(&p) = int64(n)
		digits += field.digits
	}
	return p, t, nil
}

// body returns the digits between prefix and check. It has checked the prefix, the
// characters, the length and the check.
func (f *Format) body(text string) (string, error) {
	refuse := func(format string, args ...any) (string, error) {
		return "", firn.NewSyntaxError(what, text, fmt.Sprintf(format, args...))
	}
	rest, found := strings.CutPrefix(text, f.prefix)
	switch {
	case text == "":
		return refuse("it is empty")
	case !found:
		return refuse("it begins with %q, the prefix is %q", text[:min(len(text), len(f.prefix))], f.prefix)
	}
	for i := range len(rest) {
		if rest[i] < '0' || rest[i] > '9' {
			return refuse("%s at position %d is not a digit", character(rest[i:]), len(f.prefix)+i+1)
		}
	}
	if len(text) != f.width {
		return refuse("it has %d characters, expected %d: %s", len(text), f.width, f)
	}
	end := len(rest) - f.check.digits()
	var buf [maxWidth]byte
	digits := buf[:copy(buf[:], rest[:end])]
	if got, want := take(rest[end:], f.check.digits()), f.check.of(digits); got != want {
		return refuse("its %s check is %0*d, its digits require %0*d: a digit is wrong, or two are swapped",
			f.check, f.check.digits(), got, f.check.digits(), want)
	}
	return rest[:end], nil
}

// tick returns the tick of a time in digits, and when it begins.
func (f *Format) tick(text, digits string) (firn.Tick, time.Time, error) {
	year, month, day := take(digits, 4), take(digits[4:], 2), take(digits[6:], 2)
	hour, minute, second := take(digits[8:], 2), take(digits[10:], 2), take(digits[12:], 2)
	nanos := take(digits[clockDigits:], f.decimals) * powers[9-f.decimals]
	outside := func(what string, value, least, greatest uint64) (firn.Tick, time.Time, error) {
		return 0, time.Time{}, firn.NewRangeError(what, int64(value), int64(least), int64(greatest), "serial "+text)
	}
	switch {
	case month < 1 || month > 12:
		return outside("month", month, 1, 12)
	case day < 1 || day > daysIn(year, month):
		return outside("day", day, 1, daysIn(year, month))
	case hour > 23:
		return outside("hour", hour, 0, 23)
	case minute > 59:
		return outside("minute", minute, 0, 59)
	case second > 59:
		return outside("second", second, 0, 59)
	}
	local := time.Date(int(year), time.Month(month), int(day), int(hour), int(minute), int(second), 0, time.UTC)
	t := time.Unix(local.Unix()-f.offset, int64(nanos))
	tick, err := f.layout.Tick(t)
	if err != nil {
		return 0, time.Time{}, err
	}
	if !f.layout.Time(tick).Equal(t) {
		return 0, time.Time{}, firn.NewSyntaxError(what, text, "its time is between two ticks of "+f.layout.Unit().String())
	}
	return tick, t, nil
}

// daysIn returns how many days a month has: its last is the day before the first of the next one.
func daysIn(year, month uint64) uint64 {
	return uint64(time.Date(int(year), time.Month(month+1), 0, 0, 0, 0, 0, time.UTC).Day())
}

// take reads the first digits of text, at most 19.
func take(text string, digits int) uint64 {
	n := uint64(0)
	for i := range digits {
		n = n*10 + uint64(text[i]-'0')
	}
	return n
}

// character names the first character of text.
func character(text string) string {
	if r, size := utf8.DecodeRuneInString(text); r != utf8.RuneError || size > 1 {
		return fmt.Sprintf("%q", r)
	}
	return fmt.Sprintf("byte 0x%02x", text[0])
}
