package turns_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn/internal/turns"
)

func TestAPoolRunsAtMostMostJobsAtOnceAndWaitReturnsAfterAll(t *testing.T) {
	for most, want := range map[int]int64{0: 9, 1: 1, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			p := turns.Pool{Most: most}
			if err := p.Wait(t.Context()); err != nil {
				t.Errorf("nothing runs: %v", err)
			}
			var running, done, waited atomic.Int64
			release := make(chan struct{})
			for range 9 {
				p.Go(func() {
					running.Add(1)
					<-release
					running.Add(-1)
					done.Add(1)
				})
			}
			for range 2 {
				go func() {
					if err := p.Wait(t.Context()); err != nil {
						t.Error(err)
					}
					waited.Add(done.Load())
				}()
			}
			why := errors.New("no patience")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			if err := p.Wait(ctx); !errors.Is(err, why) {
				t.Error(err)
			}
			synctest.Wait()
			if n := running.Load(); n != want {
				t.Errorf("%d run at once, want %d", n, want)
			}
			close(release)
			synctest.Wait()
			if n := waited.Load(); n != 2*9 {
				t.Errorf("those who waited for 9 jobs saw %d/2 done", n)
			}
		})
	}
}

func TestAClosedPoolDropsJobsThatHaveNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := turns.Pool{Most: 1}
		release := make(chan struct{})
		done := 0
		for range 3 {
			if !p.Go(func() {
				<-release
				done++
			}) {
				t.Error("a job was refused before the pool was closed")
			}
			synctest.Wait()
		}
		if p.Closed() || !p.Close() || p.Close() || !p.Closed() {
			t.Error("a second Close returned true")
		}
		if p.Go(func() { done++ }) {
			t.Error("a closed pool took a job")
		}
		close(release)
		if err := p.Wait(t.Context()); err != nil || done != 1 {
			t.Errorf("%d jobs were done, %v; one had begun", done, err)
		}
	})
}
