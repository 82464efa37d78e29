package issuing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest/servers"
)

// awayStore can be away, for writes or for everything; its errors have an address. It has a
// clock.
type awayStore struct {
	standingStore
	away, writes atomic.Bool // writes: only writes fail
	calls        atomic.Int64
}

func (s *awayStore) Traits() store.Traits { return store.Traits{Clock: s} }

func newAway() *awayStore {
	return &awayStore{standingStore: standingStore{Store: memstore.New(nil)}}
}

func (s *awayStore) look(ctx context.Context, write bool) error {
	s.calls.Add(1)
	err := s.pass(ctx)
	if s.away.Load() && (write || !s.writes.Load()) {
		err = fmt.Errorf("%w: dial tcp 10.1.2.3:6379: connection refused", store.ErrUnavailable)
	}
	if err != nil {
		return &store.CallError{Store: "redisstore", Op: "swap", Key: "key", Err: err}
	}
	return nil
}

func (s *awayStore) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := s.look(ctx, false); err != nil {
		return store.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

func (s *awayStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if err := s.look(ctx, true); err != nil {
		return store.Entry{}, err
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

func (s *awayStore) Now(ctx context.Context) (time.Time, error) {
	return time.Now(), s.look(ctx, false)
}

// in2030 runs a test in a synctest bubble, at a time after the epochs of layouts.
func in2030(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)))
		test(t)
	})
}

const counters = `
  txn: {kind: sequence}
  items: {kind: segment, min_step: 10, max_step: 20}
  bills: {kind: number, template: "B{yyyyMMdd}{n:6}"}
`

// wantUnready asserts that the service is not ready for namespaces, with text that is public.
func wantUnready(t *testing.T, s *issuing.Service, words []string, names ...string) {
	t.Helper()
	err := s.Ready(names...)
	if err == nil || failure.Of(err).Code != "not_ready" || failure.Of(err).Status != 503 || failure.Of(err).Retry == 0 {
		t.Errorf("%q: %v", names, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q: %q is missing in %q", names, w, err)
		}
	}
	if strings.Contains(err.Error(), "10.1.2.3") {
		t.Errorf("%q: %q says where the store is", names, err)
	}
}

func ready(t *testing.T, s *issuing.Service, names ...string) {
	t.Helper()
	if err := s.Ready(names...); err != nil {
		t.Errorf("%q: %v", names, err)
	}
}

// fails asserts that requests for namespaces fail for a caller with that much patience.
func fails(t *testing.T, s *issuing.Service, patience time.Duration, names ...string) {
	t.Helper()
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	for _, name := range names {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		var b issuing.Batch
		if _, err := f.Issue(ctx, caller, issuing.Ask{Namespace: name, Count: 1}, &b); err == nil {
			t.Errorf("%s: an id without the store", name)
		} else if strings.Contains(err.Error(), "10.1.2.3") {
			t.Errorf("%s: %q says where the store is", name, err)
		}
		cancel()
	}
}

