// Package numbering makes business numbers: counted from 1, or Config.Start, in each day, month or year, and written as a
// template says.
//
//	all, err := sequence.New(sequence.Config{Store: s})
//	...
//	orders, err := all.Namespace("orders")
//	f, err := numbering.New(numbering.Config{Template: "ORD{yyyyMMdd}-{n:6}", Zone: zone, Counter: orders})
//	text, err := f.Next(ctx) // ORD20261121-000042
//
// The counter is one strictly increasing sequence over all processes. Its ids contain the period and the
// number in it, so the period changes for all processes at once: when the first of them finds that a new
// one has begun. After that no process issues a number of the old period, whatever its clock shows.
//
// The store keeps the template and its zone with the counter: others are refused with [store.ErrTaken].
//
// Numbers are unique and increase. A failed call may leave a gap, and each call asks the store. Do not
// use it where the law forbids gaps, where numbers must not show how many were issued (see package
// veil), or for many ids a second: package segment is faster.
package numbering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// A Counter is a strictly increasing sequence over all processes, as [sequence.Namespace] is. A wrapper must forward all
// its methods, as one that embeds it does.
type Counter interface {
	// ReserveIn returns the first of n consecutive ids. They are greater than above and than every id
	// that any caller has received, and lie within one block: k×block to k×block + block − 1 for some
	// k. If the counter's current block has fewer than n left, the error is [sequence.ErrExhausted].
	ReserveIn(ctx context.Context, n int, above firn.ID, block int64) (firn.ID, error)
	// Declare has the counter refuse formats with another form: they get a *[store.TakenError].
	Declare(form string) error
	// Clock returns the clock of the counter's store; nil if it has none.
	Clock() store.Clock
	// Timeout bounds a reading of that clock.
	Timeout() time.Duration
}

// Config is what [New] makes a [Format] of. Template and Counter are required.
type Config struct {
	// Template is how numbers look. It has {n:WIDTH} once, the number in its period with leading zeros
	// (WIDTH up to 10), and may have parts of the date, alone or together: {yyyy}, {yy}, {MM}, {dd},
	// {yyyyMMdd}, {yyyy-MM}. The finest part is the period after which numbers start at 1 again;
	// without a date they never do. All other printable text is copied.
	Template string
	// Zone is the time zone of the dates. [time.Local] is refused, since it differs between machines.
	// Default: UTC.
	Zone *time.Location
	// Start is the least number of each period: a counter that is below it in the current one goes on
	// there. 1 to 10^WIDTH - 1. Default: 1.
	Start int64
	// Counter counts. All formats over one counter must have the same template and, if that has a date,
	// the same zone, by name and offsets: others get a *[store.TakenError].
	Counter Counter
	// Time is the clock that decides the period. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Clock corrects Time to the clock of a store once a minute, so that a period begins when it does
	// on the store's clock. Without it, one process whose clock is ahead moves all others: the counter
	// goes to the period of that clock and stays there until it has passed. Reading the clock takes at
	// most the counter's Timeout. Default: that of the counter's store, if it has one.
	Clock store.Clock
}

// A Format makes and reads business numbers. Make one with [New]: the zero value is not usable. Do not copy it. Its methods may run
// concurrently.
type Format struct {
	cfg    Config
	pieces []piece
	period period
	width  int
	block  int64 // ids of the counter in one period

	mu     sync.Mutex
	latest comparison
}

// ErrExhausted says that the period has no number left.
var ErrExhausted = errors.New("numbering: no number left in this period")

// recheck is how long the measured offset of a store's clock is valid.
const recheck = time.Minute

// New checks cfg. Errors match [firn.ErrSyntax] and name the allowed values, or are those of the counter's Declare.
func New(cfg Config) (*Format, error) {
	if err := config.Required("numbering", "Counter", cfg.Counter); err != nil {
		return nil, err
	}
	if cfg.Zone == time.Local {
		return nil, config.Mistake("numbering", "Zone",
			"is time.Local, which differs between machines: use time.LoadLocation with the name of a zone")
	}
	pieces, p, err := parse(cfg.Template)
	if err != nil {
		return nil, err
	}
	cfg.Zone, cfg.Time = cmp.Or(cfg.Zone, time.UTC), cmp.Or(cfg.Time, firn.SystemTime())
	// The store compares zones by name and offsets.
	if _, offset := time.Unix(0, 0).In(cfg.Zone).Zone(); offset != 0 && (cfg.Zone.String() == "" || cfg.Zone.String() == "UTC") {
		return nil, config.Mistake("numbering", "Zone",
			fmt.Sprintf("is named %q and is not UTC: give a fixed zone a name that says its offset", cfg.Zone.String()))
	}
	if cfg.Clock == nil {
		cfg.Clock = cfg.Counter.Clock()
	} else if err := config.Required("numbering", "Clock", cfg.Clock); err != nil {
		return nil, err
	}
	f := &Format{cfg: cfg, pieces: pieces, period: p, block: 1}
	for _, each := range pieces {
		f.width += each.width
	}
	for range f.width {
		f.block *= 10
	}
	f.cfg.Start = cmp.Or(cfg.Start, 1)
	if err := config.Check("first number", f.cfg.Start, 1, f.PerPeriod(), "template "+cfg.Template); err != nil {
		return nil, config.Of[Config]("numbering", config.In("Start", err))
	}
	if err := cfg.Counter.Declare(f.form()); err != nil {
		return nil, err
	}
	return f, nil
}

