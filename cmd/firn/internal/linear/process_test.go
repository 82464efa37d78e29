package linear

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/internal/order"
	"github.com/firn-id/firn/sequence"
)

// childStore tells a child of the test which store to use.
const childStore = "FIRN_LINEAR_STORE"

func TestMain(m *testing.M) {
	if url := os.Getenv(childStore); url != "" {
		if err := serve(url, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve answers lines of a caller and a number of ids with lines of the caller
// and the first id, or 0 for a failure, until its input ends or it is killed.
func serve(url string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	s, err := storeurl.Open(ctx, url)
	if err != nil {
		return err
	}
	all, err := sequence.Open(sequence.Config{Store: s})
	if err != nil {
		return err
	}
	txn, err := all.Name("txn")
	if err != nil {
		return err
	}
	var mu sync.Mutex
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var who int
		var n int64
		if _, err := fmt.Sscan(lines.Text(), &who, &n); err != nil {
			return err
		}
		go func() {
			first, err := txn.Take(ctx, n)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				first = 0
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(out, who, int64(first))
		}()
	}
	return errors.Join(all.Close(ctx), s.Close())
}

// A child is a process of its own.
type child struct {
	cmd    *exec.Cmd
	stderr strings.Builder
	dead   chan struct{} // closed when its output has ended

	mu      sync.Mutex
	in      io.WriteCloser
	replies map[int]chan int64
}

func spawn(t *testing.T, url string) *child {
	t.Helper()
	program, err := os.Executable()
	check(t, err)
	c := &child{cmd: exec.Command(program), dead: make(chan struct{}), replies: map[int]chan int64{}}
	c.cmd.Env = append(os.Environ(), childStore+"="+url)
	c.cmd.Stderr = &c.stderr
	c.in, err = c.cmd.StdinPipe()
	check(t, err)
	out, err := c.cmd.StdoutPipe()
	check(t, err)
	check(t, c.cmd.Start())
	go func() {
		defer close(c.dead)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var who int
			var first int64
			if _, err := fmt.Sscan(lines.Text(), &who, &first); err != nil {
				return // it was killed in the middle of a line
			}
			c.mu.Lock()
			reply := c.replies[who]
			c.mu.Unlock()
			reply <- first
		}
	}()
	return c
}

// take asks the child for ids. It returns false if it is gone.
func (c *child) take(who int, n int64) (first int64, ok bool) {
	reply := make(chan int64, 1)
	c.mu.Lock()
	c.replies[who] = reply
	_, err := fmt.Fprintln(c.in, who, n)
	c.mu.Unlock()
	if err != nil {
		return 0, false
	}
	select {
	case first = <-reply:
		return first, true
	case <-c.dead:
		return 0, false
	}
}

// TestKilledProcesses kills processes in the middle of what they do, and has
// others go on.
func TestKilledProcesses(t *testing.T) {
	const generations, each, enough = 4, 4, 40
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			backend := m.make(t)
			url := ""
			if backend.server == nil {
				url = backend.url("")
			} else {
				url = backend.url(backend.server.Addr())
			}
			h := newHistory(t)
			var group sync.WaitGroup
			for process := range 2 {
				group.Go(func() {
					for generation := range generations {
						h.live(spawn(t, url), (process*generations+generation)*each, each, enough)
					}
				})
			}
			group.Wait()
			h.check(2 * generations * enough)
		})
	}
}

// live has callers take ids from a child until they have enough, and kills it
// under them.
func (h *history) live(c *child, first, callers, enough int) {
	var group sync.WaitGroup
	var mu sync.Mutex
	received := 0
	for i := range callers {
		group.Go(func() {
			for n := int64(1); ; n = n%3 + 1 {
				begin := h.now()
				id, ok := c.take(first+i, n)
				if !ok {
					return
				}
				if id == 0 {
					continue // it says why on its standard error
				}
				h.note(order.Call{Begin: begin, End: h.now(), First: id, N: n, Who: first + i}, nil)
				mu.Lock()
				if received++; received == enough {
					if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
						h.t.Errorf("kill a child: %v", err)
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	<-c.dead
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) { // it was killed
		h.t.Errorf("a child that was killed: %v", err)
	}
	if text := c.stderr.String(); text != "" {
		h.t.Logf("a child says: %.500s", text)
	}
	if received < enough {
		h.t.Errorf("a child ended after %d calls", received)
	}
}
