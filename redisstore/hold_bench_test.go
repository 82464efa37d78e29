package redisstore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store/storetest/servers"
)

// BenchmarkHold has 16,000 live holders in this process, 40 to a store, as if each store were a host's, for a
// minute and a half: each renews its fence once a minute and looks every 3 s. It reports what they take of the processors.
func BenchmarkHold(b *testing.B) {
	const holders = 16_000
	ctx := context.Background()
	url := "redis://" + servers.Redis(b).Addr()
	stores := make([]*redisstore.Store, holders/40)
	for i := range stores {
		stores[i] = open(b, url)
	}
	layout, err := firn.ParseLayout("41/0/15/7")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var all sync.WaitGroup
		var next atomic.Int64
		leases := make([]*lease.Lease, holders)
		began := time.Now()
		for range 16 {
			all.Go(func() {
				for i := next.Add(1) - 1; i < holders; i = next.Add(1) - 1 {
					l, err := lease.Open(ctx, lease.Config{Store: stores[i%int64(len(stores))], Window: 2 * time.Minute, Generator: firn.Config{Layout: layout}})
					if err != nil {
						b.Errorf("process %d: %v", i, err)
						return
					}
					leases[i] = l
				}
			})
		}
		all.Wait()
		if b.Failed() {
			return
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-until-all-hold")
		before, from := processorTime(b), time.Now()
		time.Sleep(90 * time.Second)
		b.ReportMetric((processorTime(b)-before).Seconds()/time.Since(from).Seconds(), "cores")
		workers := map[int64]bool{}
		var renewals, errors, losses int64
		least := time.Hour
		for _, l := range leases {
			state := l.State()
			workers[state.Worker] = true
			renewals, errors, losses = renewals+state.Renewals, errors+state.Errors, losses+state.Losses
			least = min(least, state.Left)
		}
		if len(workers) != holders || losses > 0 {
			b.Errorf("%d different workers of %d holders; %d lost", len(workers), holders, losses)
		}
		b.ReportMetric(float64(renewals), "renewals")
		b.ReportMetric(float64(errors), "failed-calls")
		b.ReportMetric(least.Seconds(), "s-left-at-least")
		began = time.Now()
		for _, l := range leases {
			all.Go(func() {
				if err := l.Close(ctx); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		b.ReportMetric(time.Since(began).Seconds(), "s-to-give-back")
	}
}
