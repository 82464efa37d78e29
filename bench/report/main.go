// Command report measures and prints Markdown tables: single calls of generators, Firn's and others', or what its
// argument names. Run it in the root of the repository.
//
//	go run ./bench/report [-chart FILE]  # single calls in short slices, also on a busy machine; FILE gets an SVG picture
//	go run ./bench/report lag            # how late the times in ids are, with and without a lag
//	go run ./bench/report segments       # segments under full demand, on real stores
//	go run ./bench/report start          # the command as a whole process, and the memory of an idle server
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	picture := flag.String("chart", "", "write a picture of the single calls into this SVG file")
	flag.Parse()
	if err := run(*picture, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(picture string, args []string) error {
	switch {
	case len(args) == 0:
		return calls(picture)
	case picture != "":
		return fmt.Errorf("-chart draws the single calls: leave out %q", args)
	case len(args) == 1 && args[0] == "lag":
		return lags()
	case len(args) == 1 && args[0] == "segments":
		return segments()
	case len(args) == 1 && args[0] == "start":
		return starts()
	default:
		return fmt.Errorf("%q: write no argument, for single calls, or lag, segments or start", args)
	}
}

// calls measures single calls, and generators at their limits.
func calls(picture string) error {
	all, err := subjects()
	if err != nil {
		return err
	}
	table, err := measure(all, 2, 200, 5*time.Minute)
	if err != nil {
		return err
	}
	if err := show(table); err != nil {
		return err
	}
	if picture != "" {
		if err := chart(picture, table); err != nil {
			return err
		}
	}
	fmt.Println()
	return limits()
}

// benchmark runs the benchmarks of a package.
func benchmark(pkg, benchmarks string, flags ...string) (*figures, error) {
	cmd := exec.Command("go", append(append([]string{"test", "-run", "^$", "-bench", benchmarks}, flags...), pkg)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	table := read(out)
	if len(table.names) == 0 {
		return nil, fmt.Errorf("%s: no figures in\n%s", cmd, out)
	}
	return table, nil
}

// figures are the values of each benchmark by unit.
type figures struct {
	names  []string
	values map[string]map[string][]float64
}

func (f *figures) has(name string) bool { return f.values[name] != nil }

func (f *figures) has2(name, unit string) bool { return len(f.values[name][unit]) > 0 }

func (f *figures) median(name, unit string) float64 {
	v := slices.Sorted(slices.Values(f.values[name][unit]))
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}

// read parses the output of go test.
func read(out []byte) *figures {
	f := &figures{values: map[string]map[string][]float64{}}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(words[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of processors
			name = name[:i]
		}
		if !f.has(name) {
			f.names = append(f.names, name)
			f.values[name] = map[string][]float64{}
		}
		for i := 2; i+1 < len(words); i += 2 {
			if v, err := strconv.ParseFloat(words[i], 64); err == nil {
				f.values[name][words[i+1]] = append(f.values[name][words[i+1]], v)
			}
		}
	}
	return f
}
