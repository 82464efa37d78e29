package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/firn-id/firn/store/memstore"
)

// crowd is what the benchmark of the grid is served: this process again, with a pool of which all workers are held, and
// renewed, until its standard input ends.
const crowd = "CONSOLE_CROWD"

// BenchmarkGrid measures what the page of a pool of 1,024 held workers costs, while renewals change it each second: the
// server, in a process of its own, without a page and with one; and the browser. In percent of a processor. One
// iteration is enough (-benchtime 1x).
func BenchmarkGrid(b *testing.B) {
	if os.Getenv(crowd) != "" {
		serveCrowd(b)
		return
	}
	server := exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkGrid$", "-test.benchtime=1x")
	server.Env = append(os.Environ(), crowd+"=1")
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	url, out := "", bufio.NewScanner(stdout)
	for url == "" && out.Scan() {
		if _, after, ok := strings.Cut(out.Text(), crowd+" "); ok {
			url = after
		}
	}
	b.Cleanup(func() {
		if err := stdin.Close(); err != nil {
			b.Error(err)
		}
		_, err := io.Copy(io.Discard, stdout)
		if err := errors.Join(err, server.Wait()); err != nil {
			b.Error(err)
		}
	})
	page := open(b, url)
	var alone, watched, drawn float64
	for b.Loop() {
		page.do("leave the console", chromedp.Navigate("about:blank"))
		idle, _ := cpu(b, server.Process.Pid)
		alone += idle
		page.show("/#/pools/default")
		page.waits(`document.querySelectorAll('.grid .slot').length === 1024`)
		busy, drawing := cpu(b, server.Process.Pid)
		watched += busy
		drawn += drawing
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*alone/float64(b.N), "%-idle")
	b.ReportMetric(100*(watched-alone)/float64(b.N), "%-page")
	b.ReportMetric(100*drawn/float64(b.N), "%-browser")
	page.quiet()
}

// serveCrowd serves the pool, and writes where.
func serveCrowd(b *testing.B) {
	mem := memstore.New(nil)
	for i := range 1023 {
		holder(b, mem, fmt.Sprintf("node-%04d.example.org", i))
	}
	url, _ := serve(b, mem, "", "")
	ask(b, url+"/v1/ids/orders") // its pool is open
	fmt.Printf("\n%s %s\n", crowd, url)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		b.Error(err)
	}
}

// cpu returns which share of a processor this server, and all other processes that this one started, take for 20 seconds.
func cpu(b *testing.B, pid int) (server, others float64) {
	b.Helper()
	const span = 20 * time.Second
	first, rest := ticks(b, pid)
	started := time.Now()
	<-time.After(span)
	last, restLast := ticks(b, pid)
	all := 100 * time.Since(started).Seconds() // the unit is 1/100 s on all of Linux
	return float64(last-first) / all, float64(restLast-rest) / all
}

// ticks returns the processor times of a process and of the other descendants of this one, by proc_pid_stat(5).
func ticks(b *testing.B, pid int) (server, others int) {
	b.Helper()
	parents, times := map[int]int{}, map[int]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		name := strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text[name+1:]))
		one, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil {
			b.Fatal(err)
		}
		for _, field := range []struct {
			at int
			to map[int]int
		}{{1, parents}, {11, times}, {12, times}} {
			n, err := strconv.Atoi(fields[field.at])
			if err != nil {
				b.Fatal(err)
			}
			field.to[one] += n
		}
	}
	for one := range times {
		for parent := one; parent > 1; parent = parents[parent] {
			if parent == pid {
				server += times[one]
				break
			}
			if parents[parent] == os.Getpid() {
				others += times[one]
				break
			}
		}
	}
	return server, others
}
