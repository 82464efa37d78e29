package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
)

// What a pool keeps in the store, as small readable JSON:
//
//	firn/POOL/pool           the layout, and whether workers are granted yet
//	firn/POOL/slot/DC/WORKER a slot: its fence, and who holds it
//
// Ticks are strings, since some tools lose integers above 2^53.

// CheckPool returns an error for a pool name that is not 1 to 64 letters,
// digits, dots, dashes and underscores.
func CheckPool(pool string) error { return store.CheckName("pool", pool) }

func poolPrefix(pool string) string { return "firn/" + pool + "/" }
func poolKey(pool string) string    { return poolPrefix(pool) + "pool" }

// slotKey pads the numbers so that keys list in order.
func slotKey(pool string, layout firn.Layout, datacenter, worker int64) string {
	width := func(greatest int64) int { return len(fmt.Sprint(greatest)) }
	return fmt.Sprintf("%sslot/%0*d/%0*d", poolPrefix(pool),
		width(layout.MaxDatacenter()), datacenter, width(layout.MaxWorker()), worker)
}

// poolRecord is the value of a pool's key.
type poolRecord struct {
	Layout string    `json:"layout"`
	Made   time.Time `json:"made"`
	// Open says that workers are granted; until then newcomers wait for holders
	// of an earlier life to re-assert theirs.
	Open bool `json:"open"`
	// Strict is how long a claim waits before it is used, as a duration.
	Strict string `json:"strict,omitempty"`
	// Grace is how long newcomers wait for holders to notice that the store has forgotten
	// them: the longest that any holder takes, as a duration.
	Grace string `json:"grace,omitempty"`
	// Life is that of the store in which the pool is open. None: nobody has learnt it yet.
	Life *string `json:"life,omitempty"`
	// From is the first tick of all claims: whoever had left before newcomers waited, and is
	// forgotten, used only earlier ones.
	From firn.Tick `json:"from,string,omitempty"`
	// Settled is the latest fence of slots that were never given back which was waited for.
	Settled firn.Tick `json:"settled,string,omitempty"`
}

// durationOf writes a duration of a record; zero is left out.
func durationOf(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// slotRecord is the value of a slot's key. Owner and Write together are never
// written twice, so equal bytes are the same write.
type slotRecord struct {
	After firn.Tick `json:"after,string"` // the owner may issue from the next tick on
	Fence firn.Tick `json:"fence,string"`
	Until time.Time `json:"until"` // when the tick of the fence begins, for people who read the record
	Free  bool      `json:"free,omitempty"`
	Owner string    `json:"owner"`
	Write uint64    `json:"write"` // above that of the record it replaced
	Host  string    `json:"host,omitempty"`
	PID   int       `json:"pid,omitempty"`
	Since time.Time `json:"since"` // when the owner took it
	At    time.Time `json:"at"`    // the owner's clock at this write
}

func encode(record any) ([]byte, error) {
	b, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("lease: encode record: %w", err)
	}
	return b, nil
}

func decode(e store.Entry, record any) error {
	if err := json.Unmarshal(e.Value, record); err != nil {
		return fmt.Errorf("%w: key %q does not hold a record of Firn's: %w; use another pool, or remove the key",
			ErrForeign, e.Key, err)
	}
	return nil
}

// A Slot is a worker as the store records it.
type Slot struct {
	Datacenter, Worker int64
	Fence              firn.Tick // no id of the worker has been or may be issued with a later time
	Until              time.Time // when the tick of the fence has ended: it may be granted again from then on
	Free               bool      // given back by its last owner
	Owner              string    // the random token of the process that wrote it last
	Host               string
	PID                int
	Since              time.Time // when the owner took it
	At                 time.Time // the owner's clock when it wrote last

	after    firn.Tick // after which the owner's claim begins
	write    uint64    // the writes of a slot are numbered upward
	revision store.Revision
}

// A Pool is a set of generators whose ids must never collide, as the store
// records it.
type Pool struct {
	Name   string
	Layout firn.Layout
	Made   time.Time
	Open   bool
	Strict time.Duration // how long a claim waits before it is used
	Grace  time.Duration // how long newcomers wait when the store may have forgotten holders
	Slots  []Slot        // in order; workers never used have none

	life     *string
	from     firn.Tick
	settled  firn.Tick
	revision store.Revision
}

// record is the pool's record as it was read.
func (p *Pool) record() poolRecord {
	return poolRecord{Layout: p.Layout.String(), Made: p.Made, Open: p.Open, Strict: durationOf(p.Strict),
		Grace: durationOf(p.Grace), Life: p.life, From: p.from, Settled: p.settled}
}

