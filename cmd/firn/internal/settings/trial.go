package settings

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// tryLease opens the lease of a namespace over a store that fails every call. The lease finds
// mistakes in its settings before it asks the store, so those are the errors that count: a
// configuration that passes is refused by no lease, but for what only the store knows.
func (n Namespace) tryLease(found map[string]error) {
	cfg, err := n.Lease()
	if err == nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		cfg.Log, cfg.Slots.Log, cfg.Slots.Store = slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler), noStore{}
		_, err = lease.Open(ctx, cfg)
	}
	var (
		syntax   *firn.SyntaxError
		outside  *firn.RangeError
		mistaken string
	)
	switch {
	case errors.As(err, &syntax):
		mistaken = syntax.What
	case errors.As(err, &outside):
		mistaken = outside.What
	default:
		return // the store's failure: nothing is wrong with the settings
	}
	// What begins with the name of the setting: window, strict wait, rollback chain for clock steady.
	key, _, _ := strings.Cut(mistaken, " ")
	if _, known := keyOf[key]; !known {
		key = "pool"
	}
	found[key] = err
}

// keyOf has the keys of generators.
var keyOf = func() map[string]bool {
	all := map[string]bool{}
	for _, key := range generatorKeys {
		all[key] = true
	}
	return all
}()

// noStore is a store, with a clock, that answers nothing.
type noStore struct{}

var errNoStore = errors.New("there is no store in a check")

func (noStore) Get(context.Context, string) (store.Entry, error) { return store.Entry{}, errNoStore }

func (noStore) CompareAndSwap(context.Context, string, store.Revision, []byte) (store.Entry, error) {
	return store.Entry{}, errNoStore
}
func (noStore) List(context.Context, string) ([]store.Entry, error) { return nil, errNoStore }
func (noStore) Now(context.Context) (time.Time, error)              { return time.Time{}, errNoStore }
func (noStore) Close() error                                        { return nil }
