package leases

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
)

const (
	childStore = "FIRN_FIELD_STORE"
	childPool  = "FIRN_FIELD_POOL"
)

// TestMain lets tests run this test binary as a separate process.
func TestMain(m *testing.M) {
	if url := os.Getenv(childStore); url != "" {
		run := func() error { return child(url, os.Getenv(childPool)) }
		if settings := os.Getenv(childSegment); settings != "" {
			run = func() error { return issue(url, settings) }
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// The backends wait for clocks and fences, not for processors, so tests run in parallel.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// child issues ids and prints them until its input ends.
func child(url, pool string) error {
	ctx := context.Background()
	s, err := storeurl.Open(ctx, url)
	if err != nil {
		return err
	}
	w := &world{pool: pool}
	l, err := lease.Open(ctx, w.config(s, &skewed{TimeSource: firn.SystemTime()}))
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // any input ends it
		close(ended)
	}()
	tick := time.NewTicker(pace)
	for {
		select {
		case <-ended:
			return l.Close(ctx)
		case <-tick.C:
		}
		if id, err := l.Next(ctx); err == nil {
			fmt.Println(int64(id)) // written before the next is made
		}
	}
}

// stopped pauses a process for longer than its window, lets others take both workers, and resumes it.
func stopped(w *world) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childStore+"="+w.b.url, childPool+"="+w.pool)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(w.t, err)
	out, err := cmd.StdoutPipe()
	check(w.t, err)
	check(w.t, cmd.Start())
	p := &process{stop: make(chan struct{}), done: make(chan struct{}), errs: map[string]int{}}
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			id, err := firn.ParseID(lines.Text())
			if err != nil {
				w.t.Error(err)
				continue
			}
			p.mu.Lock()
			p.ids = append(p.ids, id)
			p.mu.Unlock()
		}
	}()
	w.until("the other process", func() bool { return p.made() > 300 })
	check(w.t, cmd.Process.Signal(syscall.SIGSTOP))
	before := p.made()
	q := w.start()
	w.makes(q, 300)
	var r *process
	w.until("its worker to be granted to another process", func() bool {
		r, err = w.try(0)
		return err == nil
	})
	w.makes(r, 300)
	w.close(r) // so that a worker is free for it again
	check(w.t, cmd.Process.Signal(syscall.SIGCONT))
	w.until("the process to continue", func() bool { return p.made() > before+300 })
	check(w.t, in.Close())
	<-p.done
	check(w.t, cmd.Wait())
	seen := map[firn.ID]bool{}
	for _, id := range p.ids {
		if seen[id] {
			w.t.Errorf("it issued %d twice", id)
		}
		seen[id] = true
	}
	for _, other := range []*process{q, r} {
		other.mu.Lock()
		for _, id := range other.ids {
			if seen[id] {
				w.t.Errorf("another process issued %d too", id)
			}
		}
		other.mu.Unlock()
	}
}
