package main

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// A plan lists faults and their order. It depends only on the seed and the store: the random numbers of
// a step do not depend on the results of others.
type plan struct {
	seed   uint64
	name   string
	faults []fault // possible with the store
}

// rng returns the numbers of a step.
func (p plan) rng(step int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.name)) // never fails
	return rand.New(rand.NewPCG(p.seed^h.Sum64(), uint64(step)))
}

// A step is a fault, and perhaps another at the same time.
type step struct {
	pause time.Duration // before it
	acts  []act
}

// An act is a fault done to a process, or to the store.
type act struct {
	fault
	on  *issuer
	rng *rand.Rand
}

// step returns a step by its number.
func (p plan) step(w *world, n int) step {
	rng := p.rng(n)
	s := step{pause: between(rng, 100*time.Millisecond, 800*time.Millisecond)}
	on := rng.Perm(len(w.issuers))
	first := choose(rng, p.faults)
	s.acts = append(s.acts, act{first, w.issuers[on[0]], rand.New(rand.NewPCG(rng.Uint64(), 1))})
	if !first.solo && rng.IntN(2) == 0 {
		more := slices.DeleteFunc(slices.Clone(p.faults), func(f fault) bool { return f.alone || f.solo })
		s.acts = append(s.acts, act{choose(rng, more), w.issuers[on[1]], rand.New(rand.NewPCG(rng.Uint64(), 2))})
	}
	return s
}

// choose draws a fault by weight.
func choose(rng *rand.Rand, faults []fault) fault {
	sum := 0
	for _, f := range faults {
		sum += f.weight
	}
	n := rng.IntN(sum)
	for _, f := range faults {
		if n < f.weight {
			return f
		}
		n -= f.weight
	}
	panic("unreachable: n is less than the sum")
}

// between draws a duration.
func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)+1))
}

// do executes a step. Ids received meanwhile count for its first fault.
func (w *world) do(s step, n int) error {
	w.mark.Store(s.acts[0].mark)
	defer w.mark.Store(0)
	var group errgroup.Group
	for _, a := range s.acts {
		group.Go(func() error {
			w.log.printf("step %d: %s (%s)", n, a.name, a.on.name)
			err := a.do(w, a)
			w.done[a.mark].Add(1)
			w.log.printf("step %d: over: %s", n, a.name)
			return err
		})
	}
	return group.Wait()
}
