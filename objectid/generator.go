package objectid

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
)

// Config is what [New] makes a generator of. Its zero value is a generator with
// five random bytes on the machine's clock.
type Config struct {
	// Unique is the five bytes that no other generator has, such as a number that you
	// give out, or [Historic]. Two generators that share them make equal ids. A
	// leased worker is not enough: no fence ends these ids when the lease is lost.
	// With given bytes the first id waits until the next second has begun,
	// so that a restart makes no id again: see [New]. Default: drawn at random.
	Unique []byte

	// Time is where time is read from. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Random is a source of 64 random bits, called by New only. Default: the
	// operating system's, which copies of a process do not share.
	Random func() uint64
}

// Historic returns the five bytes that ids had until 2018: three that name the
// machine and the process id's low two.
func Historic(machine [3]byte, process uint16) []byte {
	return binary.BigEndian.AppendUint16(machine[:], process)
}

// A Generator makes ids that are strictly increasing: an id asked for after
// another was received is greater, whatever the clock does. Its methods may be
// called from any number of goroutines.
//
// The counter goes on from one second to the next. When it comes round within
// a second, or the clock goes back, the time part runs ahead of the clock
// rather than repeat itself, within bounds: it is at most one second ahead of
// the highest time that the clock has shown, which is room for 16,777,216 ids
// a second for ever; callers who want more wait. While the clock is back the time
// part stands still until that many have been made, and then moves on by at most
// a second per second.
//
// The usual call is one reading of the monotonic clock and one atomic addition
// to the next position, seconds<<24 | counter, whose carry is what runs ahead.
// The wall clock is read when its next second is due, and ten times a second
// besides, in case it was set: that is how late the time part may follow.
type Generator struct {
	_    [64]byte
	word atomic.Uint64 // the next position, or sealed; alone on its cache line
	_    [56]byte

	limit  atomic.Uint64 // positions from here on are not to be had without the lock
	closes atomic.Int64  // the monotonic reading at which the wall clock must be read
	unique uint64
	time   firn.TimeSource

	mu    sync.Mutex    // guards all below
	pos   uint64        // the next position while the word is sealed
	high  int64         // the second that ids may be one ahead of: the highest read, or see decide
	since time.Duration // the monotonic reading when high last rose
}

// Why no position is issued twice: the word only grows while it is open, and
// limit only grows. A caller reads limit first and adds after, and issues only
// what lies below the limit that it read. Under the lock the word is taken back
// by swapping in sealed, and min(word, limit) counts as used: whatever callers
// issued lies below that, since the limit they read was this one or a smaller.

const (
	// sealed marks the word as out of use: above every limit, and far enough from
	// the end that additions cannot wrap it.
	sealed = uint64(1) << 63
	// maxTake bounds the ids that one addition takes.
	maxTake = 1 << 24
	// look is how often the wall clock is read at least.
	look = 100 * time.Millisecond
)

// New returns a generator. It starts at the clock's second, with a random counter.
//
// With given five bytes it starts instead above all that an earlier generator
// with the same bytes can have made, provided that the clock has not gone back in
// between: two seconds on, of which one must have passed before the first id.
//
// Errors match [firn.ErrRange], for bytes that are not five and a clock that
// shows a time before 1970, and [firn.ErrTimeExhausted] from February 2106 on.
func New(cfg Config) (*Generator, error) {
	if cfg.Time == nil {
		cfg.Time = firn.SystemTime()
	}
	if cfg.Random == nil {
		cfg.Random = systemRandom
	}
	given := len(cfg.Unique) > 0
	now := cfg.Time.Wall()
	second := now.Unix()
	var errs []error
	if given && len(cfg.Unique) != 5 {
		errs = append(errs, firn.NewRangeError("number of unique bytes", int64(len(cfg.Unique)), 5, 5, "or none, to draw them at random"))
	}
	if second < 0 {
		errs = append(errs, &firn.RangeError{
			What: "clock's time", Value: stamp(now), Min: "1970-01-01", Max: stamp(end), Where: "the seconds of object ids",
		})
	}
	if second > maxSecond {
		errs = append(errs, exhausted(now))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	g := &Generator{
		time: cfg.Time, unique: cfg.Random() >> 24,
		pos: uint64(second)<<24 | cfg.Random()>>40, high: second, since: cfg.Time.Monotonic(),
	}
	if given {
		g.unique = join([5]byte(cfg.Unique))
		g.pos += 2 << 24
	}
	g.word.Store(sealed)
	g.closes.Store(math.MinInt64)
	return g, nil
}

func systemRandom() uint64 {
	var drawn [8]byte
	rand.Read(drawn[:]) // it does not fail
	return binary.NativeEndian.Uint64(drawn[:])
}

func exhausted(now time.Time) error {
	return fmt.Errorf("the 32-bit seconds of object ids end at %s, and the clock reads %s: %w",
		stamp(end), stamp(now), firn.ErrTimeExhausted)
}

// Next returns the next id. It waits when ids are one second ahead of the
// clock: see [Generator]. The error matches [firn.ErrTimeExhausted] from
// February 2106 on, or is [context.Cause] of a ctx that ended the wait, and comes with
// the zero id. An id that needs no wait is returned even if ctx has ended.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	if int64(g.time.Monotonic()) < g.closes.Load() {
		limit := g.limit.Load()
		if p := g.word.Add(1) - 1; p < limit {
			return compose(p, g.unique), nil
		}
	}
	return g.nextSlowly(ctx)
}