// Inspect reads a pool; an error that is [store.ErrNotFound] says that nobody
// has joined it yet. It writes nothing.
func Inspect(ctx context.Context, s store.Store, pool string) (Pool, error) {
	if err := CheckPool(pool); err != nil {
		return Pool{}, err
	}
	entries, err := s.List(ctx, poolPrefix(pool))
	if err != nil {
		return Pool{}, fmt.Errorf("lease: read pool %q: %w", pool, err)
	}
	p, found, err := readPool(pool, entries)
	if err == nil && !found {
		err = fmt.Errorf("lease: pool %q: %w", pool, store.ErrNotFound)
	}
	p.Slots = slices.DeleteFunc(p.Slots, func(s Slot) bool { return s.blank() })
	return p, err
}

// readPool makes a pool of its entries. Found is false when its record is
// missing; slots are read all the same if layout tells their fields.
func readPool(name string, entries []store.Entry) (p Pool, found bool, err error) {
	p.Name = name
	for _, e := range entries {
		rest := strings.TrimPrefix(e.Key, poolPrefix(name))
		if rest == "pool" {
			if err := p.read(e); err != nil {
				return p, false, err
			}
			found = true
			continue
		}
		var s Slot
		if n, err := fmt.Sscanf(rest, "slot/%d/%d", &s.Datacenter, &s.Worker); n != 2 || err != nil || !p.has(e.Key, s) {
			continue // a key of somebody else, not ours to judge
		}
		if err := s.read(e); err != nil {
			return p, false, err
		}
		if l := p.Layout; !l.IsZero() && (s.Fence < -1 || s.Fence > l.MaxTick()) {
			err := firn.NewRangeError("fence", int64(s.Fence), -1, int64(l.MaxTick()), "layout "+l.Bits())
			return p, false, fmt.Errorf("%w: key %q: %w; use another pool, or remove the key", ErrForeign, e.Key, err)
		}
		s.date(p.Layout)
		p.Slots = append(p.Slots, s)
	}
	return p, found, nil
}

// read takes the pool's record from its entry.
func (p *Pool) read(e store.Entry) error {
	var r poolRecord
	if err := decode(e, &r); err != nil {
		return err
	}
	var err error
	if p.Layout, err = firn.ParseLayout(r.Layout); err != nil {
		return fmt.Errorf("%w: key %q: %w", ErrForeign, e.Key, err)
	}
	for _, d := range []struct {
		text string
		to   *time.Duration
	}{{r.Strict, &p.Strict}, {r.Grace, &p.Grace}} {
		if d.text == "" {
			continue
		}
		if *d.to, err = time.ParseDuration(d.text); err != nil {
			return fmt.Errorf("%w: key %q: %w", ErrForeign, e.Key, err)
		}
	}
	p.Made, p.Open, p.life, p.from, p.settled, p.revision = r.Made, r.Open, r.Life, r.From, r.Settled, e.Revision
	return nil
}

// has reports whether a key is one of the slots of the pool's layout: not a number
// below zero or beyond its bits, nor one written in another way. The pool's record comes before
// its slots; where it is missing nothing can be told.
func (p *Pool) has(key string, s Slot) bool {
	return p.Layout.IsZero() || key == slotKey(p.Name, p.Layout, s.Datacenter, s.Worker) &&
		0 <= s.Datacenter && s.Datacenter <= p.Layout.MaxDatacenter() &&
		0 <= s.Worker && s.Worker <= p.Layout.MaxWorker()
}

// noFence is below any fence, and so is what a record has that names none.
const noFence firn.Tick = math.MinInt64

func (s *Slot) read(e store.Entry) error {
	r := slotRecord{Fence: noFence, After: noFence}
	if err := decode(e, &r); err != nil {
		return err
	}
	// Without either it would pass for a slot that is idle, whoever holds it.
	if r.Fence == noFence || r.Owner == "" {
		return fmt.Errorf("%w: key %q does not hold a slot of Firn's: it names no fence, or no owner; use another pool, or remove the key",
			ErrForeign, e.Key)
	}
	s.after, s.Fence, s.Until, s.Free, s.Owner, s.write = r.After, r.Fence, r.Until, r.Free, r.Owner, r.Write
	s.Host, s.PID, s.Since, s.At = r.Host, r.PID, r.Since, r.At
	s.revision = e.Revision
	return nil
}

// blank reports whether the slot says no more than none would: it was claimed when there
// was none, and given back unused. The store may still have forgotten one.
func (s *Slot) blank() bool { return s.Free && s.Fence < 0 }

// date says when the slot is free, by the layout of its pool: at the end of the tick
// of its fence, which may be long after its beginning, that the record has. Without
// a layout it can only be told from that.
func (s *Slot) date(l firn.Layout) {
	if !l.IsZero() {
		s.Until = endOf(s.Fence, l)
	}
}

// endOf is when a tick has ended.
func endOf(tick firn.Tick, l firn.Layout) time.Time {
	if tick >= l.MaxTick() {
		return l.End()
	}
	return l.Time(tick + 1)
}
