package issuing_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// movable is the machine's time with a wall clock that a test sets.
type movable struct {
	firn.TimeSource
	by atomic.Int64
}

func (m *movable) Wall() time.Time { return time.Now().Round(0).Add(time.Duration(m.by.Load())) }

// A server whose clock went back leaves its balancer, and comes back by itself.
func TestAServerWhoseClockWentBackIsNotReadyUntilItCanIssue(t *testing.T) {
	for chain, c := range map[string]struct {
		back    time.Duration
		unready bool
	}{
		"wait 500ms, refuse":   {10 * time.Second, true},
		"wait 11s":             {10 * time.Second, false},
		"history 2000":         {10 * time.Second, true},
		"history 2000, switch": {10 * time.Second, false},
		"ahead 10000":          {9 * time.Second, false},
	} {
		t.Run(chain, func(t *testing.T) {
			in2030(t, func(t *testing.T) {
				s0, clock, registry := walled(t, chain, "firn")
				s := s0.Service
				clock.by.Store(-int64(c.back))
				err := s.Ready()
				if got := gauge(t, registry, "firn_ready"); (err != nil) != c.unready || (got == 0) != c.unready {
					t.Errorf("the clock went back: %v, firn_ready %v", err, got)
				}
				if c.unready {
					wantUnready(t, s, []string{"pool default: clock moved back by 10s"})
					wantUnready(t, s, []string{"pool default: clock moved back by 10s"}, "orders")
					fails(t, s, time.Minute, "orders")
				}
				time.Sleep(c.back + time.Second)
				ready(t, s)
				ready(t, s, "orders")
				synctest.Wait() // for writers of the log
				for _, says := range []string{`level=WARN msg="a pool can make no ids" pool=default error="clock moved back by 10s`, `level=INFO msg="a pool can make ids again" pool=default`} {
					if got := strings.Count(s0.log.String(), says); (got == 1) != c.unready || got > 1 {
						t.Errorf("the log has %s %d times:\n%s", says, got, s0.log)
					}
				}
			})
		})
	}
}

// All workers are in use, so the policy switch fails until one is free. Then no request is needed.
func TestAServerThatFindsNoOtherWorkerIsNotReadyUntilItFindsOne(t *testing.T) {
	in2030(t, func(t *testing.T) {
		s, clock, _ := walled(t, "switch, refuse", "41/0/1/12")
		other, err := lease.Open(t.Context(), lease.Config{Store: s.store, Generator: firn.Config{Layout: s.layout}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		f := s.Front(issuing.HTTP)
		var b issuing.Batch
		if err := take(t, f, local(t, f), "orders", 1, &b); err != nil {
			t.Fatal(err)
		}
		clock.by.Store(-int64(5 * time.Minute))
		ready(t, s.Service) // it may find another worker
		fails(t, s.Service, time.Minute, "orders")
		time.Sleep(10 * time.Second)
		wantUnready(t, s.Service, []string{"pool default: clock moved back by 4m", "switch: "})
		if err := other.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		ready(t, s.Service)
	})
}

// A service makes namespaces on first use from a pool with a wall clock.
type service struct {
	*issuing.Service
	store  *memstore.Store
	layout firn.Layout
	log    *strings.Builder
}

func walled(t *testing.T, chain, layout string) (service, *movable, *prometheus.Registry) {
	t.Helper()
	l, errLayout := firn.ParseLayout(layout)
	rollback, err := firn.ParseRollback(chain)
	if err = errors.Join(err, errLayout); err != nil {
		t.Fatal(err)
	}
	clock, registry, st := &movable{TimeSource: firn.SystemTime()}, prometheus.NewRegistry(), memstore.New(nil)
	log := &strings.Builder{}
	s := opened(t, st, "limits: {batch: 10}", func(cfg *issuing.Config) {
		cfg.Log = slog.New(slog.NewTextHandler(log, nil))
		cfg.Registry = registry
		cfg.Base.Generator = firn.Config{Layout: l, Clock: firn.ClockWall, Rollback: rollback, Time: clock}
	})
	f := s.Front(issuing.HTTP)
	var b issuing.Batch
	for range 2 {
		if err := take(t, f, local(t, f), "orders", 1, &b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
	}
	if err := take(t, f, local(t, f), "orders", 1, &b); err != nil {
		t.Fatal(err)
	}
	return service{s, st, l, log}, clock, registry
}

// gauge returns the value of a metric without labels.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}
