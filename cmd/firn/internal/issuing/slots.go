package issuing

import (
	"context"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// The states of a slot. The store does not know whether a holder still runs.
const (
	SlotHeld     = "held"     // its fence lies ahead: no one but its holder may issue ids
	SlotAhead    = "ahead"    // held, and its holder's clock is ahead of ours by more than the tolerance
	SlotReturned = "returned" // its holder closed it: it can be granted once its fence has passed
	SlotReleased = "released" // an operator took it from its holder
	SlotExpired  = "expired"  // its fence has passed, and its holder did not close it, as after a crash
)

// A Slot is a slot as the interfaces show it.
type Slot struct {
	Datacenter int64     `json:"datacenter"`
	Worker     int64     `json:"worker"`
	State      string    `json:"state"`
	Fence      firn.Tick `json:"fence,string"`
	Until      time.Time `json:"until,omitzero"` // when the tick of its fence ends
	Host       string    `json:"host,omitempty"`
	PID        int       `json:"pid,omitempty"`
	Since      time.Time `json:"since"`
	Seen       time.Time `json:"seen"`
	Owner      string    `json:"owner"`
}

// A Pool is a pool as the interfaces show it.
type Pool struct {
	Pool    string    `json:"pool"`
	Layout  string    `json:"layout"`
	Made    time.Time `json:"made"`
	Open    bool      `json:"open"`
	Strict  string    `json:"strict,omitempty"`               // how long a claim waits before its first use
	From    time.Time `json:"from,omitzero"`                  // when all claims begin: after the pool was opened
	Clock   time.Time `json:"clock"`                          // the time by which the states are determined
	Offset  *float64  `json:"clock_offset_seconds,omitempty"` // how far the store's clock is ahead of ours; nil without one
	Workers int64     `json:"workers"`
	Slots   []Slot    `json:"slots"`
	opened  time.Time // the last time that newcomers waited before it was opened
}

// ReadPool reads a pool, and the store's clock if it has one.
func ReadPool(ctx context.Context, s store.Store, name string) (Pool, error) {
	p, err := lease.Inspect(ctx, s, name)
	if err != nil {
		return Pool{}, err
	}
	now := time.Now()
	var offset *float64
	if clock := s.Traits().Clock; clock != nil {
		before := now
		if now, err = clock.Now(ctx); err != nil {
			return Pool{}, err
		}
		passed := time.Since(before)
		ahead := now.Sub(before.Add(passed / 2)).Seconds()
		offset = &ahead
	}
	pool := Pool{
		Pool: p.Name, Layout: decode.Label(p.Layout), Made: p.Made, Open: p.Open, Clock: now.UTC(), Offset: offset,
		Workers: (p.Layout.MaxDatacenter() + 1) * (p.Layout.MaxWorker() + 1), Slots: make([]Slot, len(p.Slots)),
	}
	if p.Strict > 0 {
		pool.Strict = p.Strict.String()
	}
	if p.From > 0 {
		pool.From, _ = decode.Shown(p.Layout.Time(p.From))
		pool.opened = p.Layout.Time(p.From).UTC().Add(-time.Duration(p.Tolerance))
	}
	for i, slot := range p.Slots {
		pool.Slots[i] = DescribeSlot(slot, time.Duration(p.Tolerance), now)
	}
	return pool, nil
}

// DescribeSlot describes a slot as of now. The tolerance is that of its pool: how far a holder's clock may be ahead.
func DescribeSlot(slot lease.Slot, tolerance time.Duration, now time.Time) Slot {
	state := SlotHeld
	switch passed := !slot.Until.After(now); {
	case !passed && slot.At.Sub(now) > tolerance:
		state = SlotAhead
	case slot.Free && slot.Taken:
		state = SlotReleased
	case slot.Free:
		state = SlotReturned
	case passed:
		state = SlotExpired
	}
	until, _ := decode.Shown(slot.Until) // the fence is shown too
	return Slot{
		Datacenter: slot.Datacenter, Worker: slot.Worker, State: state, Fence: slot.Fence, Until: until,
		Host: slot.Host, PID: slot.PID, Since: slot.Since, Seen: slot.At, Owner: slot.Owner,
	}
}
