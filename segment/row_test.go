package segment

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// released is a source whose next range comes when a test says so.
type released struct {
	next firn.ID
	size chan int64
}

func (r *released) Fetch(ctx context.Context, _ string, _ Ask) (Range, error) {
	select {
	case count := <-r.size:
		grant := Range{First: r.next, Count: count, Stride: 1}
		r.next = grant.Last() + 1
		return grant, nil
	case <-ctx.Done():
		return Range{}, context.Cause(ctx)
	}
}

func TestWhoWaitsLongestIsServedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &released{next: 1, size: make(chan int64)}
		s, err := Open(Config{Source: source, Ahead: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.Name("orders")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		var mu sync.Mutex
		begin := func(who string, take func() (Range, error)) {
			go func() {
				r, err := take()
				mu.Lock()
				defer mu.Unlock()
				if got[who] = r.String(); err != nil {
					got[who] = err.Error()
				}
			}()
			synctest.Wait()
		}
		row := func(count int) func() (Range, error) {
			return func() (Range, error) { return n.Consecutive(t.Context(), count) }
		}
		some := func(ctx context.Context, count int) func() (Range, error) {
			return func() (Range, error) { return n.Take(ctx, count) }
		}
		ctx, leave := context.WithCancelCause(t.Context())
		begin("one", some(t.Context(), 1))
		begin("long", row(20))
		begin("who leaves", some(ctx, 5))
		begin("short", row(3))
		begin("two", some(t.Context(), 2))
		begin("last", some(t.Context(), 9))
		leave(errors.New("gone"))
		expect := func(release int64, want map[string]string) {
			t.Helper()
			if release > 0 {
				source.size <- release
			}
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			clear(got)
		}
		expect(0, map[string]string{"who leaves": "gone"})
		expect(6, map[string]string{"one": "1 to 1", "short": "2 to 4", "two": "5 to 6"})
		begin("new", some(t.Context(), 1))
		expect(20, map[string]string{"long": "7 to 26"})
		expect(4, map[string]string{"last": "27 to 30"})
		expect(4, map[string]string{"new": "31 to 31"})
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// distant is a source that takes a millisecond.
type distant struct{ next firn.ID }

func (d *distant) Fetch(_ context.Context, _ string, ask Ask) (Range, error) {
	time.Sleep(time.Millisecond)
	r := Range{First: d.next, Count: ask.Step, Stride: 1}
	d.next = r.Last() + 1
	return r, nil
}

// TestOthersAreServedBesideRows: callers who take all that is fetched as rows, all the time.
func TestOthersAreServedBesideRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(Config{Source: &distant{next: 1}, MinStep: 100, MaxStep: 100})
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.Name("orders")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for ctx.Err() == nil {
					if r, err := n.Consecutive(ctx, 100); err == nil && r.Count != 100 {
						t.Errorf("%v", r)
					}
				}
			})
		}
		last := firn.ID(0)
		for range 200 {
			id, err := n.NextContext(ctx)
			if err != nil || id <= last {
				t.Errorf("%d after %d, %v", id, last, err)
				break
			}
			last = id
		}
		cancel()
		group.Wait()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
