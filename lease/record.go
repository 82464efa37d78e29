package lease

import (
	"context"
	"encoding/json"
	"errors"
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
	Layout firn.Layout `json:"layout"`
	Made   time.Time   `json:"made"`
	// Open says that workers are granted; until then newcomers wait for holders
	// of an earlier life to re-assert theirs.
	Open bool `json:"open"`
	// Strict is how long a claim waits before it is used.
	Strict duration `json:"strict,omitzero"`
	// Grace is how long newcomers wait for holders to notice that the store has forgotten
	// them: the longest that any holder takes.
	Grace duration `json:"grace,omitzero"`
	// Life is that of the store in which the pool is open. None: nobody has learnt it yet.
	Life *string `json:"life,omitempty"`
	// From is the first tick of all claims: whoever had left before newcomers waited, and is
	// forgotten, used only earlier ones.
	From firn.Tick `json:"from,string,omitempty"`
	// Settled is the latest fence of slots that were never given back which was waited for.
	Settled firn.Tick `json:"settled,string,omitempty"`
}

// A duration is written as [time.Duration.String] does.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

// slotRecord is the value of a slot's key. Owner and Write together are never
// written twice, so equal bytes are the same write.
type slotRecord struct {
	After firn.Tick `json:"after,string"` // the owner may issue from the next tick on
	Fence firn.Tick `json:"fence,string"`
	Until time.Time `json:"until"` // when the tick of the fence begins, for people who read the record
	Free  bool      `json:"free,omitempty"`
	Owner string    `json:"owner"` // a token: host and process id tell nobody apart, as containers have the same ones
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
		return foreign(e, err)
	}
	return nil
}

// foreign says why an entry of a pool is none of Firn's.
func foreign(e store.Entry, why error) error {
	return fmt.Errorf("%w: key %q does not hold a record of Firn's: %w; use another pool, or remove the key", ErrForeign, e.Key, why)
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

	record   poolRecord
	revision store.Revision
}

// slot returns the slot of a worker: of one never used the fence is -1, and the revision 0.
func (p *Pool) slot(datacenter, worker int64) Slot {
	for _, s := range p.Slots {
		if s.Datacenter == datacenter && s.Worker == worker {
			return s
		}
	}
	return Slot{Datacenter: datacenter, Worker: worker, Fence: -1}
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
	p, err := readPool(pool, entries)
	if err == nil && p.revision == 0 {
		err = fmt.Errorf("lease: pool %q: %w", pool, store.ErrNotFound)
	}
	p.Slots = slices.DeleteFunc(p.Slots, func(s Slot) bool { return s.blank() })
	return p, err
}

// readPool makes a pool of its entries, in the order of their keys. Where its record is
// missing the revision is 0, and nothing can be told of its slots.
func readPool(name string, entries []store.Entry) (Pool, error) {
	p := Pool{Name: name}
	for _, e := range entries {
		rest := strings.TrimPrefix(e.Key, poolPrefix(name))
		if rest == "pool" {
			if err := p.read(e); err != nil {
				return Pool{}, err
			}
			continue
		}
		var s Slot
		if n, err := fmt.Sscanf(rest, "slot/%d/%d", &s.Datacenter, &s.Worker); n != 2 || err != nil || p.revision == 0 ||
			e.Key != slotKey(name, p.Layout, s.Datacenter, s.Worker) || checkSlot(p.Layout, s.Datacenter, s.Worker) != nil {
			continue // a key of somebody else, or a number written in another way: not ours to judge
		}
		if err := s.read(e, p.Layout); err != nil {
			return Pool{}, err
		}
		p.Slots = append(p.Slots, s)
	}
	return p, nil
}

// read takes the pool's record from its entry.
func (p *Pool) read(e store.Entry) error {
	r, err := readRecord(e)
	p.Layout, p.Made, p.Open, p.Strict, p.Grace = r.Layout, r.Made, r.Open, time.Duration(r.Strict), time.Duration(r.Grace)
	p.record, p.revision = r, e.Revision
	return err
}

// readRecord reads a pool's record, which is none without a layout.
func readRecord(e store.Entry) (r poolRecord, err error) {
	err = decode(e, &r)
	if err == nil && r.Layout.IsZero() {
		err = foreign(e, errors.New("it names no layout"))
	}
	return r, err
}

// checkSlot returns an error for a slot that a layout has no bits for.
func checkSlot(l firn.Layout, datacenter, worker int64) error {
	return errors.Join(
		checkNumber(l, "datacenter", datacenter, 0, l.MaxDatacenter()),
		checkNumber(l, "worker", worker, 0, l.MaxWorker()))
}

func checkNumber(l firn.Layout, what string, value, least, most int64) error {
	if value < least || value > most {
		return firn.NewRangeError(what, value, least, most, "layout "+l.Bits())
	}
	return nil
}

// noFence is below any fence, and so is what a record has that names none.
const noFence firn.Tick = math.MinInt64

// read takes a slot from its entry, by the layout of its pool.
func (s *Slot) read(e store.Entry, l firn.Layout) error {
	r := slotRecord{Fence: noFence, After: noFence}
	if err := decode(e, &r); err != nil {
		return err
	}
	// Without either it would pass for a slot that is idle, whoever holds it.
	if r.Fence == noFence || r.Owner == "" {
		return foreign(e, errors.New("it names no fence, or no owner"))
	}
	if err := checkNumber(l, "fence", int64(r.Fence), -1, int64(l.MaxTick())); err != nil {
		return foreign(e, err)
	}
	s.after, s.Fence, s.Until, s.Free, s.Owner, s.write = r.After, r.Fence, endOf(r.Fence, l), r.Free, r.Owner, r.Write
	s.Host, s.PID, s.Since, s.At = r.Host, r.PID, r.Since, r.At
	s.revision = e.Revision
	return nil
}

// blank reports whether the slot says no more than none would: it was claimed when there
// was none, and given back unused. The store may still have forgotten one.
func (s *Slot) blank() bool { return s.Free && s.Fence < 0 }

// endOf is when a tick has ended.
func endOf(tick firn.Tick, l firn.Layout) time.Time {
	if tick >= l.MaxTick() {
		return l.End()
	}
	return l.Time(tick + 1)
}
