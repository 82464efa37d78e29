package numbering

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// A Counter is a strictly increasing sequence over all processes, as
// [sequence.Sequence] is.
type Counter interface {
	// TakeIn returns the first of n ids in a row that are greater than above and
	// than all that anybody had received, all within one block: ids from k×block to
	// k×block + block − 1 for some k. Where so many are not left in the block that the
	// counter is in, that is [sequence.ErrExhausted].
	TakeIn(ctx context.Context, n int64, above firn.ID, block int64) (firn.ID, error)
}

// Config is what [New] makes a [Format] of. Template and Counter are required.
type Config struct {
	// Template is how numbers look. In braces stand {n:WIDTH}, the number in its
	// period with leading zeros (once, WIDTH up to 10), and parts of the date, alone
	// or several at once: {yyyy}, {yy}, {MM}, {dd}, {yyyyMMdd}, {yyyy-MM}. The finest
	// of them is the period after which numbers begin at 1 again; without any they
	// go on for ever. All else is taken as it stands, if it can be printed.
	Template string
	// Zone is whose calendar it is. Default: UTC.
	Zone *time.Location
	// Counter counts. Everybody who uses it for numbers must have the same template.
	Counter Counter
	// Time is whose clock says which period it is. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Clock, if set, corrects Time to the clock of a store once a minute, so that a
	// period begins when it does there. Without it one process whose clock is ahead
	// takes all others with it: the counter goes to the period that it shows, and stays
	// there until that has passed. A reading may take as long as the Timeout of the
	// counter, if that has such a method, as a [sequence.Sequence] has; else 5s.
	Clock store.Clock
}

// A Format makes and reads business numbers. Make one with [New]; its methods may be
// called concurrently.
type Format struct {
	cfg    Config
	pieces []piece
	period period
	width  int
	block  int64 // ids of the counter in one period

	mu     sync.Mutex
	latest comparison
	fits   atomic.Bool // the counter was where the template has numbers
}

// ErrExhausted says that all numbers of the period are used up.
var ErrExhausted = errors.New("numbering: no number left in this period")

// recheck is how long the offset of a store's clock is relied on.
const recheck = time.Minute

// defaultTimeout is that of sequences.
const defaultTimeout = 5 * time.Second

// New checks cfg. Errors match [firn.ErrSyntax] and say what would be allowed.
func New(cfg Config) (*Format, error) {
	if cfg.Counter == nil {
		return nil, firn.NewSyntaxError("counter", "", "Config.Counter is required")
	}
	pieces, p, err := parse(cfg.Template)
	if err != nil {
		return nil, err
	}
	if cfg.Zone == nil {
		cfg.Zone = time.UTC
	}
	if cfg.Time == nil {
		cfg.Time = firn.SystemTime()
	}
	f := &Format{cfg: cfg, pieces: pieces, period: p, block: 1}
	for _, each := range pieces {
		f.width += each.width
	}
	for range f.width {
		f.block *= 10
	}
	return f, nil
}

// String returns the template.
func (f *Format) String() string { return f.cfg.Template }

