package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// lags measures how far the times in ids are behind the clock when their callers have them, of a
// generator that reads the clock for each id and of one with a lag. The difference of the two is
// what the lag adds; what they share is callers that were interrupted.
func lags() error {
	micros, err := firn.ParseLayout("52/0/0/11,unit=1us") // whose units are too short to hide a lag
	if err != nil {
		return err
	}
	fmt.Println("| callers | Lag | median | p99 | p99.9 | greatest |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	for _, c := range []struct {
		name    string
		callers int
		rest    time.Duration // after 1,000 ids, at most
	}{
		{"1, without a pause", 1, 0}, {"2, without a pause", 2, 0}, {"1, bursts of 1,000 ids", 1, 5 * time.Millisecond},
		{"8, without a pause", 8, 0}, {"64, without a pause", 64, 0},
	} {
		for _, lag := range []time.Duration{0, time.Millisecond} {
			late, err := lagOf(firn.Config{Layout: micros, Lag: lag}, c.callers, c.rest)
			if err != nil {
				return err
			}
			at := func(part float64) time.Duration { return late[int(part*float64(len(late)-1))] }
			fmt.Printf("| %s | %v | %v | %v | %v | %v |\n", c.name, lag, at(.5), at(.99), at(.999), at(1))
		}
	}
	return nil
}

// lagOf returns, in order, how late one of 16 ids made in two seconds was.
func lagOf(cfg firn.Config, callers int, rest time.Duration) ([]time.Duration, error) {
	gen, err := firn.New(0, cfg)
	if err != nil {
		return nil, err
	}
	defer gen.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var all sync.WaitGroup
	late, errs := make([][]time.Duration, callers), make([]error, callers)
	for i := range callers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id, err := gen.Next(ctx)
				if err != nil {
					if ctx.Err() == nil {
						errs[i] = err
					}
					return
				}
				if n%16 == 0 {
					late[i] = append(late[i], time.Since(id.Time(cfg.Layout)))
				}
				if rest > 0 && n%1000 == 999 {
					time.Sleep(time.Duration(rand.Int64N(int64(rest))))
				}
			}
		})
	}
	all.Wait()
	joined := slices.Concat(late...)
	slices.Sort(joined)
	return joined, errors.Join(errs...)
}
