package segment

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
)

// NewSource returns the source that [New] puts over cfg.Store, for passing whole ranges on:
// a range has as many ids as requested, except the last before Max. Settings used:
// Store, Start, Max, Offset, Stride, Form, Time, Random and Log. Its Fetch may be called concurrently
// for one name too. Errors of Fetch: that of [store.CheckName], *[firn.RangeError] for a step that is not 1 to 2^40,
// *[ExhaustedError], *[StripeError], *[store.TakenError], [store.ErrForeign] and the store's.
func NewSource(cfg Config) (Source, error) {
	if cfg.Source != nil {
		return nil, config.Mistake("segment", "Source", "is a source already")
	}
	if err := cfg.check(); err != nil {
		return nil, config.Of[Config]("segment", err)
	}
	return newCounters(&cfg), nil
}

// A Source hands out ranges of ids. The one behind [Config.Store] keeps a counter in a store;
// another may ask an existing table or service.
type Source interface {
	// Fetch returns a range of about ask.Step ids of name, and never gives any of them to another
	// caller. If an answer was lost, so that the range may or may not have been granted, Fetch
	// returns an error and never grants that range again. It returns soon after ctx ends. Calls
	// for one name come one at a time.
	Fetch(ctx context.Context, name string, ask Ask) (Range, error)
}

// An Ask is a request for a range.
type Ask struct {
	// Step is how many ids are wanted. The range may have more or fewer.
	Step int64
	// Above is the greatest id of this name that the process has had so far, otherwise -1. A
	// source should begin above it, even if its counter was set back; a range that begins
	// below an issued id is dropped.
	Above firn.ID
}

// A Returner is a [Source] that takes unused ids back.
type Returner interface {
	// Return gives back the end of the ranges fetched last for name. Those ids are never issued
	// here, whatever the outcome. If another range was granted since, the ids stay unused, and
	// given is false without an error.
	Return(ctx context.Context, name string, unused Range) (given bool, err error)
}
