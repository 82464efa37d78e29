//go:build linux && !race

package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What a command does before main is the sum of all packages that are linked into it: each import adds to it, also for
// commands that do not use it. The bounds of memory, page faults and size are a sixth to a third above what is usual, that
// of time is twice as much.
func TestTheCommandStartsWithLittleWork(t *testing.T) {
	const (
		maxBytes, maxAllocs = 1_300_000, 8_000 // of package initialization
		maxFaults           = 1500
		maxTimes            = 5        // processor time, compared with the small program
		maxSize             = 55 << 20 // of the binary
	)
	all, err := commands(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := runEach(all); err != nil {
			t.Fatal(err)
		}
	}
	next, small := all[0], all[2]
	times := slices.Min(next.busy) / slices.Min(small.busy)
	t.Logf("firn next: %d page faults, %.2f times the processor time of the small program", slices.Min(next.faults), times)
	if got := slices.Min(next.faults); got > maxFaults {
		t.Errorf("firn next has %d page faults, want at most %d", got, maxFaults)
	}
	if times > maxTimes {
		t.Errorf("firn next takes %.2f times the processor time of the small program, want at most %v", times, maxTimes)
	}

	info, err := os.Stat(next.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the binary has %d bytes", info.Size())
	if info.Size() > maxSize {
		t.Errorf("the binary has %d bytes, want at most %d: a new dependency is large, or looks methods up by name, as html/template does, so that the linker keeps all methods",
			info.Size(), maxSize)
	}

	if err := next.run("GODEBUG=inittrace=1,gctrace=1", "GOGC=100"); err != nil {
		t.Fatal(err)
	}
	bytes, allocs := initialized(t, next.said)
	t.Logf("package initialization: %d bytes, %d allocations", bytes, allocs)
	if bytes > maxBytes || allocs > maxAllocs {
		t.Errorf("package initialization allocates %d bytes %d times, want at most %d and %d: see GODEBUG=inittrace=1 firn version",
			bytes, allocs, maxBytes, maxAllocs)
	}
	if strings.Contains(next.said, "\ngc 1 ") {
		t.Error("firn next allocates more than 4 MB: it collects garbage")
	}
}

var initLine = regexp.MustCompile(`(?m)^init \S+ .* clock, (\d+) bytes, (\d+) allocs$`)

// initialized sums the lines of GODEBUG=inittrace=1.
func initialized(t *testing.T, trace string) (bytes, allocs int) {
	t.Helper()
	lines := initLine.FindAllStringSubmatch(trace, -1)
	if len(lines) == 0 {
		t.Fatalf("no package is initialized in %q", trace)
	}
	for _, line := range lines {
		b, err := strconv.Atoi(line[1])
		a, allocErr := strconv.Atoi(line[2])
		if err != nil || allocErr != nil {
			t.Fatalf("%q: %v, %v", line[0], err, allocErr)
		}
		bytes, allocs = bytes+b, allocs+a
	}
	return bytes, allocs
}
