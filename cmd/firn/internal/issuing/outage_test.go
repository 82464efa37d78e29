package issuing_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// standingStore answers nothing while it is held, like a stopped process.
type standingStore struct {
	store.Store
	mu   sync.Mutex
	gate chan struct{} // nil: not held
}

func (*standingStore) Traits() store.Traits { return store.Traits{} }

func (s *standingStore) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
}

func (s *standingStore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gate)
	s.gate = nil
}

// pass waits while the store is held.
func (s *standingStore) pass(ctx context.Context) error {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
}

func (s *standingStore) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := s.pass(ctx); err != nil {
		return store.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s *standingStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if err := s.pass(ctx); err != nil {
		return store.Entry{}, err
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

func (s *standingStore) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if err := s.pass(ctx); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, prefix)
}

// The store hangs and comes back while fences must move, ranges must be fetched, settings
// must be applied and a lost worker must be replaced. The clock moves only when everything
// waits, so every request must take no time.
func TestNoRequestForIDsInMemoryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))) // after the layout's epoch
		st := &standingStore{Store: memstore.New(nil)}
		text := func(ahead, step int) string {
			return fmt.Sprintf("namespaces: {orders: {window: 1m, ahead: %dms}, items: {kind: segment, min_step: %d}}", ahead, step)
		}
		s := opened(t, st, text(10, 1000))
		f := s.Front(issuing.RESP)
		caller := local(t, f)
		var b issuing.Batch
		ask := func(d time.Duration, what string) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				for _, name := range []string{"orders", "items"} {
					began := time.Now()
					// A new generator's first id waits until its grant begins.
					if err := take(t, f, caller, name, 2, &b); err != nil || time.Since(began) > 3*time.Millisecond {
						t.Fatalf("%s: %s: %v, after %v", what, name, err, time.Since(began))
					}
				}
			}
		}
		apply := func(ahead, step int) <-chan error {
			done := make(chan error, 1)
			cfg := config(t, text(ahead, step))
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // as stores have
				defer cancel()
				done <- s.Apply(ctx, cfg)
			}()
			return done
		}
		if err := take(t, f, caller, "items", 1, &b); err != nil { // the first waits for a range
			t.Fatal(err)
		}
		ask(time.Minute, "all is well")

		st.hold()
		ask(20*time.Second, "the store stands still")
		st.release()
		ask(time.Minute, "the store is back")

		applied := apply(20, 2000)
		ask(time.Second, "settings change")
		if err := <-applied; err != nil {
			t.Fatal(err)
		}
		for _, change := range [][2]int{{30, 2000}, {20, 3000}} { // of the generator, of ranges
			st.hold()
			applied := apply(change[0], change[1])
			ask(20*time.Second, "settings wait for the store")
			if err := <-applied; !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d: in force though nothing could be made ready for it: %v", change, err)
			}
			st.release()
			ask(30*time.Second, "they were given up")
		}

		before := list(t, f, caller)[1].LeaseState
		if _, err := lease.Reclaim(t.Context(), st.Store, "default", 0, before.Worker, time.Time{}); err != nil {
			t.Fatal(err)
		}
		st.hold()
		ask(20*time.Second, "the worker was taken by another, and the store stands still")
		st.release()
		ask(20*time.Second, "another worker is to be had")
		if after := list(t, f, caller)[1].LeaseState; after.Worker == before.Worker || after.Losses != before.Losses+1 {
			t.Errorf("%+v, and then %+v", before, after)
		}
	})
}
