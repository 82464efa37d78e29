package idset_test

import (
	"sync"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

func TestEveryDuplicateIsCounted(t *testing.T) {
	var s idset.Set
	if got := s.Add([]firn.ID{0, 1, 4095, 4096, firn.MaxID}); got != 0 {
		t.Errorf("%d duplicates among distinct ids", got)
	}
	if got := s.Add([]firn.ID{4096, 2, 2, firn.MaxID}); got != 3 {
		t.Errorf("%d duplicates, want 3", got)
	}
	if s.Added() != 9 || s.Duplicates() != 3 {
		t.Errorf("added %d, duplicates %d", s.Added(), s.Duplicates())
	}
	want := []firn.ID{4096, 2, firn.MaxID}
	for i, id := range s.Examples() {
		if id != want[i] {
			t.Errorf("example %d is %d, want %d", i, id, want[i])
		}
	}
}

func TestConcurrentCallersLoseNoDuplicate(t *testing.T) {
	var s idset.Set
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range firn.ID(20_000) {
				s.Add([]firn.ID{i * 7})
			}
		})
	}
	wg.Wait()
	if s.Added() != 80_000 || s.Duplicates() != 60_000 {
		t.Errorf("added %d, duplicates %d, want 80000 and 60000", s.Added(), s.Duplicates())
	}
}
