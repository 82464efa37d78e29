package leases

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/segment"
)

// demandTarget is how long a range should last if the store is called once in that time: short, so
// that a run has many ranges.
const demandTarget = time.Second

// demands are the measured settings. An operator with such a demand would set roomy: the step may
// grow to what callers take in the target time. With default, even the greatest step is used up in
// milliseconds. With tight, callers take ids faster than the store can be asked for them.
var demands = []struct {
	name string
	cfg  segment.Config
}{
	{"roomy", segment.Config{Target: demandTarget, MaxStep: 1 << 40}},
	{"default", segment.Config{}},
	{"tight", segment.Config{MaxStep: 1000}},
}

// BenchmarkSegment lets callers request ids as fast as they can, for a second per iteration. It
// reports how many of a million calls found no prefetched id and waited for the store, how often the
// store was written, and the ids per second.
func BenchmarkSegment(b *testing.B) {
	for _, m := range makers {
		if m.name != "Redis" && m.name != "MariaDB" {
			continue
		}
		b.Run(m.name, func(b *testing.B) {
			backend := m.make(b)
			s, err := storeurl.Open(context.Background(), backend.url)
			check(b, err)
			b.Cleanup(func() { check(b, s.Close()) })
			for _, d := range demands {
				for _, callers := range []int{2, 64} {
					b.Run(fmt.Sprintf("%s/%d", d.name, callers), func(b *testing.B) {
						cfg := d.cfg
						cfg.Store = s
						all, err := segment.New(cfg)
						check(b, err)
						name, err := all.Namespace(fmt.Sprintf("%s-%d", d.name, callers))
						check(b, err)
						sustain(b, name, callers, cfg.Target)
						check(b, all.Close(context.Background()))
					})
				}
			}
		})
	}
}

// sustain lets callers call without a pause, until the step has settled and then for b.N seconds.
func sustain(b *testing.B, name *segment.Namespace, callers int, target time.Duration) {
	var stop atomic.Bool
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for !stop.Load() {
				if _, err := name.Next(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	settle(name)
	b.ResetTimer()
	before, began := name.State(), time.Now()
	time.Sleep(time.Duration(b.N) * time.Second)
	after, took := name.State(), time.Since(began)
	stop.Store(true)
	b.StopTimer()
	group.Wait()
	calls := float64(after.Issued - before.Issued)
	writes := float64(after.Fetches-before.Fetches) / took.Seconds()
	b.ReportMetric(float64(after.Waits-before.Waits)/calls*1e6, "waits/million")
	b.ReportMetric(calls/took.Seconds()/1e6, "Mids/s")
	b.ReportMetric(writes, "writes/s")
	if target > 0 {
		b.ReportMetric(writes*target.Seconds(), "writes/target")
	}
	b.ReportMetric(0, "ns/op") // always one second
}

// settle waits until the step stops growing: each fetch may multiply it by four.
func settle(name *segment.Namespace) {
	for last := int64(0); ; {
		time.Sleep(2 * demandTarget)
		s := name.State()
		if s.Step < last+last/4 {
			return
		}
		last = s.Step
	}
}
