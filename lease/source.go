package lease

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
)

// A Source grants workers, for [Keep]. [NewSource] returns Firn's own, over a store, [Fixed] one of numbers that are
// configured, and [FixedFunc] one of those of a function. Implement Source for numbers that have fences elsewhere.
//
// Uniqueness rests on this promise: no two grants of one worker ever allow the same tick, among
// all Sources of all processes. The only exception: a renewed grant contains the one it renews.
type Source interface {
	// Acquire grants an unused worker, through at least the From of an ask. It calls ask once it waits for nothing more:
	// an ask is as old as the call.
	Acquire(ctx context.Context, ask func() Ask) (firn.Grant, error)

	// Renew moves the fence of held forward to ask.From plus ask.Window, unless it is further
	// already, and returns the renewed grant, which has the same worker and beginning. [ErrLost] means
	// that the worker belongs to another; after any other error the held grant is unchanged.
	Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error)

	// Look checks that held is still valid, and repairs the store's record if it can. [ErrLost]
	// means that the worker belongs to another. During Acquire of another worker, Look is called
	// for the lost one too: nil means that it is held again.
	Look(ctx context.Context, held firn.Grant) error

	// Release gives held back; no id above tick last was or will be issued under it. After an
	// error other than [ErrLost] it is called again. It must not touch a later grant of the same
	// worker, even one of this process: After identifies the grant.
	Release(ctx context.Context, held firn.Grant, last firn.Tick) error

	// Traits returns what a holder must know of the source. It is called once.
	Traits() Traits
}

// Traits are those of a [Source]. The zero value is right for one that fits every lease, and does not remember
// which ticks were used.
type Traits struct {
	Fit     func(Config) error // an error if the source cannot keep such a lease; nil: it can keep any
	Wait    time.Duration      // how long Acquire may wait, beside the calls of its store
	Overdue time.Duration      // how long a holder may go on without a look that counts; 0: up to its fence

	// Fences says that grants begin after all ticks of earlier ones. Otherwise a holder begins after all that its clock can
	// have shown when Acquire returns, except at a switch: see [FixedFunc].
	Fences bool

	SetBacks func() int64 // for [State]; nil: it has no store that could forget

	// Ended, if set, is called by Close once all workers are released: an error if a process that starts now, at a tick, could
	// repeat their ids, which nothing else can tell it.
	Ended func(from firn.Tick) error
}

// switches reports whether a chain takes another worker when the clock goes back.
func switches(chain firn.Rollback) bool { return slices.Contains(chain, firn.SwitchWorker()) }

var errNoOther = config.In("Rollback", firn.NewSyntaxError("rollback", "switch", "the worker is fixed, so there is no other to switch to: name spares for it, or leave out switch or the worker"))

// An Ask is what a holder requests from a [Source].
type Ask struct {
	Now    firn.Tick // what the holder's clock shows
	From   firn.Tick // the tick that it would issue next; for a new holder, the first tick that no earlier process with this clock can have used; it may lie past the layout's last tick
	Window firn.Tick // how many ticks beyond From it wants
}

// fence returns how far a grant that begins after a tick should reach, within the layout.
func (a Ask) fence(after firn.Tick, layout firn.Layout) firn.Tick {
	from := max(a.Now, a.From, after+1)
	if from > layout.MaxTick()-a.Window {
		return layout.MaxTick()
	}
	return from + a.Window
}

// at returns the same ask as of now: as far ahead of the clock, up to a lead. What lies further ahead is the holder's last id,
// or its clock was behind.
func (a Ask) at(now, lead firn.Tick, layout firn.Layout) Ask {
	return Ask{Now: now, From: min(max(a.From, now+min(a.From-a.Now, lead)), layout.MaxTick()), Window: a.Window}
}

// newAsk returns the ask for another worker: ticks from a given one on that no earlier run can have used.
func (l *Lease) newAsk(from firn.Tick) Ask {
	g := &l.cfg.Generator
	wall := g.Time.Wall() // read once: the process may be paused between two readings
	lead, most := fencedLead(*g), g.Layout.MaxTick()
	if !l.traits.Fences {
		lead = g.Lead()
		if most < math.MaxInt64 {
			most++ // an earlier life may have used the last tick: nothing is left
		}
	}
	reach := tickOf(g.Layout, wall.Add(lead))
	return Ask{Now: tickOf(g.Layout, wall), From: max(from, min(reach, most-1)+1), Window: l.window}
}

// fencedLead is the lead for which a fence is requested in advance. The policy ahead is not counted:
// it serves only after a step back, and a fence that far ahead would outlive a crash by as much.
func fencedLead(cfg firn.Config) time.Duration {
	cfg.Rollback = nil
	return cfg.Lead()
}

// aboveEarlier returns the part of a grant above all ticks that an earlier holder can have used by its clock. A source with
// fences has done that itself.
func (l *Lease) aboveEarlier(grant firn.Grant, ask func() Ask) firn.Grant {
	if !l.traits.Fences {
		grant.After = max(grant.After, ask().From-1)
	}
	return grant
}

// ask returns the holder's present ask: to continue after its last id, or at the
// present if that is later.
func (l *Lease) ask() Ask {
	now := l.gen.Now() // a call of Now also lets a steady clock that ran ahead return to the wall clock
	if tick, err := l.cfg.Generator.Layout.Tick(l.cfg.Generator.Time.Wall()); err == nil {
		now = tick
	}
	return Ask{Now: now, From: max(l.gen.State().Last+1, now), Window: l.window}
}
