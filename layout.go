package firn

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// A Layout says how the 63 bits of an id are divided, how long a tick lasts and
// when tick 0 began. It is a small comparable value; equal layouts read all ids
// in the same way. The zero Layout is not valid: get one from [DefaultLayout],
// [ParseLayout] or [NewLayout]. Its methods may be called concurrently.
type Layout struct {
	epoch                              int64 // Unix nanoseconds
	unit                               int64 // nanoseconds, at least 1
	time, datacenter, worker, sequence uint8 // bits; time without the sign bit
	sequenceFirst                      bool  // the sequence is above datacenter and worker
	unsigned                           bool  // one more time bit is in the place of the sign: see signTaken
}

// LayoutConfig has the settings of a layout, for [NewLayout].
type LayoutConfig struct {
	// Bits per field. TimeBits is at least 1, the others may be 0; the sum is at
	// most 63. Two published layouts of 64 bits are allowed, Discord's 42/5/5/12
	// and Instagram's 41/0/13/10: their topmost time bit is in the sign's place
	// and stays 0, so they last half as long as their time bits suggest.
	TimeBits, DatacenterBits, WorkerBits, SequenceBits int
	// Unit is the length of a tick, at least a nanosecond. Default: 1ms.
	Unit time.Duration
	// Epoch is when tick 0 begins, between the years 1678 and 2261.
	// Default: 2025-01-01T00:00:00Z.
	Epoch time.Time
	// SequenceFirst puts the sequence above datacenter and worker, as Sonyflake does.
	// Default: time, datacenter, worker, sequence.
	SequenceFirst bool
}

const (
	maxBits     = 63
	defaultUnit = time.Millisecond
)

// The epochs that Unix nanoseconds can hold, rounded inwards to whole years.
var (
	minEpoch     = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)
	maxEpoch     = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC).Add(-1)
	defaultEpoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
)

// NewLayout returns the layout with the settings in cfg. The error names every mistake
// at once; each is a *[RangeError].
func NewLayout(cfg LayoutConfig) (Layout, error) {
	cfg.Unit = cmp.Or(cfg.Unit, defaultUnit)
	if cfg.Epoch.IsZero() {
		cfg.Epoch = defaultEpoch
	}
	return newLayout(cfg)
}

// newLayout is NewLayout without defaults. ParseLayout uses it so that a unit of 0 in a
// text is refused, not replaced by the default.
func newLayout(cfg LayoutConfig) (Layout, error) {
	text := fmt.Sprintf("%d/%d/%d/%d", cfg.TimeBits, cfg.DatacenterBits, cfg.WorkerBits, cfg.SequenceBits)
	var errs []error
	field := func(what string, value, least int) {
		if value < least || value > maxBits {
			errs = append(errs, NewRangeError(what+" bits", int64(value), int64(least), maxBits, "layout "+text))
		}
	}
	field("time", cfg.TimeBits, 1)
	field("datacenter", cfg.DatacenterBits, 0)
	field("worker", cfg.WorkerBits, 0)
	field("sequence", cfg.SequenceBits, 0)
	sum := cfg.TimeBits + cfg.DatacenterBits + cfg.WorkerBits + cfg.SequenceBits
	unsigned := cfg.signTaken()
	if len(errs) == 0 && sum > maxBits && !unsigned {
		errs = append(errs, &RangeError{
			What: "sum of bits of layout " + text + ",", Value: fmt.Sprint(sum), Min: "1", Max: "63",
			Where: "at most 63 bits fit beside the sign",
		})
	}
	if cfg.Unit < 1 {
		errs = append(errs, &RangeError{What: "unit", Value: cfg.Unit.String(), Min: "1ns", Max: "2562047h"})
	}
	if err := checkEpoch(cfg.Epoch); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return Layout{}, errors.Join(errs...)
	}
	if unsigned {
		cfg.TimeBits--
	}
	return Layout{
		unsigned: unsigned,
		epoch:    cfg.Epoch.UnixNano(), unit: int64(cfg.Unit),
		time: uint8(cfg.TimeBits), datacenter: uint8(cfg.DatacenterBits),
		worker: uint8(cfg.WorkerBits), sequence: uint8(cfg.SequenceBits),
		sequenceFirst: cfg.SequenceFirst,
	}, nil
}

