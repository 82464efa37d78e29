package main

import (
	"fmt"
	"strings"
)

// segments prints how callers and store do when segments issue ids at full speed.
func segments() error {
	table, err := benchmark("./cmd/firn/e2e/leases", "Segment", "-benchtime", "5x", "-count", "3", "-timeout", "20m")
	if err != nil {
		return err
	}
	fmt.Println("| store | settings | callers | million ids a second | calls that waited | writes a second | writes in a target |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	for _, name := range table.names {
		parts := strings.Split(name, "/")
		if len(parts) != 4 {
			return fmt.Errorf("unexpected figure of segments: %q", name)
		}
		target := "–"
		if table.has2(name, "writes/target") {
			target = fmt.Sprintf("%.1f", table.median(name, "writes/target"))
		}
		fmt.Printf("| %s | %s | %s | %.1f | %.5f %% | %.1f | %s |\n", parts[1], parts[2], parts[3],
			table.median(name, "Mids/s"), table.median(name, "waits/million")/1e4, table.median(name, "writes/s"), target)
	}
	return nil
}