// The store fails in every way for namespaces that depend on it alone. No request comes
// until the service is ready again.
func TestAServerThatCannotIssueIsNotReadyUntilItCanAgain(t *testing.T) {
	for what, c := range map[string]struct {
		patience    time.Duration
		begin, over func(*awayStore)
	}{
		"away": {time.Minute,
			func(s *awayStore) { s.away.Store(true) }, func(s *awayStore) { s.away.Store(false) }},
		"taking no writes": {time.Minute,
			func(s *awayStore) { s.writes.Store(true); s.away.Store(true) }, func(s *awayStore) { s.away.Store(false) }},
		"standing still": {time.Minute, (*awayStore).hold, (*awayStore).release},
		// Each request ends before the store's timeout.
		"standing still, and nobody waits for it": {time.Second, (*awayStore).hold, (*awayStore).release},
	} {
		t.Run(what, func(t *testing.T) {
			in2030(t, func(t *testing.T) {
				st := newAway()
				s := opened(t, st, "namespaces:"+counters)
				ready(t, s) // nothing is known of the store yet
				c.begin(st)
				fails(t, s, c.patience, "txn", "items", "bills")
				time.Sleep(20 * time.Second) // until the pending calls have failed too
				for range 3 {
					began := time.Now()
					wantUnready(t, s, []string{`txn: sequence "txn": `, `items: `, `bills: `, "the store is unavailable"})
					wantUnready(t, s, []string{"bills"}, "bills", "txn")
					if took := time.Since(began); took > 0 {
						t.Errorf("it took %v", took)
					}
					time.Sleep(11 * time.Second)
				}
				c.over(st)
				time.Sleep(11 * time.Second) // for the current probe and the next
				ready(t, s)
				ready(t, s, "txn", "items", "bills")
				if s.Lacking() != "" {
					t.Error(s.Lacking())
				}
				calls := st.calls.Load()
				time.Sleep(time.Minute)
				if more := st.calls.Load() - calls; more > 3*21 { // a look at each counter every three seconds
					t.Errorf("%d calls of a store that is well", more)
				}
				f := s.Front(issuing.HTTP)
				var b issuing.Batch
				for _, name := range []string{"txn", "bills"} { // the probes used up no id
					err := take(t, f, local(t, f), name, 1, &b)
					if got := fmt.Sprint(b.IDs, b.Texts); err != nil || !strings.HasSuffix(strings.TrimRight(got, "[] "), "1") {
						t.Errorf("%s: %s, %v", name, got, err)
					}
				}
			})
		})
	}
}

