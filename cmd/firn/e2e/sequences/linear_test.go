package sequences

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/order"
	"github.com/firn-id/firn/store/storetest/servers"
)

const (
	processes = 3
	callers   = 6
	// cutEvery is the number of calls, of all callers, between two cut connections.
	cutEvery = 60
)

// A history holds the ids that the callers of all processes received.
type history struct {
	t       *testing.T
	started time.Time
	count   atomic.Int64 // calls, failed ones included

	mu    sync.Mutex
	calls []order.Call
	errs  map[string]int
}

func newHistory(t *testing.T) *history {
	return &history{t: t, started: time.Now(), errs: map[string]int{}}
}

func (h *history) now() int64 { return int64(time.Since(h.started)) }

// call requests one id or several, and records the result.
func (h *history) call(s *sequence.Namespace, who int, n int64) error {
	// Some callers give up while their addition is in flight.
	patience := 10 * time.Second
	if rand.IntN(10) == 0 {
		patience = time.Duration(rand.IntN(2000)) * time.Microsecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h.count.Add(1)
	begin := h.now()
	first, err := s.Reserve(ctx, int(n))
	h.note(order.Call{Begin: begin, End: h.now(), First: int64(first), N: n, Who: who}, err)
	return err
}

func (h *history) note(c order.Call, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.calls = append(h.calls, c)
	case errors.Is(err, store.ErrUnavailable):
		h.errs["unavailable"]++
	case errors.Is(err, context.DeadlineExceeded):
		h.errs["impatient"]++
	default:
		h.t.Errorf("an undocumented error: %v", err)
	}
}

// A taking is the input of the model: the number of requested ids.
type taking int64

// model is a counter that may skip any ids: the only promise is that ids increase.
var model = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		last, isLast := state.(int64)
		first, isFirst := output.(int64)
		n, isCount := input.(taking)
		return isLast && isFirst && isCount && first > last, first + int64(n) - 1
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("take %v: %v", input, output) },
}

// check reports whether the history is possible.
func (h *history) check(least int) {
	h.t.Helper()
	operations := make([]porcupine.Operation, len(h.calls))
	for i, c := range h.calls {
		operations[i] = porcupine.Operation{ClientId: c.Who, Input: taking(c.N), Call: c.Begin, Output: c.First, Return: c.End}
	}
	if got := porcupine.CheckOperationsTimeout(model, operations, time.Minute); got != porcupine.Ok {
		h.t.Errorf("Porcupine's result for %d calls: %v", len(operations), got)
	}
	if err := order.Check(h.calls); err != nil {
		h.t.Error(err)
	}
	if len(h.calls) < least {
		h.t.Errorf("only %d calls, want %d", len(h.calls), least)
	}
	h.t.Logf("%d calls; errors: %v", len(h.calls), h.errs)
}

// TestTheCheckerRefuses feeds the checker impossible histories.
func TestTheCheckerRefuses(t *testing.T) {
	for _, test := range []struct {
		what string
		b    porcupine.Operation // together with an operation that took 1 and 2, from time 0 to 10
		want porcupine.CheckResult
	}{
		{"a later call, greater ids", porcupine.Operation{Input: taking(1), Output: int64(3), Call: 11, Return: 12}, porcupine.Ok},
		{"a gap", porcupine.Operation{Input: taking(1), Output: int64(30), Call: 11, Return: 12}, porcupine.Ok},
		{"a duplicate", porcupine.Operation{Input: taking(1), Output: int64(2), Call: 5, Return: 12}, porcupine.Illegal},
		{"a later call, lower ids", porcupine.Operation{Input: taking(1), Output: int64(0), Call: 11, Return: 12}, porcupine.Illegal},
	} {
		a := porcupine.Operation{Input: taking(2), Output: int64(1), Call: 0, Return: 10}
		test.b.ClientId = 1
		if got := porcupine.CheckOperationsTimeout(model, []porcupine.Operation{a, test.b}, time.Minute); got != test.want {
			t.Errorf("%s: %v, want %v", test.what, got, test.want)
		}
	}
}

// callAll runs this many callers of a sequence until each has succeeded this often.
func (h *history) callAll(group *sync.WaitGroup, s *sequence.Namespace, first int) {
	for i := range callers {
		group.Go(func() {
			deadline := time.Now().Add(time.Minute)
			for done := 0; done < successes; {
				switch err := h.call(s, first+i, 1+rand.Int64N(3)); {
				case err == nil:
					done++
				case time.Now().After(deadline):
					h.t.Errorf("a caller got %d of %d: %v", done, successes, err)
					return
				case errors.Is(err, store.ErrUnavailable):
					time.Sleep(2 * time.Millisecond) // like a client while its server is away; the exact time does not matter
				}
			}
		})
	}
}

// TestLinearizable lets clients, each with its own connections, take ids from real stores while
// connections are cut and the server is killed and restarted.
func TestLinearizable(t *testing.T) {
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			backend := m.make(t)
			h := newHistory(t)
			var group sync.WaitGroup
			var proxies []*servers.Proxy
			for i := range processes {
				addr := ""
				if backend.server != nil {
					p := servers.NewProxy(t, backend.server.Addr(), nil)
					proxies = append(proxies, p)
					addr = p.Addr()
				}
				h.callAll(&group, open(t, backend.url(addr), sequence.Config{Timeout: 5 * time.Second}), i*callers)
			}
			over := make(chan struct{})
			go func() { group.Wait(); close(over) }()
			if backend.server != nil {
				h.hurt(backend, proxies, over)
			}
			<-over
			h.check(processes * callers * successes)
		})
	}
}

// hurt keeps cutting connections, and kills the server once in the middle.
func (h *history) hurt(b *backend, proxies []*servers.Proxy, over <-chan struct{}) {
	next, killed := int64(cutEvery), false
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		if count := h.count.Load(); count >= next {
			proxies[rand.IntN(len(proxies))].Cut()
			next = count + cutEvery
		}
		h.mu.Lock()
		half := len(h.calls) > processes*callers*successes/2
		h.mu.Unlock()
		if half && !killed {
			killed = true
			b.server.Kill()
			b.server.Restart()
		}
	}
}
