package decode

import (
	"strings"
	"time"
)

// Shown returns a time as answers have it. JSON and protobuf have no time after the year 9999, and RFC 3339 writes none:
// of such a time Shown returns the zero time, and a note for its place.
func Shown(t time.Time) (shown time.Time, note string) {
	if t.Year() > 9999 {
		return time.Time{}, "the time is after the year 9999"
	}
	return t, ""
}

// timeField returns the field of a time as [Shown] returns it.
func timeField(t time.Time, note string) Field {
	if note != "" {
		return Field{"note", note}
	}
	return Field{"time", t}
}

// Grouped writes digits in groups of three.
func Grouped(digits string) string {
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
