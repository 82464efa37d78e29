package lease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// What a pool keeps in the store, as small readable JSON:
//
//	firn/POOL/pool           the layout, and whether workers are granted yet
//	firn/POOL/slot/DC/WORKER a slot: its fence, and who holds it
//
// Ticks are strings, since some tools lose integers above 2^53.

func poolPrefix(pool string) string { return "firn/" + pool + "/" }
func poolKey(pool string) string    { return poolPrefix(pool) + "pool" }

// slotKey pads the numbers so that keys list in order.
func slotKey(pool string, layout firn.Layout, datacenter, worker int64) string {
	width := func(greatest int64) int { return len(fmt.Sprint(greatest)) }
	return fmt.Sprintf("%sslot/%0*d/%0*d", poolPrefix(pool),
		width(layout.MaxDatacenter()), datacenter, width(layout.MaxWorker()), worker)
}

// A Pool is the store's record of a set of generators whose ids must never collide.
type Pool struct {
	Name   string      `json:"-"`
	Layout firn.Layout `json:"layout"`
	Made   time.Time   `json:"made"`
	// Open: workers are granted. While it is false, newcomers wait for holders of an earlier life.
	Open bool `json:"open"`
	// Strict is how long a claim waits before it is used.
	Strict Duration `json:"strict,omitzero"`
	// Grace is how long newcomers wait for holders to notice that the store has forgotten them.
	Grace Duration `json:"grace,omitzero"`
	// Tolerance is how far the clock of a member may be from the store's. Records of older versions,
	// which lack it, have the default.
	Tolerance Duration `json:"tolerance"`
	// Life is the life of the store in which the pool is open. Nil: not learnt yet.
	Life *string `json:"life,omitempty"`
	// From is the first tick that claims may use: forgotten holders that had left before newcomers
	// waited used only earlier ticks.
	From firn.Tick `json:"from,string,omitempty"`
	// Settled is the latest fence, of slots never released, that newcomers have waited for.
	Settled firn.Tick `json:"settled,string,omitempty"`

	Slots    []Slot `json:"-"` // in order; workers never used have no slot
	part     part   // Slots are those of this part
	revision store.Revision
}

// A Duration is a time.Duration that is written as in 500ms, 1s or 5m.
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. Its error is a *[firn.SyntaxError].
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return firn.NewSyntaxError("duration", string(text), "write it as in 500ms, 1s or 5m")
	}
	*d = Duration(parsed)
	return nil
}

// A Slot is the store's record of a worker. No two writes have the same Owner and Write.
type Slot struct {
	Datacenter int64     `json:"-"`
	Worker     int64     `json:"-"`
	After      firn.Tick `json:"after,string"` // the owner may issue from the next tick on
	Fence      firn.Tick `json:"fence,string"` // no id of the worker has been or may be issued with a later time
	// Until is when the tick of the fence has ended. From then on the worker may be granted again, or
	// twice the tolerance of clocks later if its holder did not release it. The stored value, for
	// people only, is when that tick begins.
	Until time.Time `json:"until"`
	Free  bool      `json:"free,omitempty"`         // released
	Taken bool      `json:"taken,omitempty"`        // released, but not by its holder, which may not know yet
	Gone  bool      `json:"gone,omitempty"`         // taken, and an operator guaranteed that its holder has ended
	Began firn.Tick `json:"began,string,omitempty"` // After before it was taken: earlier holders may have used the ticks up to it
	Owner string    `json:"owner"`                  // the token of the process that wrote it last: containers share host name and process id
	Write uint64    `json:"write"`                  // above that of the record it replaced
	Host  string    `json:"host,omitempty"`
	PID   int       `json:"pid,omitempty"`
	Since time.Time `json:"since"` // when the owner took it
	At    time.Time `json:"at"`    // the owner's clock when it wrote last

	revision store.Revision
}

// slot returns the slot of a worker. A worker never used has fence -1 and revision 0.
func (p *Pool) slot(datacenter, worker int64) Slot {
	for _, s := range p.Slots {
		if s.Datacenter == datacenter && s.Worker == worker {
			return s
		}
	}
	return Slot{Datacenter: datacenter, Worker: worker, Fence: -1}
}

