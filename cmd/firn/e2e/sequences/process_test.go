package sequences

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/storetest/order"
)

const (
	slots       = 2                 // concurrent processes
	generations = 8                 // starts per slot
	each        = 4                 // callers per process
	most        = successes * 5 / 2 // calls that a process answers
)

// childStore names the store for a child of the test.
const childStore = "FIRN_LINEAR_STORE"

func TestMain(m *testing.M) {
	if url := os.Getenv(childStore); url != "" {
		if err := serve(url, os.Stdin, os.Stdout); err != nil {
			complain(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve reads lines with a caller and a number of ids, and answers each with the caller and the first
// id, or 0 for a failure. It runs until its input ends or it is killed.
func serve(url string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	s, err := storeurl.Open(ctx, url)
	if err != nil {
		return err
	}
	all, err := sequence.New(sequence.Config{Store: s})
	if err != nil {
		return err
	}
	txn, err := all.Namespace("txn")
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
			first, err := txn.Reserve(ctx, int(n))
			if err != nil {
				complain(err)
				first = 0
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(out, who, int64(first))
		}()
	}
	return errors.Join(all.Close(ctx), s.Close())
}

// complain writes an error as one line.
func complain(err error) { fmt.Fprintln(os.Stderr, strings.ReplaceAll(err.Error(), "\n", " ")) }

// A child is a separate process.
type child struct {
	cmd    *exec.Cmd
	stderr strings.Builder
	dead   chan struct{} // closed when its output has ended

	mu      sync.Mutex
	in      io.WriteCloser
	replies map[int]chan int64
}

func spawn(url string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(program), dead: make(chan struct{}), replies: map[int]chan int64{}}
	c.cmd.Env = append(os.Environ(), childStore+"="+url)
	c.cmd.Stderr = &c.stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.dead)
		for lines := bufio.NewReader(out); ; {
			var who int
			var first int64
			line, err := lines.ReadString('\n')
			if err != nil {
				return // a line cut off by a kill has no end, and no caller received it
			}
			if _, err := fmt.Sscan(line, &who, &first); err != nil {
				return
			}
			c.mu.Lock()
			reply := c.replies[who]
			c.mu.Unlock()
			reply <- first
		}
	}()
	return c, nil
}

// take requests ids from the child. It returns false if the child is gone.
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

// TestKilledProcesses kills processes while they issue ids, each time at another moment, and starts
// others. During this the server is killed and restarted twice.
func TestKilledProcesses(t *testing.T) {
	const lives = slots * generations
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
			ended := make(chan int, lives) // the number of calls that each process answered
			for slot := range slots {
				group.Go(func() {
					for done := 0; done < generations && h.now() < int64(time.Minute); {
						enough := 1 + rand.IntN(most)
						received, err := h.live(url, (slot*generations+done)*each, each, enough)
						if err != nil {
							t.Error(err)
							return
						}
						if received >= enough { // otherwise the store was down when the process started
							done++
							ended <- received
						}
					}
				})
			}
			go func() { group.Wait(); close(ended) }()
			count, least := 0, 0
			for received := range ended {
				count++
				least += received
				if backend.server != nil && (count == lives/3 || count == lives*2/3) {
					backend.server.Kill()
					backend.server.Restart()
				}
			}
			if count < lives {
				t.Errorf("only %d of %d processes could be started", count, lives)
			}
			h.check(least)
		})
	}
}

// live lets callers take ids from a new process until they have enough, and then kills it during
// their calls. It returns how many calls were answered: too few if the process ended early, because
// the store was down when it started.
func (h *history) live(url string, first, callers, enough int) (received int, err error) {
	c, err := spawn(url)
	if err != nil {
		return 0, err
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	for i := range callers {
		group.Go(func() {
			for n := int64(1); ; n = n%3 + 1 {
				begin := h.now()
				id, ok := c.take(first+i, n)
				if !ok {
					return
				}
				if id == 0 {
					time.Sleep(2 * time.Millisecond) // like a client while its server is away; the exact time does not matter
					continue                         // its standard error gives the reason
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
		return received, fmt.Errorf("a child that was killed: %w", err)
	}
	for line := range strings.Lines(c.stderr.String()) {
		if !strings.Contains(line, "unavailable") {
			h.t.Errorf("a child wrote: %s", line)
		}
	}
	return received, nil
}
