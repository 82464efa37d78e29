package firn_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/faketime"
)

// switching returns a generator with the chain switch that has made an id, and its clock.
func switching(t *testing.T, chain string, other func(ctx context.Context, from firn.Tick) (firn.Grant, error)) (*firn.Generator, *faketime.Time) {
	t.Helper()
	clock := newFakeTime()
	g := newGenerator(t, firn.Config{Layout: mustLayout("41/0/6/3"), Clock: firn.Wall, Rollback: parseChain(t, chain), Time: clock, Switch: other})
	if _, err := g.Next(); err != nil {
		t.Fatal(err)
	}
	return g, clock
}

// TestWhyASwitchFailedCanBeAskedFor: callers branch on what their source of workers says.
func TestWhyASwitchFailedCanBeAskedFor(t *testing.T) {
	errNone := errors.New("no worker left")
	for _, chain := range []string{"switch", "ahead 5, wait 1ms, switch, refuse", "switch, ahead 5"} {
		g, clock := switching(t, chain, func(context.Context, firn.Tick) (firn.Grant, error) { return firn.Grant{}, errNone })
		clock.Step(-time.Minute)
		_, err := g.Next()
		if !errors.Is(err, errNone) || !errors.Is(err, firn.ErrClockBack) {
			t.Errorf("%s: %T %v", chain, err, err)
		}
		if !strings.HasSuffix(chain, "ahead 5") && !strings.Contains(err.Error(), "switch: no worker left") {
			t.Errorf("%s: it does not say why: %v", chain, err)
		}
	}
}

// TestASwitchThatTheCallerEndedIsTheCallersEnd: not a fault of the clock.
func TestASwitchThatTheCallerEndedIsTheCallersEnd(t *testing.T) {
	errGone := errors.New("the caller is gone")
	for _, chain := range []string{"switch", "switch, ahead 100000"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		g, clock := switching(t, chain, func(ctx context.Context, _ firn.Tick) (firn.Grant, error) {
			cancel(errGone)
			return firn.Grant{}, ctx.Err()
		})
		clock.Step(-time.Minute)
		id, err := g.NextContext(ctx)
		if strings.Contains(chain, "ahead") { // an id at hand
			if err != nil {
				t.Errorf("%s: %v", chain, err)
			}
		} else if err != errGone { //nolint:errorlint // the cause itself is promised
			t.Errorf("%s: id %d, %T %v", chain, id, err, err)
		}
	}
}

// TestNoWorkerIsTakenForATimeBeforeTheEpoch: it could not issue anything.
func TestNoWorkerIsTakenForATimeBeforeTheEpoch(t *testing.T) {
	g, clock := switching(t, "switch", func(_ context.Context, from firn.Tick) (firn.Grant, error) {
		t.Errorf("another worker was asked for, from %d on", from)
		return firn.Grant{Worker: 1, After: -1, Through: 1 << 40}, nil
	})
	clock.Set(time.Unix(0, 0))
	if id, err := g.Next(); !errors.Is(err, firn.ErrClockBack) {
		t.Errorf("id %d, %v", id, err)
	}
}
