package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// segments prints how callers and store do when segments issue ids at full speed.
func segments() error {
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", "Segment", "-benchtime", "5x", "-count", "3", "-timeout", "20m", "./cmd/firn/e2e/leases")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	names, values := figures(string(out))
	if len(names) == 0 {
		return fmt.Errorf("%s: no figures in\n%s", cmd, out)
	}
	fmt.Println("| store | settings | callers | million ids a second | calls that waited | writes a second | writes in a target |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	for _, name := range names {
		parts := strings.Split(name, "/")
		if len(parts) != 4 {
			return fmt.Errorf("unexpected figure of segments: %q", name)
		}
		median := func(unit string) float64 {
			v := slices.Sorted(slices.Values(values[name][unit]))
			return append(v, 0)[len(v)/2] // 0 without any
		}
		target := "–"
		if len(values[name]["writes/target"]) > 0 {
			target = fmt.Sprintf("%.1f", median("writes/target"))
		}
		fmt.Printf("| %s | %s | %s | %.1f | %.5f %% | %.1f | %s |\n", parts[1], parts[2], parts[3],
			median("Mids/s"), median("waits/million")/1e4, median("writes/s"), target)
	}
	return nil
}

// figures parses the output of go test: the names of the benchmarks, in order, and the values of each by unit.
func figures(out string) (names []string, values map[string]map[string][]float64) {
	values = map[string]map[string][]float64{}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of processors
			name = name[:i]
		}
		if values[name] == nil {
			names = append(names, name)
			values[name] = map[string][]float64{}
		}
		for i := 2; i+1 < len(words); i += 2 {
			if v, err := strconv.ParseFloat(words[i], 64); err == nil {
				values[name][words[i+1]] = append(values[name][words[i+1]], v)
			}
		}
	}
	return names, values
}
