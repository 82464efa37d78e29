// Command report runs the benchmarks several times in one go and prints the
// medians as a Markdown table. Run it at the repository's top.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

const runs = "5"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run() error {
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", ".", "-benchmem", "-benchtime", "300ms", "-count", runs, "./bench")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	table := read(out)
	floor := table.median("Floor/time.Since", "ns/op")
	if floor == 0 {
		return fmt.Errorf("no figure for time.Since in\n%s", out)
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

// read takes the output of go test apart.
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
