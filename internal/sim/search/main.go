// Command search plays simulated histories until one fails.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/firn-id/firn/internal/sim"
)

func main() {
	var o sim.Options
	seeds := flag.Uint64("seeds", 1000, "how many histories")
	from := flag.Uint64("from", 0, "the first seed")
	seed := flag.Int64("seed", -1, "play this one only")
	regime := flag.String("regime", "", "durable, reasserted, strict or unprotected")
	flag.IntVar(&o.Steps, "steps", 10_000, "events before the faults end")
	flag.BoolVar(&o.Trace, "trace", false, "print the story")
	flag.Parse()
	o.Regime = sim.Regime(*regime)
	if *seed >= 0 {
		*from, *seeds = uint64(*seed), 1
	}
	begun := time.Now()
	steps, ids, found := 0, 0, 0
	for s := *from; s < *from+*seeds; s++ {
		o.Seed = s
		r := sim.Run(o)
		steps += r.Steps
		ids += r.IDs
		for _, line := range r.Story {
			fmt.Println(line)
		}
		if r.Finding != nil {
			found++
			fmt.Printf("seed %d, step %d: %s: %s\n  %s\n", s, r.Finding.Step, r.Finding.Kind, r.Finding.Text, r.Plan)
			if found > 5 {
				break
			}
		}
	}
	took := time.Since(begun)
	fmt.Printf("%d steps, %d ids, %v, %.0f steps/s\n", steps, ids, took, float64(steps)/took.Seconds())
	if found > 0 {
		os.Exit(1)
	}
}
