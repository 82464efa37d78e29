package idset

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

// small is the size of chunks in tests.
const small = 10_007

type repeat struct {
	id            firn.ID
	before, again int64
}

func repeatsOf(t *testing.T, ids []firn.ID, add func(*Sorter)) []repeat {
	t.Helper()
	dir := t.TempDir()
	s := newSorter(dir, small)
	add(s)
	var parts [3][]repeat
	to := func(part *[]repeat) func(firn.ID, int64, int64) {
		return func(id firn.ID, before, again int64) { *part = append(*part, repeat{id, before, again}) }
	}
	if err := s.Repeats(t.Context(), to(&parts[0]), to(&parts[1]), to(&parts[2])); err != nil {
		t.Fatal(err)
	}
	got := slices.Concat(parts[:]...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return got
}

// wanted finds the repeats by a map.
func wanted(ids []firn.ID, at func(i int) int64) []repeat {
	last := make(map[firn.ID]int64, len(ids))
	var want []repeat
	for i, id := range ids {
		if before, ok := last[id]; ok {
			want = append(want, repeat{id, before, at(i)})
		}
		last[id] = at(i)
	}
	slices.SortStableFunc(want, func(a, b repeat) int {
		if a.id != b.id {
			return int(min(max(a.id-b.id, -1), 1))
		}
		return int(min(max(a.again-b.again, -1), 1))
	})
	return want
}

func TestASorterFindsWhatAMapFinds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const many = 5*small + small/3
	for name, id := range map[string]func(i int) firn.ID{
		"ascending":            func(i int) firn.ID { return firn.ID(i) << 12 },
		"descending":           func(i int) firn.ID { return firn.MaxID - firn.ID(i) },
		"few values":           func(i int) firn.ID { return firn.ID(random.IntN(3_000)) },
		"any values":           func(int) firn.ID { return firn.ID(random.Int64()) },
		"eight interleaved":    func(i int) firn.ID { return firn.ID(i%8)<<40 | firn.ID(i/8) },
		"the ends":             func(i int) firn.ID { return []firn.ID{0, firn.MaxID, firn.ID(i)}[i%3] },
		"equal over two files": func(i int) firn.ID { return firn.ID(i%small)<<22 | 5 },
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 1000, many} {
				ids := make([]firn.ID, n)
				for i := range ids {
					ids[i] = id(i)
				}
				got := repeatsOf(t, ids, func(s *Sorter) {
					for part := range slices.Chunk(ids, 7_001) {
						if err := s.Add(part); err != nil {
							t.Fatal(err)
						}
					}
				})
				if want := wanted(ids, func(i int) int64 { return int64(i) }); !slices.Equal(got, want) {
					t.Errorf("of %d ids: %d repeats, %d are right; the first: %v, %v", n, len(got), len(want), got[:min(3, len(got))], want[:min(3, len(want))])
				}
			}
		})
	}
}

func TestASorterSkipsPositions(t *testing.T) {
	ids := []firn.ID{7, 8, 7, 8, 7}
	far := []int64{0, 5, 5_000_000_000, 5_000_000_001, 20_000_000_000}
	got := repeatsOf(t, ids, func(s *Sorter) {
		for i, at := range far {
			s.Skip(at - s.next)
			if err := s.Add(ids[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
	})
	if want := wanted(ids, func(i int) int64 { return far[i] }); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Positions have 32 bits within a chunk, which may begin with lines without ids, and be cut short by them.
func TestASorterSkipsMorePositionsThanAChunkHas(t *testing.T) {
	ids := []firn.ID{5, 6, 5, 3, 6}
	const skipped = 1 << 32
	got := repeatsOf(t, ids, func(s *Sorter) {
		for _, id := range ids {
			s.Skip(skipped)
			if err := s.Add([]firn.ID{id}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if want := wanted(ids, func(i int) int64 { return int64(i+1)*skipped + int64(i) }); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestASorterWithoutAPlaceToWrite(t *testing.T) {
	s := NewSorter(filepath.Join(t.TempDir(), "missing"))
	ids := make([]firn.ID, chunkIDs)
	var err error
	for range 4 {
		if err = s.Add(ids); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "temporary file for sorted ids: ") {
		t.Errorf("adding: %v", err)
	}
	if err := s.Repeats(t.Context(), func(firn.ID, int64, int64) { t.Error("a repeat after an error") }); err == nil {
		t.Error("no error of Repeats")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestASorterStopsWithItsContext(t *testing.T) {
	s := NewSorter(t.TempDir())
	if err := s.Add([]firn.ID{1, 1}); err != nil {
		t.Fatal(err)
	}
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := s.Repeats(ctx, func(firn.ID, int64, int64) { t.Error("a repeat") }); !errors.Is(err, why) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkSorter(b *testing.B) {
	for name, id := range map[string]func(i int) firn.ID{
		"ascending": func(i int) firn.ID { return firn.ID(i) },
		"of eight":  func(i int) firn.ID { return firn.ID(i/8/10)<<22 | firn.ID(i%8)<<12 | firn.ID(i/8%10) },
		"shuffled":  func(i int) firn.ID { return firn.ID(i * 0x9E3779B1 & (1<<40 - 1)) },
	} {
		b.Run(name, func(b *testing.B) {
			s := NewSorter(b.TempDir())
			part := make([]firn.ID, 0, 4096)
			for i := range b.N {
				if part = append(part, id(i)); len(part) == cap(part) || i == b.N-1 {
					if err := s.Add(part); err != nil {
						b.Fatal(err)
					}
					part = part[:0]
				}
			}
			none := func(id firn.ID, _, _ int64) { b.Error(id) }
			if err := s.Repeats(b.Context(), none, none); err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
