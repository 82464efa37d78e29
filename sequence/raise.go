package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/internal/turns"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// RaiseCounter makes all later ids of a name greater than last, 0 or more, and returns the last id used from now on. It makes
// a missing sequence, whose form ([Config.Form]) its first user decides, and never lowers one. It is for programs that make
// no ids of that name: to take over from another system, or after the store has forgotten some ids. Errors: that of
// [store.CheckName], a *[firn.RangeError] for a last below 0, *[store.TakenError] if the counter is no sequence,
// [store.ErrForeign], and the store's.
func RaiseCounter(ctx context.Context, s store.Store, name string, last firn.ID) (firn.ID, error) {
	cfg := Config{Store: s}
	if err := cmp.Or(config.RequiredArgument("sequence", "the store", s), store.CheckName("sequence", name), cfg.fill(),
		config.Check("last id", last, 0, firn.MaxID, "")); err != nil {
		return 0, fmt.Errorf("sequence %q: raise: %w", name, err)
	}
	r := register.Register{Store: s, Key: register.CounterKey(name), Time: cfg.Time, Random: cfg.Random}
	by, writes, raised := register.Token(), uint64(0), int64(0)
	_, err := r.Update(ctx, func(found store.Entry) (value []byte, err error) {
		use := &register.Use{Kind: kind}
		was := int64(0)
		if found.Revision != 0 {
			if was, _, use, err = decode(name, found, use); err != nil {
				return nil, err
			}
		}
		raised = max(was, int64(last))
		writes++ // also of a counter that is there already: the store may be about to lose the write that was read
		return register.Encode(record{Use: *use, Last: strconv.FormatInt(raised, 10), By: by, Write: writes, At: cfg.Time.Wall().UTC()})
	})
	if errors.Is(err, store.ErrConflict) {
		err = fmt.Errorf("others were quicker each time: %w", turns.Fault(ctx, store.ErrUnavailable, err))
	}
	if err != nil {
		return 0, fmt.Errorf("sequence %q: raise: %w", name, err)
	}
	return firn.ID(raised), nil
}
