package segment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// released is a source whose next range comes when a test says so.
type released struct {
	next, gap firn.ID
	size      chan int64
}

func (r *released) Fetch(ctx context.Context, _ string, _ Ask) (Range, error) {
	select {
	case count := <-r.size:
		grant := Range{First: r.next, Count: count, Stride: 1}
		r.next = grant.Last() + 1 + r.gap
		return grant, nil
	case <-ctx.Done():
		return Range{}, context.Cause(ctx)
	}
}

// queue is callers who wait for the ranges of one source, and what they got.
type queue struct {
	t      *testing.T
	all    *Segments
	name   *Namespace
	source *released

	mu  sync.Mutex
	got map[string]string
}

func newQueue(t *testing.T) *queue {
	q := &queue{t: t, source: &released{next: 1, size: make(chan int64)}, got: map[string]string{}}
	var err error
	if q.all, err = New(Config{Source: q.source, Ahead: 0.1}); err != nil {
		t.Fatal(err)
	}
	if q.name, err = q.all.Namespace("orders"); err != nil {
		t.Fatal(err)
	}
	return q
}

// join lets a caller come, after all who came before.
func (q *queue) join(who string, take func() (Range, error)) {
	go func() {
		r, err := take()
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.got[who] = r.String(); err != nil {
			q.got[who] = err.Error()
		}
	}()
	synctest.Wait()
}

func (q *queue) row(who string, count int) {
	q.join(who, func() (Range, error) { return q.name.Reserve(q.t.Context(), count) })
}

func (q *queue) some(ctx context.Context, who string, count int) {
	q.join(who, func() (Range, error) { return q.name.Take(ctx, count) })
}

// expect has a range of so many ids come, and compares who goes with what then.
func (q *queue) expect(come int64, want map[string]string) {
	q.t.Helper()
	if come > 0 {
		q.source.size <- come
	}
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !maps.Equal(q.got, want) {
		q.t.Errorf("%v, want %v", q.got, want)
	}
	clear(q.got)
}

func (q *queue) close() {
	if err := q.all.Close(q.t.Context()); err != nil {
		q.t.Error(err)
	}
}

func TestTheLongestWaitingCallerIsServedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		ctx, leave := context.WithCancelCause(t.Context())
		q.some(t.Context(), "one", 1)
		q.row("long", 20)
		q.some(ctx, "who leaves", 5)
		q.row("short", 3)
		q.some(t.Context(), "two", 2)
		q.some(t.Context(), "last", 9)
		leave(errors.New("gone"))
		q.expect(0, map[string]string{"who leaves": `segment: wait for ids of "orders": context canceled: gone`})
		q.expect(6, map[string]string{"one": "1 to 1", "short": "2 to 4", "two": "5 to 6"})
		q.some(t.Context(), "new", 1)
		q.expect(20, map[string]string{"long": "7 to 26"})
		q.expect(4, map[string]string{"last": "27 to 30"})
		q.expect(4, map[string]string{"new": "31 to 31"})
		if s := q.name.State(); s.Waits != 7 {
			t.Errorf("%+v", s)
		}
		q.close()
	})
}

func TestARowOfOneIsOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.some(t.Context(), "one", 1)
		q.row("two", 1)
		q.row("three", 1)
		q.expect(9, map[string]string{"one": "1 to 1", "two": "2 to 2", "three": "3 to 3"})
		q.close()
	})
}

// Ranges that others have used up say nothing of whether a row is too long.
func TestARowWaitsForTheCallersBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		for i := range 2 * maxRows {
			q.row(strconv.Itoa(i), 10)
		}
		for i := range 2 * maxRows {
			q.expect(10, map[string]string{strconv.Itoa(i): fmt.Sprintf("%d to %d", 10*i+1, 10*i+10)})
		}
		q.source.gap = 1 // or they would be joined
		q.row("too long", 100)
		for range maxRows - 1 {
			q.expect(10, map[string]string{})
		}
		q.source.size <- 10
		synctest.Wait()
		if !strings.Contains(q.got["too long"], "16 ranges that were fetched are too short") {
			t.Error(q.got)
		}
		q.close()
	})
}

// Waiting callers get an error.
func TestCloseEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.some(t.Context(), "one", 1)
		q.row("row", 3)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.all.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a fetch is under way: %v", err)
		}
		q.expect(0, map[string]string{"one": firn.ErrClosed.Error(), "row": firn.ErrClosed.Error()})
		q.some(t.Context(), "late", 1)
		q.expect(0, map[string]string{"late": firn.ErrClosed.Error()})
	})
}

// Close ends a fetch that hangs, and only then stops the names.
func TestAFetchThatCloseEndsTellsItsWaitersThatItIsClosed(t *testing.T) {
	q := newQueue(t)
	w := waiter{count: 1}
	q.name.waiting.join(&w)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	q.name.fetch(ended)
	if !errors.Is(w.err, firn.ErrClosed) {
		t.Errorf("a waiter got %v", w.err)
	}
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
		s, err := New(Config{Source: &distant{next: 1}, MinStep: 100, MaxStep: 100})
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.Namespace("orders")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for ctx.Err() == nil {
					if r, err := n.Reserve(ctx, 100); err == nil && r.Count != 100 {
						t.Errorf("%v", r)
					}
				}
			})
		}
		last := firn.ID(0)
		for range 200 {
			id, err := n.Next(ctx)
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
