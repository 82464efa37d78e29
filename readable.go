package firn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Readable returns the readable form of id, such as
//
//	20261120-221503.123-w0017-s0042
//
// It has the UTC time in the layout's precision, then the layout's fields in their order:
// d(atacenter), w(orker), s(equence). Each is padded to the digits of its greatest value,
// so that the texts of one layout sort as its ids do. Errors are those of
// [Layout.Decompose], and a *[RangeError] after the year 9999.
func (l Layout) Readable(id ID) (string, error) {
	p, err := l.Decompose(id)
	if err != nil {
		return "", err
	}
	t := l.Time(p.Tick)
	if t.Unix() >= 253_402_300_800 { // the year 10000; t.Year() overflows a 32-bit int
		return "", &RangeError{What: "time", Value: stamp(t), Min: stamp(l.Epoch()), Max: "the year 9999", Where: "readable form"}
	}
	var b strings.Builder
	b.WriteString(t.Format("20060102-150405"))
	if digits := l.fraction(); digits > 0 {
		b.WriteString("." + fmt.Sprintf("%09d", t.Nanosecond())[:digits])
	}
	for _, f := range l.readableFields(&p) {
		fmt.Fprintf(&b, "-%c%0*d", f.letter, len(strconv.FormatInt(f.max, 10)), *f.value)
	}
	return b.String(), nil
}

// ParseReadable reads the readable form. The zeros that pad fields are optional. Errors
// match [ErrSyntax] or [ErrRange].
func (l Layout) ParseReadable(text string) (ID, error) {
	const what = "readable id"
	clock, fields, more := text, "", false
	if len(text) > len("20060102-") {
		if i := strings.IndexByte(text[len("20060102-"):], '-'); i >= 0 {
			clock, fields = text[:len("20060102-")+i], text[len("20060102-")+i+1:]
			more = true
		}
	}
	// time.Parse accepts a fraction after the seconds even if its format has no fraction.
	t, err := time.Parse("20060102-150405", clock)
	if err != nil || strings.Contains(clock, ",") || len(clock) > len("20060102-150405.123456789") { // which it accepts too
		return 0, NewSyntaxError(what, text, "it must begin with a time such as 20261120-221503.123")
	}
	tick, exact, ok := l.tickOf(t)
	switch {
	case !ok:
		_, err := l.Tick(t)
		return 0, err
	case !exact:
		return 0, NewSyntaxError(what, text, "its time is between two ticks of "+l.Unit().String())
	}
	p := Parts{Tick: tick}
	for _, f := range l.readableFields(&p) {
		var field string
		field, fields, more = strings.Cut(fields, "-")
		n, err := strconv.ParseUint(strings.TrimPrefix(field, string(f.letter)), 10, 63)
		if err != nil || !strings.HasPrefix(field, string(f.letter)) {
			return 0, NewSyntaxError(what, text, fmt.Sprintf("%q must begin with the %s of layout %s, such as %c%d",
				field, f.name, l.Bits(), f.letter, f.max))
		}
		*f.value = int64(n)
	}
	if more {
		return 0, NewSyntaxError(what, text, fmt.Sprintf("layout %s has no field for %q", l.Bits(), fields))
	}
	return l.Compose(p)
}

type readableField struct {
	name   string
	letter rune
	max    int64
	value  *int64
}

// readableFields returns the fields below the time that the layout has, in its order.
func (l Layout) readableFields(p *Parts) []readableField {
	all := []readableField{
		{"datacenter", 'd', l.MaxDatacenter(), &p.Datacenter},
		{"worker", 'w', l.MaxWorker(), &p.Worker},
		{"sequence", 's', l.MaxSequence(), &p.Sequence},
	}
	if l.sequenceFirst {
		all = []readableField{all[2], all[0], all[1]}
	}
	return slices.DeleteFunc(all, func(f readableField) bool { return f.max == 0 })
}

// fraction returns how many decimals of a second write the time of any tick exactly.
func (l Layout) fraction() int {
	digits := 0
	for step := int64(time.Second); digits < 9 && (l.unit%step != 0 || l.epoch%step != 0); step /= 10 {
		digits++
	}
	return digits
}
