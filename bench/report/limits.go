package main

import (
	"context"
	"fmt"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"

	"github.com/firn-id/firn"
)

// limits measures generators at the limit of their default layouts: how many ids they give to one
// goroutine, and how many processors that keeps busy.
func limits() error {
	exact, err := generator("firn", firn.Config{})
	if err != nil {
		return err
	}
	lagging, err := generator("firn", firn.Config{Lag: time.Millisecond})
	if err != nil {
		return err
	}
	node, err := bwmarrin.NewNode(1)
	if err != nil {
		return err
	}
	sony, err := sonyflake.New(sonyflake.Settings{MachineID: func() (int, error) { return 1, nil }})
	if err != nil {
		return err
	}
	ctx := context.Background()
	fmt.Println("| at the limit of its layout | ids a second | of those possible | cores busy |")
	fmt.Println("| --- | --- | --- | --- |")
	for _, s := range []struct {
		name     string
		possible float64
		next     func() error
	}{
		{"Firn", 4096e3, func() error { _, err := exact.Next(ctx); return err }},
		{"Firn, `Lag` 1ms", 4096e3, func() error { _, err := lagging.Next(ctx); return err }},
		{"bwmarrin/snowflake", 4096e3, func() error { node.Generate(); return nil }},
		{"sonyflake 2", 25600, func() error { _, err := sony.NextID(); return err }},
	} {
		const while = 5 * time.Second
		used, begun, n := processTime(), time.Now(), 0
		for ; time.Since(begun) < while; n += 256 {
			for range 256 {
				if err := s.next(); err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
			}
		}
		wall := time.Since(begun)
		rate := float64(n) / wall.Seconds()
		fmt.Printf("| %s | %.0f | %.1f %% | %.3f |\n", s.name, rate, 100*rate/s.possible, float64(processTime()-used)/float64(wall))
	}
	return nil
}
