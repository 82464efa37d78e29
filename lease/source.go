package lease

import (
	"context"

	"github.com/firn-id/firn"
)

// A Source hands out workers. [Slots] is Firn's own, over a store. Implement it for numbers from
// elsewhere, and have [Keep] do the rest; a number that is simply given is [Fixed].
//
// Uniqueness rests on this promise: of all grants of one worker that a Source and its likes in
// other processes ever give, no two allow the same tick, except that a renewed grant contains
// the one it renews.
type Source interface {
	// Acquire grants a worker that nobody uses, through at least ask.From.
	Acquire(ctx context.Context, ask Ask) (firn.Grant, error)

	// Renew moves the fence of held forward to ask.From plus ask.Window, or leaves it where it
	// is further on, and returns the renewed grant. [ErrLost] says that the worker belongs to
	// another; after any other error the held grant stands as it was.
	Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error)

	// Look makes sure that held still stands, and mends what can be mended. [ErrLost] says
	// that the worker belongs to another. A lost worker is looked at beside Acquire, until
	// there is another: nil says that it is held again.
	Look(ctx context.Context, held firn.Grant) error

	// Release gives held back; no id above tick last was issued under it, and none will be.
	// After an error that is not [ErrLost] it is called again. It must not touch a later
	// grant of the same worker, even of this process: After tells grants apart.
	Release(ctx context.Context, held firn.Grant, last firn.Tick) error
}

// An Ask is what a holder wants of a [Source].
type Ask struct {
	Now    firn.Tick // what the holder's clock shows
	From   firn.Tick // the tick that it would issue next; of a new holder, the first that no earlier life on this clock can have used
	Window firn.Tick // how many ticks beyond From it would like
}

// fence returns how far a grant that begins after a tick should reach, within the layout.
func (a Ask) fence(after firn.Tick, layout firn.Layout) firn.Tick {
	from := max(a.Now, a.From, after+1)
	if from > layout.MaxTick()-a.Window {
		return layout.MaxTick()
	}
	return from + a.Window
}

// at returns what a newcomer would ask now, as far ahead as it did.
func (a Ask) at(now firn.Tick, layout firn.Layout) Ask {
	return Ask{Now: now, From: min(a.From+max(now-a.Now, 0), layout.MaxTick()), Window: a.Window}
}

// Fixed is a [Source] of one number, which nobody else may use. It has no fence: a restart
// makes no id again under the conditions of [firn.New], which a Virtual clock without a bound, or
// with From, does not meet.
type Fixed int64

// Acquire grants the worker from ask.From on, for ever.
func (f Fixed) Acquire(_ context.Context, ask Ask) (firn.Grant, error) {
	return firn.Grant{Worker: int64(f), After: max(ask.From-1, -1), Through: endless}, nil
}

// Renew returns held.
func (f Fixed) Renew(_ context.Context, held firn.Grant, _ Ask) (firn.Grant, error) {
	return held, nil
}

// Look does nothing.
func (f Fixed) Look(context.Context, firn.Grant) error { return nil }

// Release does nothing.
func (f Fixed) Release(context.Context, firn.Grant, firn.Tick) error { return nil }

const endless = firn.Tick(firn.MaxID)