// Next returns the next number. Errors: [ErrExhausted], a *[firn.RangeError] if the
// clock shows no year from 1 to 9999, and those of the counter and of its clock; of these,
// [store.ErrUnavailable] if the clock does not answer in time.
func (f *Format) Next(ctx context.Context) (string, error) {
	all, err := f.Take(ctx, 1)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// PerPeriod returns how many numbers there are in a period; in all, without one.
func (f *Format) PerPeriod() int64 { return f.block - 1 }

// MaxTake is how many numbers [Format.Take] returns at most.
const MaxTake = 1 << 20

// Take returns n numbers in a row, all of one period: none if so many are not left.
// N below 1, above [MaxTake] or above what a period has is a *[firn.RangeError]; else
// errors are those of Next.
func (f *Format) Take(ctx context.Context, n int) ([]string, error) {
	if most := min(f.PerPeriod(), MaxTake); n < 1 || int64(n) > most {
		return nil, firn.NewRangeError("how many numbers", int64(n), 1, most, "template "+f.cfg.Template)
	}
	now, err := f.now(ctx)
	if err != nil {
		return nil, err
	}
	if y := now.Year(); y < 1 || y > 9999 {
		return nil, firn.NewRangeError("year of the clock", int64(y), 1, 9999, "")
	}
	above := firn.ID(f.period.index(now) * f.block)
	if err := f.fit(ctx, above); err != nil {
		return nil, err
	}
	first, err := f.cfg.Counter.TakeIn(ctx, int64(n), above, f.block)
	if errors.Is(err, sequence.ErrExhausted) {
		return nil, f.exhausted(err)
	}
	if err != nil {
		return nil, err
	}
	texts := make([]string, n)
	for i := range texts {
		if texts[i], err = f.text(first + firn.ID(i)); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// now reads the clock, as the store's clock has it if there is one.
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

// there reads the store's clock, with a bound, so that nobody waits for ever in a store
// that does not answer.
func (f *Format) there(ctx context.Context) (time.Time, error) {
	timeout := defaultTimeout
	if c, ok := f.cfg.Counter.(interface{ Timeout() time.Duration }); ok {
		timeout = c.Timeout()
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	at, err := f.cfg.Clock.Now(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return at, fmt.Errorf("no answer within %v: %w", timeout, store.Only(store.ErrUnavailable, err))
	}
	return at, err
}

// wall reads the wall clock and nothing else: two times that have a monotonic part
// too are subtracted by that, and do not tell that the clock was set in between.
func (f *Format) wall() time.Time { return f.cfg.Time.Wall().Round(0) }

// A comparison of the wall clock with the store's, and when it was made.
type comparison struct {
	known  bool
	wall   time.Time
	mono   time.Duration
	offset time.Duration
}

// holds reports whether the comparison is good for a reading: it was made not long ago,
// and the wall clock has not been set, nor the machine suspended, since.
func (c comparison) holds(wall time.Time, mono time.Duration) bool {
	passed := mono - c.mono
	return c.known && passed < recheck && (wall.Sub(c.wall)-passed).Abs() < time.Second
}

// fit looks, before the first number, whether the counter is where the template has numbers:
// else each call in vain would use up some of those of the right template. A sequence, and
// nothing else is known to, tells which block it is in when it is asked for a whole one, of
// which it never gives the first id. It reads its record for that as it would to take numbers.
func (f *Format) fit(ctx context.Context, above firn.ID) error {
	counter, ok := f.cfg.Counter.(*sequence.Sequence)
	if !ok || f.fits.Load() {
		return nil
	}
	_, err := counter.TakeIn(ctx, f.block, above, f.block)
	var in *sequence.ExhaustedError
	if !errors.As(err, &in) {
		return err
	}
	if in.Block == 0 { // the counter's own end is in the way, which is not where it is
		return nil
	}
	if _, ok := f.begins(in.Max); !ok {
		return f.foreign(in.Max)
	}
	f.fits.Store(true)
	return nil
}

// begins is when the period of an id of the counter does; ok is false if it has none.
func (f *Format) begins(id firn.ID) (at time.Time, ok bool) {
	// Dates are written in UTC, where every day has a midnight.
	at, ok = f.period.begins(int64(id)/f.block, time.UTC)
	return at, ok && at.Year() <= 9999 // a counter of wider numbers looks like one of the year 20261
}

func (f *Format) foreign(id firn.ID) error {
	return fmt.Errorf("numbering: %d is no number of template %q: the counter is used for something else too", id, f.cfg.Template)
}

// text writes an id of the counter.
func (f *Format) text(id firn.ID) (string, error) {
	at, ok := f.begins(id)
	number := int64(id) % f.block
	if !ok || number == 0 {
		return "", f.foreign(id)
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

// A Number is what a text says.
type Number struct {
	Begins time.Time // of its period, in the format's zone; zero if numbers never begin anew
	N      int64     // from 1
}

// Parse reads what Next wrote. A two-digit year is of the present century. The error
// is a *[firn.SyntaxError].
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
	if f.period == ever {
		return n, nil
	}
	index := map[period]int64{year: y, month: y*100 + m, day: y*10_000 + m*100 + d}[f.period]
	at, ok := f.period.begins(index, f.cfg.Zone)
	if !ok {
		return refuse("it has no such date")
	}
	n.Begins = at
	return n, nil
}
