package numbering_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// mute is a store clock that does not answer.
type mute struct{}

func (mute) Now(ctx context.Context) (time.Time, error) {
	<-ctx.Done()
	return time.Time{}, ctx.Err()
}

func TestASilentStoreClockTimesOut(t *testing.T) {
	bills := counterOf(t, sequence.Config{Store: memstore.New(nil), Timeout: 700 * time.Millisecond}, "bills")
	for _, c := range []struct {
		counter numbering.Counter
		most    time.Duration
	}{{bills, 700 * time.Millisecond}, {within{}, 5 * time.Second}} {
		f, err := numbering.New(numbering.Config{Template: "{n:6}", Counter: c.counter, Clock: mute{}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := f.Next(context.Background())
			if took := time.Since(began); took != c.most {
				t.Errorf("a call without a limit of its own failed after %v, want %v", took, c.most)
			}
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "clock: no answer within "+c.most.String()) {
				t.Error(err)
			}

			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			if _, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a call with a limit of its own: %v", err)
			}
		})
	}
}
