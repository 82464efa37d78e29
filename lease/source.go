package lease

import (
	"context"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
)

// A Source grants workers. [Slots] is Firn's own, over a store. [Fixed] is one configured number.
// Implement Source for numbers from elsewhere, and use it with [Keep].
//
// Uniqueness rests on this promise: no two grants of one worker ever allow the same tick, among
// all Sources of all processes. The only exception: a renewed grant contains the one it renews.
type Source interface {
	// Acquire grants an unused worker, through at least ask.From.
	Acquire(ctx context.Context, ask Ask) (firn.Grant, error)

	// Renew moves the fence of held forward to ask.From plus ask.Window, unless it is further
	// already, and returns the renewed grant. [ErrLost] means that the worker belongs to another;
	// after any other error the held grant is unchanged.
	Renew(ctx context.Context, held firn.Grant, ask Ask) (firn.Grant, error)

	// Look checks that held is still valid, and repairs the store's record if it can. [ErrLost]
	// means that the worker belongs to another. During Acquire of another worker, Look is called
	// for the lost one too: nil means that it is held again.
	Look(ctx context.Context, held firn.Grant) error

	// Release gives held back; no id above tick last was or will be issued under it. After an
	// error other than [ErrLost] it is called again. It must not touch a later grant of the same
	// worker, even one of this process: After identifies the grant.
	Release(ctx context.Context, held firn.Grant, last firn.Tick) error
}

// Fixed is a [Source] of one number, which no other process may use. It has no fence: a restart
// repeats no id under the conditions of [firn.New]. A Virtual clock without a bound, or with From,
// does not meet them.
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

// A fitting source checks whether it can keep a lease, and knows how long a newcomer may
// have to wait, not counting the calls of its store.
type fitting interface {
	fit(cfg Config) error
	waits() time.Duration
}

// switches reports whether a chain takes another worker when the clock goes back.
func switches(chain firn.Rollback) bool { return slices.Contains(chain, firn.SwitchWorker()) }

var errNoOther = config.In("Rollback", firn.NewSyntaxError("rollback", "switch", "the worker is fixed, so there is no other to switch to: leave out switch, or the worker"))
