package leases

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/segment"
)

// slots are the processes that run at the same time: how long each waits between calls, and at most
// how many calls it makes. The slow ones hold ranges that the others have long passed.
var slots = []struct {
	pace  time.Duration
	calls int
}{{0, 1500}, {0, 1500}, {200 * time.Microsecond, 500}, {2 * time.Millisecond, 100}}

// lives is how often the process in a slot is started.
const lives = 10

// A ledger holds the ids that all processes of a segment issued.
type ledger struct {
	t *testing.T

	mu       sync.Mutex
	ranges   []segment.Range
	calls    int
	failures map[string]int
}

// add records the ids of a process, and checks that they only increase.
func (l *ledger) add(i *issuer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := map[int]segment.Range{}
	for _, c := range i.calls {
		if before, ok := last[c.who]; ok && c.ids.First <= before.Last() {
			l.t.Errorf("a process issued %v after %v", c.ids, before)
		}
		last[c.who] = c.ids
		l.ranges = append(l.ranges, c.ids)
		l.calls++
	}
	for _, text := range i.failures {
		which, _, _ := strings.Cut(text, ": ")
		if which != unavailable && which != ended {
			l.t.Errorf("an undocumented error: %s", text)
		}
		l.failures[which]++
	}
}

// check returns the greatest id, and fails if two ranges overlap.
func (l *ledger) check() (greatest segment.Range) {
	l.t.Helper()
	slices.SortFunc(l.ranges, func(a, b segment.Range) int { return cmp.Compare(a.First, b.First) })
	for i, r := range l.ranges {
		if i > 0 && l.ranges[i-1].Last() >= r.First {
			l.t.Errorf("%v and %v were issued", l.ranges[i-1], r)
		}
	}
	return l.ranges[len(l.ranges)-1]
}

// TestKilledAndRestartedSegmentsIssueNoIDTwice kills processes with SIGKILL while they issue ids of
// one name, each time at another moment, and starts others instead; some close regularly. During
// this the server is killed and restarted twice.
func TestKilledAndRestartedSegmentsIssueNoIDTwice(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			b := m.make(t)
			all := &ledger{t: t, failures: map[string]int{}}
			over := time.Now().Add(time.Minute)
			total := len(slots) * lives
			ended := make(chan bool, total) // for each process, whether it was killed
			var group sync.WaitGroup
			for _, slot := range slots {
				group.Go(func() {
					for done := 0; done < lives; {
						kill := rand.IntN(4) > 0
						ok, err := live(b.url, all, slot.pace, 1+rand.IntN(slot.calls), kill)
						if err == nil && !ok && time.Now().After(over) {
							err = fmt.Errorf("after %d processes the store is still unreachable", done)
						}
						if err != nil {
							t.Error(err)
							return
						}
						if ok {
							done++
							ended <- kill
						}
					}
				})
			}
			go func() { group.Wait(); close(ended) }()
			count, killed := 0, 0
			for kill := range ended {
				count++
				if kill {
					killed++
				}
				if b.kill != nil && (count == total/3 || count == total*2/3) {
					b.kill()
					b.restart()
				}
			}
			greatest := all.check()
			counter, err := segment.ReadCounter(context.Background(), b.open(t), "orders")
			check(t, err)
			if counter.Next <= uint64(greatest.Last()) {
				t.Errorf("the counter is at %d, but %d was issued", counter.Next, greatest.Last())
			}
			t.Logf("%d calls of %d processes, %d of them killed, up to %d; failed calls: %v", all.calls, count, killed, greatest.Last(), all.failures)
		})
	}
}

// live starts a process and ends it after this many calls. It returns false if the process ended
// early, because the server was down when it started.
func live(url string, all *ledger, pace time.Duration, calls int, kill bool) (ok bool, err error) {
	i, err := startIssuer(url, plan{name: "orders", stride: 1, step: 20, most: 500, target: 20 * time.Millisecond, pace: pace, callers: 2})
	if err != nil {
		return false, err
	}
	ok = i.until(func(made []issued, _ []string) bool { return len(made) >= calls })
	err = i.end(kill || !ok)
	all.add(i)
	return ok, err
}
