package segment

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/memstore"
)

// TestARowThatIsTakenIsNotServedAgain: a range comes after a caller has taken its row, and
// before it has gone.
func TestARowThatIsTakenIsNotServedAgain(t *testing.T) {
	s, err := Open(Config{Store: memstore.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Name("orders")
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	long, short := &row{count: 1000}, &row{count: 7}
	if n.rowEnds(short) || n.rowEnds(long) || n.longest() != 1000 {
		t.Fatalf("nothing is there: %+v, %+v", long, short)
	}
	n.chain = append(n.chain, Range{First: 1, Count: 100, Stride: 1})
	if !n.rowEnds(short) || short.got.Count != 7 {
		t.Fatalf("%+v", short)
	}
	n.chain = append(n.chain, Range{First: 101, Count: 1000, Stride: 1})
	n.serveRows()
	if short.got.First != 1 || short.got.Count != 7 || long.got.Count != 1000 || len(n.rows) != 0 || n.longest() != 0 {
		t.Errorf("%+v and %+v, %d wait", short, long, len(n.rows))
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