// form is what the store keeps with the counter. In another zone the period changes at another moment: the first
// to reach it would move the counter, and the others would print the date of tomorrow.
func (f *Format) form() string {
	form := "template " + f.cfg.Template
	if f.period != ever && f.cfg.Zone.String() != "UTC" {
		form = "zone " + zoneName(f.cfg.Zone) + ", " + form
	}
	return form
}

// zoneName names a zone and its offsets in a past year: anybody may call a fixed zone CET. Machines with other rules for
// present years agree about it.
func zoneName(zone *time.Location) string {
	offset := func(month time.Month) string {
		return time.Date(2020, month, 1, 0, 0, 0, 0, time.UTC).In(zone).Format("-07:00")
	}
	name, winter, summer := zone.String(), offset(time.January), offset(time.July)
	if name != winter {
		name += " " + winter
	}
	if summer != winter {
		name += "/" + summer
	}
	return name
}

// String returns the template.
func (f *Format) String() string { return f.cfg.Template }

// Period returns how often numbers start at 1 again: "day", "month", "year", or "" for never.
func (f *Format) Period() string {
	if f.period == ever {
		return ""
	}
	return f.period.String()
}

// Next returns the next number. Errors: [ErrExhausted], a *[firn.RangeError] if the
// clock's year is not from 1 to 9999, those of the counter and those of Config.Clock:
// [store.ErrUnavailable] if it does not answer in time.
func (f *Format) Next(ctx context.Context) (string, error) {
	all, err := f.Reserve(ctx, 1)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// PerPeriod returns how many numbers a period has, or in all if there is no period.
func (f *Format) PerPeriod() int64 { return f.block - 1 }

// Left returns how many numbers of the present period, or in all, are left if last is the greatest id of the counter that
// anybody got. It asks no store: the present is as of the latest Reserve and the time since.
func (f *Format) Left(last firn.ID) int64 {
	wall := f.wall()
	f.mu.Lock()
	now := wall.Add(f.latest.offset).In(f.cfg.Zone)
	f.mu.Unlock()
	begins := max(f.period.index(now), int64(last)/f.block) * f.block
	return begins + f.PerPeriod() - max(int64(last), begins+f.cfg.Start-1)
}

// maxReserve is the most numbers that one Reserve returns.
const maxReserve = 1 << 20

// Reserve returns n consecutive numbers of one period, or an error if fewer are left.
// If n is below 1, above 1,048,576 or above PerPeriod, the error is a
// *[firn.RangeError]. Other errors are those of Next.
func (f *Format) Reserve(ctx context.Context, n int) ([]string, error) {
	if most := min(f.PerPeriod(), maxReserve); n < 1 || int64(n) > most {
		return nil, firn.NewRangeError("how many numbers", int64(n), 1, most, "template "+f.cfg.Template)
	}
	now, err := f.now(ctx)
	if err != nil {
		return nil, err
	}
	if y := now.Year(); y < 1 || y > 9999 {
		return nil, firn.NewRangeError("year of the clock", int64(y), 1, 9999, "")
	}
	above := firn.ID(f.period.index(now)*f.block + f.cfg.Start - 1)
	first, err := f.cfg.Counter.ReserveIn(ctx, n, above, f.block)
	if errors.Is(err, sequence.ErrExhausted) {
		return nil, f.exhausted(err)
	}
	if err != nil {
		return nil, err
	}
	texts := make([]string, n)
	for i := range texts {
		if texts[i], err = f.Text(first + firn.ID(i)); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// now reads the clock, corrected to the store's clock if there is one.
func (f *Format) now(ctx context.Context) (time.Time, error) {
	wall, mono := f.wall(), f.cfg.Time.Monotonic()
	if f.cfg.Clock == nil {
		return wall.In(f.cfg.Zone), nil
	}
	f.mu.Lock()
	latest := f.latest
	f.mu.Unlock()
	if !latest.holds(wall, mono) {
		there, err := f.there(ctx)
		if err != nil {
			return time.Time{}, fmt.Errorf("numbering: read the store's clock: %w", err)
		}
		after := f.cfg.Time.Monotonic()
		wall = f.wall()
		// The answer is about half a round trip old.
		latest = comparison{known: true, wall: wall, mono: after, offset: there.Add((after - mono) / 2).Sub(wall)}
		f.mu.Lock()
		f.latest = latest
		f.mu.Unlock()
	}
	return wall.Add(latest.offset).In(f.cfg.Zone), nil
}

// there reads the store's clock, with a timeout, so that it blocks no caller for ever.
func (f *Format) there(ctx context.Context) (time.Time, error) {
	timeout := f.cfg.Counter.Timeout()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	at, err := f.cfg.Clock.Now(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return at, fmt.Errorf("no answer within %v: %w", timeout, &store.TextError{Kind: store.ErrUnavailable, Err: err})
	}
	return at, err
}

// wall reads the wall clock without its monotonic part, which would hide that the clock was set.
func (f *Format) wall() time.Time { return f.cfg.Time.Wall().Round(0) }

// A comparison of the wall clock with the store's, and when it was made.
type comparison struct {
	known  bool
	wall   time.Time
	mono   time.Duration
	offset time.Duration
}

// holds reports whether the comparison is valid for a reading: it is recent, and since then the wall
// clock was not set and the machine was not suspended.
func (c comparison) holds(wall time.Time, mono time.Duration) bool {
	passed := mono - c.mono
	return c.known && passed < recheck && (wall.Sub(c.wall)-passed).Abs() < time.Second
}

// begins returns when the period of a counter's id begins; ok is false if the id has no period.
func (f *Format) begins(id firn.ID) (at time.Time, ok bool) {
	// Format dates in UTC, where every day has a midnight.
	at, ok = f.period.begins(int64(id)/f.block, time.UTC)
	return at, ok && at.Year() <= 9999 // a counter of wider numbers has years like 20261
}

// Text formats an id of the counter, as Next does with one that it takes: for people who read a counter.
func (f *Format) Text(id firn.ID) (string, error) {
	at, ok := f.begins(id)
	number := int64(id) % f.block
	if !ok || number <= 0 || f.period != ever && at.Year() < 1 {
		return "", fmt.Errorf("numbering: %d is not a valid number of template %q: the counter is used for something else too",
			id, f.cfg.Template)
	}
	var b strings.Builder
	for _, p := range f.pieces {
		switch {
		case p.width > 0:
			fmt.Fprintf(&b, "%0*d", p.width, number)
		case p.layout != "":
			b.WriteString(at.Format(p.layout))
		default:
			b.WriteString(p.literal)
		}
	}
	return b.String(), nil
}

// A Number is the content of a formatted number.
type Number struct {
	Begins time.Time // start of its period, in the format's zone; zero if the template has no date
	N      int64     // from 1
	ID     firn.ID   // of the counter, see [Format.Text]
}

// Parse reads a number that Next returned. A two-digit year is in the present century. The error is a
// *[firn.SyntaxError].
func (f *Format) Parse(text string) (Number, error) {
	refuse := func(format string, args ...any) (Number, error) {
		return Number{}, firn.NewSyntaxError("number of "+f.cfg.Template, text, fmt.Sprintf(format, args...))
	}
	var n Number
	y, m, d := int64(0), int64(1), int64(1)
	rest := text
	for _, p := range f.pieces {
		width := max(p.width, len(p.layout), len(p.literal))
		if len(rest) < width {
			return refuse("it is too short")
		}
		part := rest[:width]
		rest = rest[width:]
		if p.literal != "" {
			if part != p.literal {
				return refuse("%q is wanted where it has %q", p.literal, part)
			}
			continue
		}
		value, err := strconv.ParseInt(part, 10, 64)
		if err != nil || strings.Trim(part, "0123456789") != "" {
			return refuse("digits are wanted where it has %q", part)
		}
		switch p.layout {
		case "2006":
			y = value
		case "06":
			y = int64(f.cfg.Time.Wall().In(f.cfg.Zone).Year()/100*100) + value
		case "01":
			m = value
		case "02":
			d = value
		default:
			n.N = value
		}
	}
	if rest != "" {
		return refuse("%q follows it", rest)
	}
	if n.N == 0 {
		return refuse("numbers begin at 1")
	}
	n.ID = firn.ID(n.N)
	if f.period == ever {
		return n, nil
	}
	period := f.period.number(y, m, d)
	n.ID += firn.ID(period * f.block)
	var ok bool
	if n.Begins, ok = f.period.begins(period, f.cfg.Zone); !ok || y < 1 {
		return refuse("it has no such date")
	}
	return n, nil
}
