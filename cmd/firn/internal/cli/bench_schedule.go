package cli

import (
	"context"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// maxCallRate bounds --rate: it is more than the callers of one process can make.
const maxCallRate = 1_000_000

// parseCallRate parses a rate of calls, such as 5000/s.
func parseCallRate(text string) (access.Rate, error) {
	r, err := access.ParseRate(text)
	if err != nil || float64(r.Count) > maxCallRate*r.Per.Seconds() {
		return r, firn.NewSyntaxError("rate of calls (--rate)", text, "write calls in a time, as in 5000/s or 600/m, at most 1000000/s")
	}
	return r, nil
}

// A schedule determines when calls are due, at a rate that does not depend on how long calls take: callers of a real
// server do not wait for each other either. A call is timed from the moment it was due. So the time for which it
// waited for a busy caller counts. If a server stands still for a second, all calls of that second show it, not one
// call of each caller.
type schedule struct {
	rate  access.Rate
	start time.Time
	until time.Duration // calls are due before
	due   chan time.Time
	next  int64 // the first call that was not handed out; read it only after due is closed
}

func newSchedule(r access.Rate, start time.Time, until time.Duration) *schedule {
	return &schedule{rate: r, start: start, until: until, due: make(chan time.Time)}
}

// at returns when call n is due, from the start.
func (s *schedule) at(n int64) time.Duration {
	return time.Duration(float64(n) * float64(s.rate.Per) / float64(s.rate.Count))
}

// run sends calls to due when they are due, until ctx ends or all are sent.
func (s *schedule) run(ctx context.Context) {
	defer close(s.due)
	for ; s.at(s.next) < s.until; s.next++ {
		at := s.start.Add(s.at(s.next))
		sleepUntil(at)
		select {
		case s.due <- at:
		case <-ctx.Done():
			return
		}
	}
}

// unbegun adds the calls that were due but had found no caller at the end. Each counts with the time that it had
// waited by then, which is less than it would have taken.
func (s *schedule) unbegun(end time.Time, f *found) {
	for n := s.next; s.at(n) < s.until; n++ {
		waited := end.Sub(s.start.Add(s.at(n)))
		if waited < 0 {
			return // an error ended the benchmark before it was due
		}
		f.add(waited)
		f.unbegun++
	}
}

// driveAt is drive with calls at the rate of l, each timed from when it was due. Each caller first makes a call that
// is not timed, to open its connection.
func driveAt(ctx context.Context, l load, f fill, record func([]firn.ID)) (found, error) {
	first, err := l.each(ctx, f, record, func(ctx context.Context, c *caller) error { return c.call(ctx) })
	if err != nil {
		return first, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.duration, errTimeOver)
	defer cancel()
	start := time.Now()
	p := l.show()
	defer p.end()
	s := newSchedule(l.rate, start, l.duration)
	var handing sync.WaitGroup
	handing.Go(func() { s.run(ctx) })
	all, err := l.each(ctx, f, record, func(ctx context.Context, c *caller) error {
		for {
			select {
			case at, more := <-s.due:
				if !more {
					return nil
				}
				if err := c.call(ctx); err != nil {
					return err
				}
				c.timed(at, p)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	cancel()
	handing.Wait()
	all.took = time.Since(start)
	all.ids += first.ids
	s.unbegun(start.Add(min(all.took, l.duration)), &all)
	return all, err
}