// Inspect reads a pool. [store.ErrNotFound]: no process has joined it yet.
func Inspect(ctx context.Context, s store.Store, pool string) (Pool, error) {
	if err := checkPool(s, pool); err != nil {
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

// Pools returns the names of the pools in a store, sorted. It lists the whole store, which is slow: it is for tools.
func Pools(ctx context.Context, s store.Store) ([]string, error) {
	if err := config.RequiredArgument("lease", "the store", s); err != nil {
		return nil, err
	}
	entries, err := s.List(ctx, "firn/")
	if err != nil {
		return nil, fmt.Errorf("lease: list pools: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, rest, _ := strings.Cut(strings.TrimPrefix(e.Key, "firn/"), "/"); rest == "pool" {
			names = append(names, name)
		}
	}
	return names, nil
}

// readPool parses a pool's entries, in the order of their keys. Without a pool record it has no slots.
func readPool(name string, entries []store.Entry) (Pool, error) {
	p := Pool{Name: name}
	for _, e := range entries {
		rest := strings.TrimPrefix(e.Key, poolPrefix(name))
		if rest == "pool" {
			var err error
			if p, err = readRecord(e); err != nil {
				return Pool{}, err
			}
			p.Name = name
			continue
		}
		var s Slot
		// Parse errors need no check: the key is compared with slotKey below.
		datacenter, worker, _ := strings.Cut(strings.TrimPrefix(rest, "slot/"), "/")
		s.Datacenter, _ = strconv.ParseInt(datacenter, 10, 64)
		s.Worker, _ = strconv.ParseInt(worker, 10, 64)
		if p.revision == 0 || e.Key != slotKey(name, p.Layout, s.Datacenter, s.Worker) || checkSlot(p.Layout, s.Datacenter, s.Worker) != nil {
			continue // not a key of Firn, or a number in another format
		}
		if err := s.read(e, p.Layout); err != nil {
			return Pool{}, err
		}
		p.Slots = append(p.Slots, s)
	}
	return p, nil
}

// readRecord reads a pool's record. A record without a layout is foreign.
func readRecord(e store.Entry) (Pool, error) {
	p := Pool{revision: e.Revision}
	err := json.Unmarshal(e.Value, &p)
	if err == nil && p.Layout == (firn.Layout{}) {
		err = errors.New("it names no layout")
	}
	if err != nil {
		err = register.Foreign(e.Key, "pool", err)
	}
	p.Tolerance = cmp.Or(p.Tolerance, Duration(defaultTolerance))
	return p, err
}

// checkPool returns an error unless there is a store, and the pool has a name that it may have.
func checkPool(s store.Store, pool string) error {
	return cmp.Or(config.RequiredArgument("lease", "the store", s), store.CheckName("pool", pool))
}

// checkSlot returns an error for a slot that a layout has no bits for.
func checkSlot(l firn.Layout, datacenter, worker int64) error {
	return errors.Join(
		config.In("Datacenter", config.Check("datacenter", datacenter, 0, l.MaxDatacenter(), "layout "+l.Bits())),
		config.In("Pinned", config.Check("worker", worker, 0, l.MaxWorker(), "layout "+l.Bits())))
}

// noFence marks a record without a fence.
const noFence firn.Tick = math.MinInt64

// read parses a slot's entry, with the layout of its pool.
func (s *Slot) read(e store.Entry, l firn.Layout) error {
	*s = Slot{Datacenter: s.Datacenter, Worker: s.Worker, Fence: noFence, After: noFence, revision: e.Revision}
	err := json.Unmarshal(e.Value, s)
	if err == nil && (s.Fence == noFence || s.Owner == "") { // a held slot would look idle
		err = errors.New("it names no fence, or no owner")
	}
	if err == nil {
		err = config.Check("fence", int64(s.Fence), -1, int64(l.MaxTick()), "layout "+l.Bits())
	}
	if err != nil {
		return register.Foreign(e.Key, "pool", err)
	}
	s.Until = endOf(s.Fence, l)
	return nil
}

// blank reports whether the slot is as good as missing: its first claim was released unused.
func (s *Slot) blank() bool { return s.Free && s.Fence < 0 }

// holder names the holder of a slot, for people.
func (s Slot) holder() string {
	if s.Host == "" {
		return "process " + s.Owner
	}
	return fmt.Sprintf("process %d on %s", s.PID, s.Host)
}

// endOf returns when a tick has ended.
func endOf(tick firn.Tick, l firn.Layout) time.Time {
	if tick >= l.MaxTick() {
		return l.End()
	}
	return l.Time(tick + 1)
}

// tickOf returns the tick that contains a time; outside the layout, its first or last tick.
func tickOf(l firn.Layout, at time.Time) firn.Tick {
	tick, err := l.Tick(at)
	if err != nil && at.After(l.Epoch()) {
		return l.MaxTick()
	}
	return tick
}
