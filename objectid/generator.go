package objectid

import (
	"cmp"
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
	"github.com/firn-id/firn/internal/turns"
)

// Config configures [New]. Its zero value gives a generator with five random bytes on the
// machine's clock.
type Config struct {
	// Unique has five bytes that no other generator has, such as a number that you
	// assign. Two generators with equal bytes make equal ids. The number of a
	// leased worker is not safe here: when the lease is lost, no fence stops these ids. If
	// Unique is set, the first id waits until the next second begins, so that a restart
	// repeats no id: see [New]. Default: random bytes.
	Unique []byte

	// Time is the source of time; tests replace it. Default: [firn.SystemTime].
	Time firn.TimeSource
	// Random returns 64 random bits; only New calls it. So copies of a process that has a generator, such
	// as restored snapshots, issue the same ids. Default: crypto/rand.
	Random func() uint64
}

// A Generator makes strictly increasing ids: an id requested after another was received
// is greater, whatever the clock does. Goroutines may share it.
//
// The counter continues from one second to the next. If it overflows within a second, or
// the clock goes back, the time part runs ahead of the clock so that no id repeats. It is at
// most one second ahead of the highest time that the clock has shown. That allows
// 16,777,216 ids a second; further calls wait. While the clock is back, the time part
// stands still until that many ids have been made, and then advances by at most one second
// per second.
//
// The usual call is one reading of the monotonic clock and one atomic addition to the next
// position, seconds<<24 | counter; an overflowing counter carries into the seconds. The
// wall clock is read when its next second is due, and at least ten times a second in case
// it was set, so the time part follows it by a tenth of a second late at most.
//
// A copy of a Generator is the same generator.
type Generator struct{ *generator }

type generator struct {
	_    [64]byte
	word atomic.Uint64 // the next position, or sealed; alone on its cache line
	_    [56]byte

	limit  atomic.Uint64 // positions from here on require the lock
	closes atomic.Int64  // the monotonic reading at which the wall clock must be read
	unique uint64
	time   firn.TimeSource

	mu    sync.Mutex    // guards all below
	pos   uint64        // the next position while the word is sealed
	shown int64         // the highest second read
	high  int64         // ids may be one second ahead of this: the highest second read, or see decide
	since time.Duration // the monotonic reading when high last rose
}

// No position is issued twice. While the word is open, word and limit only grow. A caller
// reads limit first and adds second, and issues only positions below the limit it read.
// Under the lock the word is taken back by swapping in sealed, and the positions below
// min(word, limit) count as used. All positions that callers issued are below that, since
// the limit they read was this one or a smaller one.

const (
	// sealed marks a word that may not be used. It is above every limit, and far enough from
	// the maximum that additions cannot overflow it.
	sealed = uint64(1) << 63
	// maxTake bounds the ids that one addition takes.
	maxTake = 1 << 24
	// look is the longest time between two readings of the wall clock.
	look = 100 * time.Millisecond
)

// New returns a generator. It starts at the clock's second, with a random counter.
//
// If [Config.Unique] is set, it starts two seconds later, above all ids of an earlier
// generator with the same bytes if the clock has not gone back since that one began. One of these
// seconds must pass before the first id.
//
// Errors match [firn.ErrRange] if Unique does not have five bytes or the clock shows a time
// before 1970, and [firn.ErrTimeExhausted] from February 2106 on.
func New(cfg Config) (*Generator, error) {
	cfg.Time = cmp.Or(cfg.Time, firn.SystemTime())
	if cfg.Random == nil {
		cfg.Random = systemRandom
	}
	given := len(cfg.Unique) > 0
	now := cfg.Time.Wall()
	second := now.Unix()
	var errs []error
	if given && len(cfg.Unique) != 5 {
		errs = append(errs, firn.NewRangeError("number of unique bytes", int64(len(cfg.Unique)), 5, 5, "leave Unique empty for random bytes"))
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
	g := &Generator{&generator{
		time: cfg.Time, unique: cfg.Random() >> 24,
		pos: uint64(second)<<24 | cfg.Random()>>40, high: second, shown: second, since: cfg.Time.Monotonic(),
	}}
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
	rand.Read(drawn[:]) // never fails
	return binary.NativeEndian.Uint64(drawn[:])
}

func exhausted(now time.Time) error {
	return fmt.Errorf("the 32-bit seconds of object ids end at %s, and the clock reads %s: %w",
		stamp(end), stamp(now), firn.ErrTimeExhausted)
}

// Next returns the next id. It waits when ids are one second ahead of the clock: see
// [Generator]. If ctx ends a wait, the error matches ctx.Err() and [context.Cause]; an id that needs
// no wait is returned even if ctx has ended. From February 2106 on the error matches
// [firn.ErrTimeExhausted]. With an error the id is zero.
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

// Fill fills ids with increasing ids and waits as Next does. It returns how many it has
// filled, and an error of Next if not all.
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
			return 0, 0, turns.Ended(ctx, "objectid: wait for an id", err)
		}
	}
}

// decide takes the word back, reads the wall clock, takes up to n positions and opens the
// word again. If count is 0, the caller must wait.
func (g *Generator) decide(n uint64) (first, count uint64, wait time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	limit := g.limit.Load()
	if word := g.word.Swap(sealed); word < sealed {
		g.pos = min(word, limit)
	}
	mono, wall := g.time.Monotonic(), g.time.Wall()
	second := wall.Unix()
	g.shown = max(g.shown, second)
	switch {
	case second > maxSecond:
		return 0, 0, 0, exhausted(wall)
	case second > g.high:
		g.high, g.since = second, mono
	case second < g.shown && g.pos >= limit && mono-g.since >= time.Second:
		// The clock is back and the ids of a second are used up. Waiting for the clock could
		// take hours, so one second of the monotonic clock counts instead.
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
	case second < g.shown:
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