// signTaken reports whether the bits are those of a published layout with 64 bits. Any
// other layout with 64 bits is considered a mistake.
func (cfg LayoutConfig) signTaken() bool {
	switch [4]int{cfg.TimeBits, cfg.DatacenterBits, cfg.WorkerBits, cfg.SequenceBits} {
	case [4]int{42, 5, 5, 12}, [4]int{41, 0, 13, 10}: // Discord, Instagram
		return true
	default:
		return false
	}
}

// Config returns the settings of the layout, from which [NewLayout] makes it again.
func (l Layout) Config() LayoutConfig {
	time := int(l.time)
	if l.unsigned {
		time++
	}
	return LayoutConfig{
		TimeBits: time, DatacenterBits: int(l.datacenter), WorkerBits: int(l.worker), SequenceBits: int(l.sequence),
		Unit: l.Unit(), Epoch: l.Epoch(), SequenceFirst: l.sequenceFirst,
	}
}

// Unit returns how long a tick lasts.
func (l Layout) Unit() time.Duration { return time.Duration(l.unit) }

// Epoch returns when tick 0 begins, in UTC.
func (l Layout) Epoch() time.Time { return time.Unix(0, l.epoch).UTC() }

// MaxTick returns the last tick.
func (l Layout) MaxTick() Tick { return Tick(mask(l.time)) }

// MaxDatacenter returns the greatest datacenter number; the least is 0.
func (l Layout) MaxDatacenter() int64 { return int64(mask(l.datacenter)) }

// MaxWorker returns the greatest worker number; the least is 0.
func (l Layout) MaxWorker() int64 { return int64(mask(l.worker)) }

// MaxSequence returns the greatest sequence number within a tick.
func (l Layout) MaxSequence() int64 { return int64(mask(l.sequence)) }

// MaxID returns the greatest id the layout can make.
func (l Layout) MaxID() ID {
	return ID(mask(l.time + l.datacenter + l.worker + l.sequence))
}

// Parts are the fields of an id.
type Parts struct {
	Tick       Tick
	Datacenter int64
	Worker     int64
	Sequence   int64
}

// Compose returns the id with the given parts, or a *[RangeError] per part
// that does not fit its field.
func (l Layout) Compose(p Parts) (ID, error) {
	var errs []error
	field := func(what string, value int64, width uint8) {
		if greatest := int64(mask(width)); value < 0 || value > greatest {
			errs = append(errs, NewRangeError(what, value, 0, greatest, "layout "+l.Bits()))
		}
	}
	field("tick", int64(p.Tick), l.time)
	field("datacenter", p.Datacenter, l.datacenter)
	field("worker", p.Worker, l.worker)
	field("sequence", p.Sequence, l.sequence)
	if len(errs) > 0 {
		return 0, errors.Join(errs...)
	}
	c := newComposer(l, p.Datacenter, p.Worker)
	return c.id(uint64(p.Tick)<<l.sequence | uint64(p.Sequence)), nil
}

// Decompose returns the parts of id, or a *[RangeError] when id is negative
// or wider than the layout.
func (l Layout) Decompose(id ID) (Parts, error) {
	if id < 0 || id > l.MaxID() {
		return Parts{}, NewRangeError("id", int64(id), 0, int64(l.MaxID()),
			fmt.Sprintf("layout %s has %d bits", l.Bits(), bits.Len64(uint64(l.MaxID()))))
	}
	u := uint64(id)
	p := Parts{Tick: Tick(u >> (l.datacenter + l.worker + l.sequence))}
	if l.sequenceFirst {
		p.Sequence = int64(u >> (l.datacenter + l.worker) & mask(l.sequence))
	} else {
		p.Sequence = int64(u & mask(l.sequence))
		u >>= l.sequence
	}
	p.Worker = int64(u & mask(l.worker))
	p.Datacenter = int64(u >> l.worker & mask(l.datacenter))
	return p, nil
}

// mask returns a number of width low bits set; width is at most 63.
func mask(width uint8) uint64 { return 1<<width - 1 }
