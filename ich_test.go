package firn_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/firn-id/firn"
)

// oldICH composes an id as ICH.Snowflake did until 2021-11-25: it shifts the worker by its own width
// instead of the sequence's.
func oldICH(workIDLength int, ms, worker, index int64) firn.ID {
	return firn.ID(ms<<22 | worker<<workIDLength | index)
}

// These are the claims of docs/migrate-ich.md.

func TestOldICHIdsAreReadWithTheWidthsOfWorkerAndSequenceSwapped(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 10))
	for width := 1; width <= 10; width++ {
		l := mustLayout(fmt.Sprintf("ich:%d", 22-width))
		for range 10_000 {
			ms, worker, index := random.Int64N(1<<41), random.Int64N(1<<width), random.Int64N(1<<(22-width))
			p, err := l.Decompose(oldICH(width, ms, worker, index))
			if err != nil || int64(p.Tick) != ms {
				t.Fatalf("width %d: time %d is read as %d, %v", width, ms, p.Tick, err)
			}
			if index < 1<<width && (p.Worker != worker || p.Sequence != index) {
				t.Fatalf("width %d: worker %d, sequence %d are read as %d, %d", width, worker, index, p.Worker, p.Sequence)
			}
			if certain := max(22-2*width, 0); p.Sequence != index&(1<<width-1) || width >= 8 && p.Worker>>certain != worker>>certain {
				t.Fatalf("width %d: worker %d, sequence %d are read as %d, %d, where bits cannot overlap", width, worker, index, p.Worker, p.Sequence)
			}
		}
	}
}

func TestOldICHIdsNeverHaveTheDatacenterBit(t *testing.T) {
	const bit = 1 << 21 // datacenter 1 of the layouts 41/1/W-1/22-W
	for width := 1; width <= 10; width++ {
		// An or of numbers below a power of two is below it, so the greatest suffice. The number 2^W is assigned, too.
		for worker := range int64(1<<width + 1) {
			if id := oldICH(width, 0, worker, 1<<(22-width)-1); id >= bit {
				t.Errorf("width %d: worker %d makes %b", width, worker, id)
			}
		}
		l := mustLayout(fmt.Sprintf("41/1/%d/%d,epoch=2020-01-01", width-1, 22-width))
		if id, err := l.Compose(firn.Parts{Datacenter: 1}); err != nil || id != bit || l.MaxWorker() != 1<<(width-1)-1 {
			t.Errorf("width %d: the least id of datacenter 1 is %b, %v", width, id, err)
		}
	}
	if oldICH(0, 0, 0, 1<<22-1) < bit {
		t.Error("without worker bits the sequence does not reach the bit")
	}
}

func TestOldICHIdsOfOneMillisecondAreMostlyEqual(t *testing.T) {
	different := map[firn.ID]bool{}
	for worker := range int64(8) {
		for index := range int64(4096) {
			different[oldICH(10, 174000000000, worker, index)] = true
		}
	}
	if len(different) != 32_768-24_576 {
		t.Errorf("%d ids of 32,768 are different", len(different))
	}
}

func TestPublishedExamplesOfOldICHIds(t *testing.T) {
	for _, c := range []struct {
		id               firn.ID
		layout           string
		worker, sequence int64
	}{
		{729808896000005120, "ich:10", 1, 1024},
		{729808896000005120, "ich:12", 5, 0},
		{oldICH(9, 174000000000, 300, 4000), "ich:9", 18, 8096},
	} {
		p, err := mustLayout(c.layout).Decompose(c.id)
		if err != nil || p.Worker != c.worker || p.Sequence != c.sequence {
			t.Errorf("%d in %s: worker %d, sequence %d, %v; want %d, %d", c.id, c.layout, p.Worker, p.Sequence, err, c.worker, c.sequence)
		}
	}
	if id := oldICH(10, 174000000000, 5, 0); id != 729808896000005120 {
		t.Errorf("worker 5 makes %d", id)
	}
}
