package ledger

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// files writes what callers received, one file each, and returns their paths.
func files(t *testing.T, callers ...[]Batch) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for i, batches := range callers {
		path := filepath.Join(dir, strconv.Itoa(i))
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range batches {
			if err := w.Add(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func received(asked, answered time.Duration, ids ...int64) Batch {
	var r Runs
	for _, id := range ids {
		r = r.Add(id)
	}
	return Batch{asked, answered, uint32(asked), r}
}

func TestIDsThatFollowEachOtherAreOneRun(t *testing.T) {
	b := received(1, 2, 7, 8, 9, 9, 12, 11)
	if len(b.Runs) != 4 || b.Runs.Count() != 6 {
		t.Errorf("%v", b.Runs)
	}
}

// TestDuplicatesAreCountedAsASetWouldDo compares with counting by a set.
func TestDuplicatesAreCountedAsASetWouldDo(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		space := int64(100 + r.IntN(3000))
		seen := map[int64]bool{}
		var want Count
		callers := make([][]Batch, 1+r.IntN(4))
		for i := range callers {
			for range r.IntN(20) {
				b := received(time.Duration(r.IntN(5)), 9)
				for range r.IntN(10) {
					first := r.Int64N(space)
					for id := first; id < first+r.Int64N(30); id++ {
						b.Runs = b.Runs.Add(id)
						want.IDs++
						if seen[id] {
							want.Bad++
						}
						seen[id] = true
					}
				}
				callers[i] = append(callers[i], b)
			}
		}
		f, err := Duplicates(files(t, callers...))
		if err != nil {
			t.Fatal(err)
		}
		var byMark Count
		for _, c := range f.ByMark {
			byMark.IDs += c.IDs
			byMark.Bad += c.Bad
		}
		if got := (Count{f.IDs, f.Bad}); got != want || byMark != want {
			t.Errorf("seed %d: %+v, by marks %+v; want %+v", seed, got, byMark, want)
		}
	}
}

func TestADuplicateCountsForTheLaterCall(t *testing.T) {
	f, err := Duplicates(files(t, []Batch{received(30, 40, 5, 6, 7)}, []Batch{received(10, 20, 1, 2, 3, 4, 5, 6)}))
	if err != nil {
		t.Fatal(err)
	}
	if f.Bad != 2 || f.ByMark[30].Bad != 2 || f.ByMark[10].Bad != 0 {
		t.Errorf("%+v", f)
	}
	if len(f.Examples) != 1 || f.Examples[0].IDs != (Run{5, 2}) || f.Examples[0].It.Answered != 40 || f.Examples[0].Other.Answered != 20 {
		t.Errorf("%+v", f.Examples)
	}
}

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		callers [][]Batch
		want    int64
	}{
		"one after the other":                      {[][]Batch{{received(1, 2, 1, 2), received(3, 4, 3)}, {received(5, 6, 4)}}, 0},
		"asked at the same time, in any order":     {[][]Batch{{received(1, 9, 5, 6)}, {received(2, 3, 1), received(4, 5, 2)}}, 0},
		"the answer and the request at one moment": {[][]Batch{{received(1, 3, 5)}, {received(3, 4, 4)}}, 0},
		"asked after a greater one was received":   {[][]Batch{{received(1, 2, 5)}, {received(3, 4, 4)}}, 1},
		"one of several":                           {[][]Batch{{received(1, 2, 5)}, {received(3, 4, 4, 9)}}, 1},
		"the same once more":                       {[][]Batch{{received(1, 2, 5)}, {received(3, 4, 5)}}, 1},
		"by the same caller":                       {[][]Batch{{received(1, 2, 5), received(3, 4, 1, 2, 3)}}, 3},
		"after many others":                        {[][]Batch{{received(1, 2, 5), received(3, 4, 6), received(20, 21, 11)}, {received(7, 8, 9), received(9, 10, 10)}, {received(5, 6, 2), received(30, 31, 12)}}, 1},
		"nothing":                                  {[][]Batch{{}, {}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Order(files(t, c.callers...))
			if err != nil {
				t.Fatal(err)
			}
			if f.Bad != c.want || (len(f.Examples) > 0) != (c.want > 0) {
				t.Errorf("%d ids out of order, want %d: %v", f.Bad, c.want, f.Examples)
			}
		})
	}
}

func TestAFileThatWasCutOffIsAnError(t *testing.T) {
	path := files(t, []Batch{received(1, 2, 5, 7, 9)})
	if err := os.Truncate(path[0], 50); err != nil {
		t.Fatal(err)
	}
	if _, err := Duplicates(path); err == nil {
		t.Error("duplicates: no error")
	}
	if _, err := Order(path); err == nil {
		t.Error("order: no error")
	}
}
