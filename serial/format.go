package serial

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
)

// Config configures [New]. All programs that write or read the same serials must have
// equal settings: a serial does not contain them.
type Config struct {
	// Layout of the ids. Default: [firn.DefaultLayout].
	Layout firn.Layout
	// Width is how many characters a serial has, including prefix and check digits; at
	// most 64. Zeros after the time fill the width. Default: 32.
	Width int
	// Prefix begins each serial: ASCII letters and digits. Default: empty.
	Prefix string
	// Zone is the time zone of the time, of one offset: UTC, the default and the best choice, or
	// one such as time.FixedZone("+08:00", 8*60*60). A named zone such as Asia/Shanghai is refused:
	// two machines, or one before and after an update of its zone data, may have different offsets
	// for it, and an hour later the ids of a worker would have the same serials again.
	Zone *time.Location
	// Check adds digits at the end that detect typing errors. Default: [NoCheck].
	Check Check
}

const (
	defaultWidth = 32
	maxWidth     = 64
	clockDigits  = len("yyyyMMddHHmmss")
	lastYear     = 9999
	day          = 24 * 60 * 60
	// endOfYears is after the last year in every zone, in Unix seconds. Beyond it Year may overflow
	// where an int has 32 bits.
	endOfYears = 253402300800 + 2*day
)

// A Format writes and reads serials. Make one with [New]: the zero value is not usable. Its methods may be called concurrently.
type Format struct {
	layout   firn.Layout
	prefix   string
	width    int
	decimals int     // decimals of the second: 3, or more if ticks need them
	fill     int     // zeros between time and fields
	fields   []field // the layout's fields below the time, in its order
	zone     *time.Location
	offset   int64 // of zone from UTC, in seconds
	check    Check
}

// A field is a part of the id below its time.
type field struct {
	name   string
	digits int
	max    int64
}

// of returns where p holds the field.
func (f *field) of(p *firn.Parts) *int64 {
	switch f.name {
	case "datacenter":
		return &p.Datacenter
	case "worker":
		return &p.Worker
	default:
		return &p.Sequence
	}
}

// New returns the format with the settings in cfg. The error names every mistake at once: a
// *[firn.RangeError] for a width that does not fit (it names the least that does), for an
// invalid check, and for a zone a day or more from UTC; a *[firn.SyntaxError] for a
// prefix with other characters and for a zone that is refused.
func New(cfg Config) (*Format, error) {
	cfg.Layout = cmp.Or(cfg.Layout, firn.DefaultLayout())
	cfg.Width = cmp.Or(cfg.Width, defaultWidth)
	cfg.Zone = cmp.Or(cfg.Zone, time.UTC)
	f := &Format{
		layout: cfg.Layout, prefix: cfg.Prefix, width: cfg.Width, decimals: decimals(cfg.Layout),
		fields: fields(cfg.Layout), zone: cfg.Zone, check: cfg.Check,
	}
	var errs []error
	if i := strings.IndexFunc(cfg.Prefix, func(r rune) bool { return !letterOrDigit(r) }); i >= 0 {
		errs = append(errs, config.In("Prefix", firn.NewSyntaxError("prefix of serials", cfg.Prefix,
			fmt.Sprintf("ASCII letters and digits are allowed, but position %d has another character", i+1))))
	}
	errs = append(errs, config.In("Check", config.Check("check", int(cfg.Check), 0, len(checkNames)-1, "NoCheck, Luhn or Mod97")))
	var err error
	f.offset, err = offset(cfg.Zone)
	errs = append(errs, config.In("Zone", err))
	least := f.least()
	switch f.fill = cfg.Width - least; {
	case len(cfg.Prefix) > maxWidth:
		errs = append(errs, config.In("Prefix", firn.NewRangeError("length of prefix", int64(len(cfg.Prefix)), 0, int64(maxWidth-least+len(cfg.Prefix)),
			fmt.Sprintf("serials have at most %d characters", maxWidth))))
	case f.fill < 0 || cfg.Width > maxWidth:
		errs = append(errs, config.In("Width", firn.NewRangeError("width", int64(cfg.Width), int64(least), maxWidth,
			fmt.Sprintf("%s, layout %s", f.pattern(0), cfg.Layout.Bits()))))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f, nil
}

// offset returns the offset from UTC of a zone that has one, in seconds.
func offset(zone *time.Location) (int64, error) {
	const what = "zone of serials"
	since := time.Unix(0, 0).In(zone)
	_, seconds := since.Zone()
	start, end := since.ZoneBounds()
	if zone == time.Local || !start.IsZero() || !end.IsZero() {
		return 0, firn.NewSyntaxError(what, zone.String(), "its offset can change, or differ between machines, which would repeat serials: "+
			"use UTC or one offset, such as +08:00, in Go time.FixedZone")
	}
	if seconds <= -day || seconds >= day {
		return 0, firn.NewRangeError("offset in seconds", int64(seconds), 1-day, day-1, what+" "+zone.String())
	}
	return int64(seconds), nil
}

func letterOrDigit(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// least returns the width without fill.
func (f *Format) least() int {
	n := len(f.prefix) + clockDigits + f.decimals + f.check.digits()
	for _, field := range f.fields {
		n += field.digits
	}
	return n
}

// decimals returns how many decimals of a second write the time of any tick exactly, at
// least three.
func decimals(l firn.Layout) int {
	digits := 3
	for step := int64(time.Millisecond); digits < 9 && (int64(l.Unit())%step != 0 || int64(l.Epoch().Nanosecond())%step != 0); step /= 10 {
		digits++
	}
	return digits
}

// fields returns the fields below the time that the layout has, in its order.
func fields(l firn.Layout) []field {
	all := []field{
		{name: "datacenter", max: l.MaxDatacenter()},
		{name: "worker", max: l.MaxWorker()},
		{name: "sequence", max: l.MaxSequence()},
	}
	if l.Config().SequenceFirst {
		all = []field{all[2], all[0], all[1]}
	}
	for i := range all {
		all[i].digits = len(strconv.FormatInt(all[i].max, 10))
	}
	return slices.DeleteFunc(all, func(f field) bool { return f.max == 0 })
}

// String returns the pattern of the format, such as
// PAYyyyyMMddHHmmssSSS0000wwwwssssc: the prefix, the time with S for milliseconds and f
// for finer decimals, 0 for the fill, d(atacenter), w(orker), s(equence), c(heck).
func (f *Format) String() string { return f.pattern(f.fill) }

func (f *Format) pattern(fill int) string {
	var b strings.Builder
	b.WriteString(f.prefix + "yyyyMMddHHmmssSSS" + strings.Repeat("f", f.decimals-3) + strings.Repeat("0", fill))
	for _, field := range f.fields {
		b.WriteString(strings.Repeat(field.name[:1], field.digits))
	}
	b.WriteString(strings.Repeat("c", f.check.digits()))
	return b.String()
}