func (g *Generator) nextSlowly(ctx context.Context) (ID, error) {
	p, _, err := g.takeSlowly(ctx, 1)
	if err != nil {
		return ID{}, err
	}
	return compose(p, g.unique), nil
}

// Fill fills ids with increasing ids, waiting as Next does where they do not
// fit at once. It returns how many it has filled, and why not all: the errors of
// Next.
func (g *Generator) Fill(ctx context.Context, ids []ID) (int, error) {
	filled := 0
	for filled < len(ids) {
		first, count, err := g.take(ctx, uint64(min(len(ids)-filled, maxTake)))
		if err != nil {
			return filled, err
		}
		for i := range count {
			ids[filled] = compose(first+i, g.unique)
			filled++
		}
	}
	return filled, nil
}

// take takes up to n positions, at least one, by one addition.
func (g *Generator) take(ctx context.Context, n uint64) (first, count uint64, err error) {
	if int64(g.time.Monotonic()) < g.closes.Load() {
		limit := g.limit.Load()
		if p := g.word.Add(n) - n; p < limit {
			return p, min(n, limit-p), nil
		}
	}
	return g.takeSlowly(ctx, n)
}

func (g *Generator) takeSlowly(ctx context.Context, n uint64) (first, count uint64, err error) {
	for {
		first, count, wait, err := g.decide(n)
		if err != nil || count > 0 {
			return first, count, err
		}
		if err := g.time.Sleep(ctx, wait); err != nil {
			return 0, 0, err
		}
	}
}

// decide takes the word back, reads the wall clock, takes up to n positions and
// opens the word again. When it takes none, the caller should wait.
func (g *Generator) decide(n uint64) (first, count uint64, wait time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	limit := g.limit.Load()
	if word := g.word.Swap(sealed); word < sealed {
		g.pos = min(word, limit)
	}
	mono, wall := g.time.Monotonic(), g.time.Wall()
	second := wall.Unix()
	switch {
	case second > maxSecond:
		return 0, 0, 0, exhausted(wall)
	case second > g.high:
		g.high, g.since = second, mono
	case second < g.high && g.pos >= limit && mono-g.since >= time.Second:
		// The clock is back and a second's ids are used up. Waiting for it could
		// take hours, so a second that has really passed counts in its stead.
		g.high, g.since = g.high+1, mono
	}
	if g.pos>>24 < uint64(max(second, 0)) {
		g.pos = uint64(second)<<24 | g.pos&maxCounter
	}
	limit = min(uint64(g.high)+2, maxSecond+1) << 24
	next := time.Second - time.Duration(wall.Nanosecond()) // until the wall clock's next second
	switch {
	case g.pos < limit:
	case g.pos>>24 > maxSecond:
		return 0, 0, 0, exhausted(wall)
	case second < g.high:
		return 0, 0, max(g.since+time.Second-mono, time.Millisecond), nil
	default:
		return 0, 0, next, nil
	}
	first, count = g.pos, min(n, limit-g.pos)
	g.pos += count
	g.limit.Store(limit)
	g.closes.Store(int64(mono + min(next, look)))
	g.word.Store(g.pos)
	return first, count, 0, nil
}
