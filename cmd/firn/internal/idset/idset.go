// Package idset provides an exact set of ids, to find duplicates. It is small for generated ids:
// they are dense within a tick, so the set keeps one bit per id, in pages of 4,096. The ids of
// one second at the default layout's full rate take half a megabyte.
package idset

import (
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn"
)

const (
	pageBits = 12
	shards   = 64
)

type page [1 << pageBits / 64]uint64

// Set is a set of ids. The zero value is empty; its methods may be called
// concurrently.
type Set struct {
	shards     [shards]shard
	added      atomic.Int64
	duplicates atomic.Int64

	mu    sync.Mutex
	first []firn.ID
}

type shard struct {
	mu    sync.Mutex
	pages map[uint64]*page
}

// maxExamples bounds the duplicates that Examples returns.
const maxExamples = 10

// Add adds ids and returns how many of them were already in the set. It is fastest for ids in
// increasing order.
func (s *Set) Add(ids []firn.ID) (duplicates int) {
	for i := 0; i < len(ids); {
		number := uint64(ids[i]) >> pageBits
		sh := &s.shards[number%shards]
		sh.mu.Lock()
		if sh.pages == nil {
			sh.pages = map[uint64]*page{}
		}
		p := sh.pages[number]
		if p == nil {
			p = new(page)
			sh.pages[number] = p
		}
		for ; i < len(ids) && uint64(ids[i])>>pageBits == number; i++ {
			bit := uint64(ids[i]) & (1<<pageBits - 1)
			if p[bit/64]&(1<<(bit%64)) != 0 {
				duplicates++
				s.example(ids[i])
			}
			p[bit/64] |= 1 << (bit % 64)
		}
		sh.mu.Unlock()
	}
	s.added.Add(int64(len(ids)))
	s.duplicates.Add(int64(duplicates))
	return duplicates
}

func (s *Set) example(id firn.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.first) < maxExamples {
		s.first = append(s.first, id)
	}
}

// Added returns how many ids were added, duplicates included.
func (s *Set) Added() int64 { return s.added.Load() }

// Duplicates returns how many of the added ids were already in the set.
func (s *Set) Duplicates() int64 { return s.duplicates.Load() }

// Examples returns the first few duplicates.
func (s *Set) Examples() []firn.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]firn.ID(nil), s.first...)
}
