package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"

	"github.com/firn-id/firn"
)

// A subject is a call to be measured, by one goroutine and by two.
type subject struct {
	name string
	ids  int                                   // of one call
	loop func(goroutine int) func(n int) error // makes n calls
}

const (
	enough  = 200 // slices of each subject that count
	longest = 5 * time.Minute
	slice   = 2 * time.Millisecond
	// ran is the least part of the wall time that each goroutine of a slice must have been running:
	// on a shared machine the others would measure the neighbours.
	ran = 0.93
)

// next measures single calls in many short slices of all subjects in turn, so that what the machine does
// beside them slows down all of them alike, and prints medians.
func next() error {
	if runtime.GOMAXPROCS(0) < 2 {
		return errors.New("two processors are needed")
	}
	subjects, err := nextSubjects()
	if err != nil {
		return err
	}
	type result struct {
		calls int // of one goroutine in a slice
		perID []float64
	}
	results := make([][2]result, len(subjects))
	for i, s := range subjects {
		for g := range 2 {
			r := &results[i][g]
			for r.calls = 64; ; r.calls *= 2 {
				wall, busy, err := s.slice(g+1, r.calls)
				if err != nil {
					return err
				}
				if min(wall, busy) > slice/2 {
					break
				}
			}
		}
	}
	rounds, begun := 0, time.Now()
	for least := 0; least < enough && time.Since(begun) < longest; rounds++ {
		least = enough
		for _, i := range rand.Perm(2 * len(subjects)) {
			s, g := &subjects[i/2], i%2
			r := &results[i/2][g]
			wall, busy, err := s.slice(g+1, r.calls)
			if err != nil {
				return err
			}
			if float64(busy) >= ran*float64(wall) {
				r.perID = append(r.perID, float64(wall)/float64(r.calls*(g+1)*s.ids))
			}
			least = min(least, len(r.perID))
		}
	}
	fmt.Println("| | ns an id, one goroutine | two in parallel | slices that count |")
	fmt.Println("| --- | --- | --- | --- |")
	for i, s := range subjects {
		one, two := results[i][0].perID, results[i][1].perID
		fmt.Printf("| %s | %.2f | %.2f | %d, %d of %d |\n", s.name, median(one), median(two), len(one), len(two), rounds)
	}
	return nil
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
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

// threadTime returns the processor time of the calling thread. That of the process would lack what its
// other threads have used since their last timer interrupt.
func threadTime() time.Duration {
	const rusageThread = 1 // Linux
	var u syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &u); err != nil {
		panic(err) // it has no other errors than for wrong arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// unused keeps the compiler from leaving out calls.
var unused [2]struct {
	id firn.ID
	_  [120]byte
}

func nextSubjects() ([]subject, error) {
	const wide = "41/0/0/22" // its sequence is never used up, so that a call itself is measured
	ctx := context.Background()
	subjects := []subject{
		{"atomic add", 1, func() func(int) func(int) error {
			var word struct {
				_ [64]byte
				atomic.Int64
				_ [64]byte
			}
			return func(int) func(int) error {
				return func(n int) error {
					for range n {
						word.Add(1)
					}
					return nil
				}
			}
		}()},
		{"time.Since", 1, func(g int) func(int) error {
			start := time.Now()
			return func(n int) error {
				for range n {
					unused[g].id = firn.ID(time.Since(start))
				}
				return nil
			}
		}},
	}
	ofNext := func(gen *firn.Generator) func(int) func(int) error {
		return func(g int) func(int) error {
			return func(n int) error {
				for range n {
					id, err := gen.Next(ctx)
					if err != nil {
						return err
					}
					unused[g].id = id
				}
				return nil
			}
		}
	}
	ofRun := func(gen *firn.Generator, count int) func(int) func(int) error {
		return func(int) func(int) error {
			ids := make([]firn.ID, 0, count)
			return func(n int) error {
				for range n {
					for ids = ids[:0]; len(ids) < count; {
						run, err := gen.Take(ctx, count-len(ids))
						if err != nil {
							return err
						}
						ids = run.AppendTo(ids)
					}
				}
				return nil
			}
		}
	}
	ofFill := func(gen *firn.Generator, count int) func(int) func(int) error {
		return func(int) func(int) error {
			ids := make([]firn.ID, count)
			return func(n int) error {
				for range n {
					if _, err := gen.Fill(ctx, ids); err != nil {
						return err
					}
				}
				return nil
			}
		}
	}
	ofLocal := func(gen *firn.Generator) func(int) func(int) error {
		locals := [2]*firn.Local{gen.Local(), gen.Local()}
		return func(g int) func(int) error {
			return func(n int) error {
				l := locals[g]
				for range n {
					id, err := l.Next(ctx)
					if err != nil {
						return err
					}
					unused[g].id = id
				}
				return nil
			}
		}
	}
	var exact, lagging, local, virtual *firn.Generator
	for _, of := range []struct {
		g   **firn.Generator
		cfg firn.Config
	}{
		{&exact, firn.Config{}}, {&lagging, firn.Config{Lag: time.Millisecond}}, {&local, firn.Config{Lag: time.Millisecond}},
		{&virtual, firn.Config{Clock: firn.ClockVirtual}},
	} {
		var err error
		if of.cfg.Layout, err = firn.ParseLayout(wide); err != nil {
			return nil, err
		}
		if *of.g, err = firn.New(0, of.cfg); err != nil {
			return nil, err
		}
	}
	bwmarrin.NodeBits, bwmarrin.StepBits = 0, 22 // settings of the package, read when a node is made
	node, err := bwmarrin.NewNode(0)
	if err != nil {
		return nil, err
	}
	return append(subjects, []subject{
		{"**Next**", 1, ofNext(exact)},
		{"**Next, Lag 1ms**", 1, ofNext(lagging)},
		{"**Local, Lag 1ms**", 1, ofLocal(local)},
		{"Next, virtual clock", 1, ofNext(virtual)},
		{"Fill of 16", 16, ofFill(exact, 16)},
		{"Fill of 1,024", 1024, ofFill(exact, 1024)},
		{"Take and AppendTo of 1,024", 1024, ofRun(exact, 1024)},
		{"bwmarrin/snowflake, 22-bit step", 1, func(g int) func(int) error {
			return func(n int) error {
				for range n {
					unused[g].id = firn.ID(node.Generate())
				}
				return nil
			}
		}},
	}...), nil
}
