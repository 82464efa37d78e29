package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/storetest/servers"
)

// BenchmarkJoin measures the processor time of newcomers that fill a large pool, sixteen at a time: as many calls
// as a store makes at once.
func BenchmarkJoin(b *testing.B) {
	ctx := context.Background()
	s := open(b, "redis://"+servers.Redis(b).Addr())
	layout, err := firn.ParseLayout("41/0/15/7")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{500, 1000, 2000, 16000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pool := fmt.Sprint("join-", time.Now().UnixNano()) // a repetition must not find the workers of the last one held
			join := func() error {
				slots, err := lease.NewSource(lease.Config{Store: s, Pool: pool, Look: time.Second, Generator: firn.Config{Layout: layout}})
				if err != nil {
					return err
				}
				now, err := layout.Tick(time.Now())
				if err == nil {
					_, err = slots.Acquire(ctx, func() lease.Ask { return lease.Ask{Now: now, From: now, Window: 300_000} })
				}
				return err
			}
			if err := join(); err != nil { // makes the pool
				b.Fatal(err)
			}
			var all sync.WaitGroup
			var joined atomic.Int64
			before := processorTime(b)
			b.ResetTimer()
			for range 16 {
				all.Go(func() {
					for i := joined.Add(1); i <= int64(n); i = joined.Add(1) {
						if err := join(); err != nil {
							b.Errorf("process %d: %v", i, err)
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric((processorTime(b) - before).Seconds(), "processor-s/op")
		})
	}
}

// processorTime returns how much processor time this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