// Servers that share a store must not all leave their balancer because one kind of ids needs it.
func TestAServerThatCanIssueSomethingIsReady(t *testing.T) {
	in2030(t, func(t *testing.T) {
		st := newAway()
		registry := prometheus.NewRegistry()
		s := opened(t, st, "namespaces:\n  orders: {window: 1m}\n  carts: {window: 1m}"+counters, func(cfg *issuing.Config) { cfg.Registry = registry })
		gauge := func(name, want string) {
			t.Helper()
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if f.GetName() != name {
						continue
					}
					for _, l := range m.GetLabel() {
						got = append(got, l.GetValue())
					}
					got = append(got, fmt.Sprint(m.GetGauge().GetValue()))
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		st.away.Store(true)
		fails(t, s, time.Minute, "txn", "items")
		ready(t, s)
		ready(t, s, "orders", "carts", "bills")
		wantUnready(t, s, []string{"txn: "}, "orders", "txn")
		if got := s.Lacking(); !strings.HasPrefix(got, "items: ") || !strings.Contains(got, "; txn: ") || strings.Contains(got, "10.1.2.3") {
			t.Error(got)
		}
		if err := s.Ready("orders", "nobody"); failure.Of(err).Code != "unknown_namespace" {
			t.Error(err)
		}
		gauge("firn_namespace_ready", "bills 1 carts 1 items 0 orders 1 txn 0")

		time.Sleep(2 * time.Minute) // past the fence
		ready(t, s)                 // no request for bills has failed
		wantUnready(t, s, []string{"carts, orders: pool default: the fence of worker "}, "orders", "carts")
		gauge("firn_ready", "1")
		fails(t, s, time.Minute, "bills")
		ready(t, s) // one answer serves all who ask within 100 ms
		time.Sleep(100 * time.Millisecond)
		wantUnready(t, s, []string{"no namespace can issue: ", "carts, orders: pool default: the fence of worker ", "; txn: ", "the log"})
		gauge("firn_ready", "0")

		st.away.Store(false)
		time.Sleep(25 * time.Second) // all fences have passed: it waits for the grace of the pool, too
		ready(t, s, "orders", "carts", "txn", "items", "bills")
		gauge("firn_ready", "1")
		s.Drain()
		for _, err := range []error{s.Ready(), s.Ready("orders")} {
			if failure.Of(err).Code != "shutting_down" {
				t.Error(err)
			}
		}
	})
}

// Before the first request only the pool for namespaces made on first use counts.
func TestReadinessWithoutDeclaredNamespacesIsThatOfTheirPool(t *testing.T) {
	in2030(t, func(t *testing.T) {
		st := newAway()
		s := opened(t, st, "limits: {batch: 10}")
		ready(t, s)
		ready(t, s, "orders")
		st.away.Store(true)
		time.Sleep(10 * time.Minute)
		wantUnready(t, s, []string{"pool default: the fence of worker "})
		wantUnready(t, s, []string{"pool default: the fence of worker "}, "orders")
		fails(t, s, time.Minute, "orders")
		wantUnready(t, s, []string{"orders: pool default: the fence of worker "})
		st.away.Store(false)
		time.Sleep(25 * time.Second) // as above
		ready(t, s)
	})
}

// Ids that run ahead of the clock come to the fence before the clock does.
func TestAPoolWhoseIDsAreUsedUpCannotIssue(t *testing.T) {
	in2030(t, func(t *testing.T) {
		st := newAway()
		s := opened(t, st, "namespaces: {orders: {clock: virtual, layout: 41/0/21/1, window: 1m}}\nlimits: {batch: 200000}")
		st.away.Store(true)
		time.Sleep(10 * time.Second) // no renewal is due, but the slot was read
		f := s.Front(issuing.HTTP)
		var b issuing.Batch
		if err := take(t, f, local(t, f), "orders", 200_000, &b); failure.Of(err).Code != "fence_reached" {
			t.Fatal(err)
		}
		wantUnready(t, s, []string{"orders: pool default: the ids up to the fence of worker"})
		st.away.Store(false)
		time.Sleep(time.Minute)
		ready(t, s)
	})
}

func TestALayoutThatRanOutOfTimeHasItsOwnReason(t *testing.T) {
	in2030(t, func(t *testing.T) {
		s := opened(t, newAway(), `namespaces: {orders: {layout: 34/0/10/12, epoch: "2029-06-17", window: 1m}}`)
		ready(t, s)
		time.Sleep(24 * time.Hour)
		wantUnready(t, s, []string{"orders: pool default: layout 34/0/10/12", "ran out of time at 2030-01-0"})
	})
}

// Otherwise the first customer's request would show it.
func TestACounterOfAnotherKindIsFoundAtTheStart(t *testing.T) {
	in2030(t, func(t *testing.T) {
		st := newAway()
		before := opened(t, st, "namespaces: {txn: {kind: segment}, seg: {kind: sequence}, num: {kind: number, template: \"A{n:4}\"}}")
		f := before.Front(issuing.HTTP)
		var b issuing.Batch
		for _, name := range []string{"txn", "seg", "num"} {
			if err := take(t, f, local(t, f), name, 1, &b); err != nil {
				t.Fatal(err)
			}
		}
		text := "namespaces: {txn: {kind: sequence}, seg: {kind: segment}, num: {kind: number, template: \"B{n:5}\"}, items: {kind: segment}}"
		cfg := config(t, text)
		s := opened(t, st, text)
		ready(t, s)
		var bad []string
		for _, f := range s.ExamineCounters(t.Context(), cfg) {
			if f.Verdict == store.Bad {
				bad = append(bad, f.Says)
			}
		}
		slices.Sort(bad)
		for i, name := range []string{"num", "seg", "txn"} {
			if len(bad) != 3 || !strings.HasPrefix(bad[i], "no ids of "+name+" can be made: ") {
				t.Fatalf("%q", bad)
			}
			if err := s.Ready(name); failure.Of(err).Code != "not_ready" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := s.Ready("items"); err != nil {
			t.Error(err)
		}
	})
}

// The service closes while it probes a store that does not answer.
func TestProbesOfTheStoreEndWithTheService(t *testing.T) {
	in2030(t, func(t *testing.T) {
		st := newAway()
		s := opened(t, st, "namespaces: {bills: {kind: number, template: 'B{n:6}'}}")
		st.away.Store(true)
		fails(t, s, time.Minute, "bills")
		st.hold()
		st.away.Store(false)
		wantUnready(t, s, nil) // and its clock is read
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		if err := s.Close(); err != nil || time.Since(began) > 0 {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
		st.release()
	})
}

// TestRedisStopsAndGoesOn is the same with a real store.
func TestRedisStopsAndGoesOn(t *testing.T) {
	redis := servers.Redis(t)
	st, err := storeurl.Open(t.Context(), "redis://"+redis.Addr()+"/0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	var log lines
	s := opened(t, st, "namespaces:"+counters, func(cfg *issuing.Config) { cfg.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	redis.Pause()
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	failed := make(chan error)
	for _, name := range []string{"txn", "items", "bills"} {
		go func() {
			var b issuing.Batch
			failed <- take(t, f, caller, name, 1, &b)
		}()
	}
	for range 3 {
		if err := <-failed; err == nil || strings.Contains(err.Error(), "127.0.0.1") || failure.Of(err).Status != 503 {
			t.Error(err)
		}
	}
	wantUnready(t, s, []string{"txn: ", "items: ", "bills: "})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, line := range []string{"a sequence could make no ids", "no range could be fetched", "no number can be made"} {
		if err := log.await(ctx, line); err != nil {
			t.Error(err)
		}
	}
	redis.Resume()
	for err = errors.New("not asked yet"); err != nil && t.Context().Err() == nil; err = s.Ready("txn", "items", "bills") {
		time.Sleep(10 * time.Millisecond)
	}
	var b issuing.Batch
	if err := take(t, f, caller, "bills", 1, &b); err != nil {
		t.Error(err)
	}
}

// The store's error text may contain its address.
func TestOnlyAdministratorsSeeTheStoresErrorText(t *testing.T) {
	in2030(t, func(t *testing.T) {
		st := newAway()
		s := opened(t, st, "anonymous: ['*']\ntokens: [{name: ops, sha256: "+access.Hash("s")+", namespaces: ['*'], admin: true}]\nnamespaces:\n  orders: {window: 1m}"+counters)
		st.away.Store(true)
		fails(t, s, time.Minute, "txn", "items", "bills")
		time.Sleep(10 * time.Minute)
		f := s.Front(issuing.HTTP)
		for token, raw := range map[string]bool{"": false, "s": true} {
			caller, err := f.Identify(access.Credentials{Token: token})
			if err != nil {
				t.Fatal(err)
			}
			states := list(t, f, caller)
			for _, state := range states {
				one, err := f.State(caller, state.Namespace)
				if err != nil || state.Error == "" || one.Error != state.Error || strings.Contains(state.Error, "10.1.2.3") != raw {
					t.Errorf("%s for an administrator: %t: %q, %v", state.Namespace, raw, state.Error, err)
				}
			}
			if len(states) != 4 {
				t.Errorf("%d namespaces", len(states))
			}
		}
		st.away.Store(false) // so that the worker can be given back
	})
}

// After a failure, the state and the readiness give the same reason.
func TestTheStateOfANumberAgreesWithReadiness(t *testing.T) {
	in2030(t, func(t *testing.T) {
		st := newAway()
		s := opened(t, st, "namespaces:"+counters)
		f := s.Front(issuing.HTTP)
		says := func(want string) {
			t.Helper()
			state, err := f.State(local(t, f), "bills")
			if err != nil || !strings.Contains(state.Error, want) {
				t.Errorf("%q, %v, want %s", state.Error, err, want)
			}
			wantUnready(t, s, []string{"bills: " + want}, "bills")
		}
		st.writes.Store(true)
		st.away.Store(true)
		fails(t, s, time.Minute, "bills")
		says(`sequence "bills"`)
		st.writes.Store(false) // its clock fails, too
		fails(t, s, time.Minute, "bills")
		says(`sequence "bills"`)
		st.away.Store(false)
	})
}

// Clients return to a server that cannot issue from one pool, but not to one that shuts down.
func TestReadinessDistinguishesShutdownFromAPoolThatCannotIssue(t *testing.T) {
	s := opened(t, memstore.New(nil), "namespaces: {orders: {}}")
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
	s.Drain()
	if f := failure.Of(s.Ready()); f.Status != 503 || f.Code != "shutting_down" || f.Retry == 0 {
		t.Errorf("%+v", f)
	}
}
