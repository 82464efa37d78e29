package numbering

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/firn-id/firn"
)

// A piece is a literal, a part of the date or the number.
type piece struct {
	literal string
	layout  string // of package time, for a part of the date
	width   int    // for the number
}

// A period is how often numbers start at 1 again.
type period int

const (
	ever period = iota
	year
	month
	day
)

func (p period) String() string { return [...]string{"all time", "year", "month", "day"}[p] }

// each is the period as an error text names it.
func (p period) each() string {
	if p == ever {
		return "all"
	}
	return "a " + p.String()
}

// dateFields are the parts of a date that a template may have.
var dateFields = []dateField{{"yyyy", "2006", year}, {"yy", "06", year}, {"MM", "01", month}, {"dd", "02", day}}

type dateField struct {
	name, layout string
	period       period
}

const (
	maxTemplate = 200
	// maxWidth: a day and a number of this width together fit in 63 bits.
	maxWidth = 10
)

// parse reads a template.
func parse(text string) (pieces []piece, p period, err error) {
	refuse := func(format string, args ...any) error {
		return firn.NewSyntaxError("template", text, fmt.Sprintf(format, args...))
	}
	if len(text) > maxTemplate {
		return nil, 0, refuse("it has %d bytes, up to %d are allowed", len(text), maxTemplate)
	}
	if !utf8.ValidString(text) {
		return nil, 0, refuse("it is not UTF-8")
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return nil, 0, refuse("it has the unprintable character %U", r)
	}
	has := map[period]bool{}
	numbers := 0
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return nil, 0, refuse("there is a } without a { before it")
		}
		if before != "" {
			pieces = append(pieces, piece{literal: before})
		}
		if !found {
			break
		}
		field, after, closed := strings.Cut(after, "}")
		if !closed {
			return nil, 0, refuse("a { is not closed")
		}
		rest = after
		if width, ok := strings.CutPrefix(field, "n:"); ok {
			n := 0
			if _, err := fmt.Sscanf(width, "%d", &n); err != nil || fmt.Sprint(n) != width || n < 1 || n > maxWidth {
				return nil, 0, refuse("{%s}: a width from 1 to %d is wanted, as in {n:6}", field, maxWidth)
			}
			pieces = append(pieces, piece{width: n})
			numbers++
			continue
		}
		parts, periods, ok := parseDate(field)
		if !ok {
			return nil, 0, refuse("{%s} is not one of {n:WIDTH}, {yyyy}, {yy}, {MM}, {dd} or several of these, as in {yyyyMMdd}", field)
		}
		pieces = append(pieces, parts...)
		for _, each := range periods {
			if has[each] {
				return nil, 0, refuse("it has the %s twice", each)
			}
			has[each] = true
			p = max(p, each)
		}
	}
	if numbers == 0 {
		return nil, 0, refuse("{n:WIDTH} is missing, as in {n:6}")
	}
	if numbers > 1 {
		return nil, 0, refuse("it has %d numbers, one is wanted, as in {n:6}", numbers)
	}
	for each := year; each < p; each++ {
		if !has[each] {
			return nil, 0, refuse("it has the %s and not the %s: numbers would repeat themselves", p, each)
		}
	}
	return pieces, p, nil
}

// parseDate reads date fields and the separators between them.
func parseDate(text string) (pieces []piece, periods []period, ok bool) {
	for text != "" {
		i := slices.IndexFunc(dateFields, func(f dateField) bool { return strings.HasPrefix(text, f.name) })
		switch {
		case i >= 0:
			f := dateFields[i]
			pieces, periods, text = append(pieces, piece{layout: f.layout}), append(periods, f.period), text[len(f.name):]
		case strings.ContainsRune("-./_ ", rune(text[0])):
			pieces, text = append(pieces, piece{literal: text[:1]}), text[1:]
		default:
			return nil, nil, false
		}
	}
	return pieces, periods, len(periods) > 0
}

// number numbers the periods in order: 20261121 for a day, 202611 for a month, 2026 for a year.
func (p period) number(y, m, d int64) int64 {
	return [...]int64{0, y, y*100 + m, y*10_000 + m*100 + d}[p]
}

// index is the number of the period with a time.
func (p period) index(at time.Time) int64 {
	y, m, d := at.Date()
	return p.number(int64(y), int64(m), int64(d))
}

// begins returns when the period with an index begins; ok is false if there is no such period.
func (p period) begins(index int64, zone *time.Location) (at time.Time, ok bool) {
	y, m, d := index, int64(1), int64(1)
	switch p {
	case day:
		y, m, d = index/10_000, index/100%100, index%100
	case month:
		y, m = index/100, index%100
	case year:
	default:
		return time.Time{}, index == 0
	}
	// Every day has one noon in every zone; on some days midnight is skipped or comes twice.
	noon := time.Date(int(y), time.Month(m), int(d), 12, 0, 0, 0, zone)
	if p.index(noon) != index || m < 1 || m > 12 {
		return time.Time{}, false
	}
	at = time.Date(int(y), time.Month(m), int(d), 0, 0, 0, 0, zone)
	begins, ends := at.ZoneBounds()
	if p.index(at) < index { // midnight was skipped: the day begins when the clock was set forward
		at = ends
	} else if earlier := begins.Add(-1); !begins.IsZero() && p.index(earlier) == index {
		// The clock was set back past midnight: the first midnight was before that.
		if first := time.Date(int(y), time.Month(m), int(d), 0, 0, 0, 0, zoneOf(earlier)); first.Before(begins) {
			at = first.In(zone)
		}
	}
	return at, true
}

// zoneOf returns a fixed zone with the offset that applies at a time.
func zoneOf(at time.Time) *time.Location {
	name, offset := at.Zone()
	return time.FixedZone(name, offset)
}
