// Command report runs benchmarks several times and prints the medians as a Markdown
// table: those of the generators, or those that its argument names. Run it in the root
// of the repository.
//
//	go run ./bench/report             # Firn's generator and others
//	go run ./bench/report next        # single calls of Firn's generator, in short slices, for a busy machine
//	go run ./bench/report lag         # how late the times in ids are, with and without a lag
//	go run ./bench/report segments    # segments under full demand, on real stores
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 0:
		return generators()
	case len(args) == 1 && args[0] == "next":
		return next()
	case len(args) == 1 && args[0] == "lag":
		return lags()
	case len(args) == 1 && args[0] == "segments":
		return segments()
	default:
		return fmt.Errorf("%q: write no argument, for the generators, or next, lag or segments", args)
	}
}

// measure runs the benchmarks of a package.
func measure(pkg, benchmarks string, flags ...string) (*figures, error) {
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

func generators() error {
	table, err := measure("./bench", ".", "-benchmem", "-benchtime", "300ms", "-count", "5")
	if err != nil {
		return err
	}
	floor := table.median("Floor/time.Since", "ns/op")
	if floor == 0 {
		return errors.New("no figure for time.Since")
	}
	fmt.Println("| | ns an id | × time.Since | two goroutines | two ÷ one | allocs | cores busy |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	for _, name := range table.names {
		if strings.HasSuffix(name, "-2") && table.has(strings.TrimSuffix(name, "-2")) {
			continue
		}
		one, two := table.median(name, "ns/op"), table.median(name+"-2", "ns/op")
		if perID := table.median(name, "ns/id"); perID > 0 {
			one = perID
		}
		second, ratio := "", ""
		if two > 0 {
			second, ratio = fmt.Sprintf("%.1f", two), fmt.Sprintf("%.2f", two/one)
		}
		cores := ""
		if table.median(name, "cores") > 0 {
			cores = fmt.Sprintf("%.2f", table.median(name, "cores"))
		}
		allocs := ""
		if table.has2(name, "allocs/op") && !strings.HasPrefix(name, "Floor/") {
			allocs = fmt.Sprint(table.median(name, "allocs/op"))
		}
		fmt.Printf("| %s | %.2f | %.2f | %s | %s | %s | %s |\n", name, one, one/floor, second, ratio, allocs, cores)
	}
	return nil
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
