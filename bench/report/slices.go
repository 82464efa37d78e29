package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	slice = 2 * time.Millisecond
	// ran is the least part of the wall time that each goroutine of a slice must have been running: on a
	// shared machine the others would measure the neighbours, and two goroutines would run one after the other.
	ran = 0.93
)

// A measured is a subject with its figures.
type measured struct {
	subject
	one, two times
	allocs   float64 // of a call
}

// times are the nanoseconds an id of each slice that counts.
type times struct {
	calls int // of each goroutine in a slice
	perID []float64
}

// median returns nanoseconds an id: the wall time by the ids of all goroutines together. It is 0 if too
// few slices count.
func (t times) median() float64 {
	if len(t.perID) < few {
		return 0
	}
	v := slices.Sorted(slices.Values(t.perID))
	return v[len(v)/2]
}

// measure measures all subjects, by one goroutine and with two also by two, in many short slices, all in turn, so that what the machine does beside
// them slows all of them alike. It ends when each has enough slices that count, or after longest.
func measure(all []subject, goroutines, enough int, longest time.Duration) ([]measured, error) {
	if runtime.GOMAXPROCS(0) < goroutines {
		return nil, fmt.Errorf("%d processors are needed", goroutines)
	}
	table := make([]measured, len(all))
	for i, s := range all {
		m := &table[i]
		m.subject = s
		for g, t := range []*times{&m.one, &m.two}[:goroutines] {
			for t.calls = 64; ; t.calls *= 2 {
				wall, busy, err := s.slice(g+1, t.calls)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", s.name, err)
				}
				if min(wall, busy) > slice/2 {
					break
				}
			}
		}
		var err error
		if m.allocs, err = s.allocations(); err != nil {
			return nil, err
		}
	}
	begun, rounds := time.Now(), 0
	for ; rounds < enough || !sufficient(table, goroutines, enough, rounds) && time.Since(begun) < longest; rounds++ {
		for _, i := range rand.Perm(goroutines * len(table)) {
			m, g := &table[i/goroutines], i%goroutines
			t := []*times{&m.one, &m.two}[g]
			wall, busy, err := m.slice(g+1, t.calls)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			if float64(busy) >= ran*float64(wall) {
				t.perID = append(t.perID, float64(wall)/float64(t.calls*(g+1)*m.ids))
			}
		}
	}
	for _, m := range table {
		if len(m.one.perID) < few {
			return nil, fmt.Errorf("%s ran undisturbed for %v in %d of %d slices: the machine is too busy", m.name, slice, len(m.one.perID), rounds)
		}
	}
	return table, nil
}

// few is the least number of slices that a figure is made of.
const few = 10

// sufficient reports whether all figures have enough slices. Goroutines that wait for each other, as for a
// mutex, may never run in parallel: then their slices do not count, however many there are.
func sufficient(table []measured, goroutines, enough, rounds int) bool {
	return !slices.ContainsFunc(table, func(m measured) bool {
		one, two := len(m.one.perID), len(m.two.perID)
		return one < enough || goroutines == 2 && two < enough && (two >= few || rounds < 4*enough)
	})
}

// slice makes calls on each of some goroutines. It returns the wall time, and the processor time of
// the goroutine that had the least.
func (s *subject) slice(goroutines, calls int) (wall, busy time.Duration, err error) {
	var ready, done sync.WaitGroup
	var start atomic.Bool
	errs, used := make([]error, goroutines), make([]time.Duration, goroutines)
	begun, ended := make([]time.Duration, goroutines), make([]time.Duration, goroutines)
	zero := time.Now()
	for g := range goroutines {
		ready.Add(1)
		loop := s.loop(g)
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			for !start.Load() {
				runtime.Gosched()
			}
			before := threadTime()
			begun[g] = time.Since(zero)
			errs[g] = loop(calls)
			ended[g] = time.Since(zero)
			used[g] = threadTime() - before
		})
	}
	ready.Wait()
	start.Store(true)
	done.Wait()
	return slices.Max(ended) - slices.Min(begun), slices.Min(used), errors.Join(errs...)
}

// allocations returns the allocations of a call.
func (s *subject) allocations() (float64, error) {
	const calls = 1000
	var before, after runtime.MemStats
	loop := s.loop(0)
	runtime.ReadMemStats(&before)
	err := loop(calls)
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs - before.Mallocs) / calls), err
}

// threadTime returns the processor time of the calling thread. That of the process would lack what its
// other threads have used since their last timer interrupt.
func threadTime() time.Duration { return timeUsed(1) } // RUSAGE_THREAD of Linux

// processTime returns the processor time of the process.
func processTime() time.Duration { return timeUsed(syscall.RUSAGE_SELF) }

func timeUsed(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		panic(err) // it has no other errors than for wrong arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
