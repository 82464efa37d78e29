package leases

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// childSegment makes a child of the test issue a segment, with these settings.
const childSegment = "FIRN_FIELD_SEGMENT"

// A plan holds the settings of a child that issues a segment.
type plan struct {
	name           string
	offset, stride int64
	step, most     int64         // the steps
	target, pace   time.Duration // how long a range should last; the pause between calls
	callers        int
}

func (p plan) String() string {
	return fmt.Sprintln(p.name, p.offset, p.stride, p.step, p.most, int64(p.target), int64(p.pace), p.callers)
}

// issue takes ids of a segment until its input ends or it is killed. It writes a line for each call
// before the next one: the caller, the first id, the number of ids, and how many are left; or the
// line of complain.
func issue(url, settings string) error {
	var p plan
	if _, err := fmt.Sscan(settings, &p.name, &p.offset, &p.stride, &p.step, &p.most, &p.target, &p.pace, &p.callers); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // any input ends it
		cancel()
	}()
	s, err := storeurl.Open(ctx, url)
	if err != nil {
		return err
	}
	all, err := segment.New(segment.Config{
		Store: s, MinStep: p.step, MaxStep: p.most, Target: p.target, Offset: p.offset, Stride: p.stride,
	})
	if err != nil {
		return err
	}
	name, err := all.Namespace(p.name)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	for who := range p.callers {
		group.Go(func() {
			for ctx.Err() == nil {
				r, err := name.Take(ctx, 1+rand.IntN(5))
				if err != nil {
					complain(err)
					time.Sleep(2 * time.Millisecond) // like a client while its server is away; the exact time does not matter
					continue
				}
				fmt.Println(who, int64(r.First), r.Count, name.State().Left)
				time.Sleep(p.pace)
			}
		})
	}
	group.Wait()
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := all.Close(ctx); err != nil {
		complain(err)
	}
	return s.Close()
}

// The errors that a child may encounter.
const (
	unavailable = "store unavailable"
	ended       = "its input ended"
	other       = "another error"
)

// complain writes "! ", the kind of the error, a colon and the error.
func complain(err error) {
	which := other
	switch {
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded): // a server that is slow to return
		which = unavailable
	case errors.Is(err, context.Canceled):
		which = ended
	}
	fmt.Printf("! %s: %s\n", which, strings.ReplaceAll(err.Error(), "\n", " "))
}

// An issued is the result of one call.
type issued struct {
	who  int
	ids  segment.Range
	left int64
}

// An issuer is a process that issues a segment.
type issuer struct {
	plan   plan
	cmd    *exec.Cmd
	in     interface{ Close() error }
	stderr strings.Builder
	done   chan struct{} // closed when its output has ended

	mu       sync.Mutex
	calls    []issued
	failures []string
	more     chan struct{} // closed when there is more; a new one then
}

func startIssuer(url string, p plan) (*issuer, error) {
	i := &issuer{plan: p, cmd: exec.Command(os.Args[0]), done: make(chan struct{}), more: make(chan struct{})}
	i.cmd.Env = append(os.Environ(), childStore+"="+url, childSegment+"="+p.String())
	i.cmd.Stderr = &i.stderr
	in, err := i.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	i.in = in
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := i.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(i.done)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return // a line cut off by a kill has no end, and no caller received it
			}
			i.note(line)
		}
	}()
	return i, nil
}

func (i *issuer) note(line string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if text, failed := strings.CutPrefix(line, "! "); failed {
		i.failures = append(i.failures, strings.TrimSuffix(text, "\n"))
	} else {
		c := issued{ids: segment.Range{Stride: i.plan.stride}}
		if _, err := fmt.Sscan(line, &c.who, &c.ids.First, &c.ids.Count, &c.left); err != nil {
			i.failures = append(i.failures, "unreadable: "+strconv.Quote(line))
		} else {
			i.calls = append(i.calls, c)
		}
	}
	close(i.more)
	i.more = make(chan struct{})
}

// until waits until the process has printed enough. It returns false if the process has ended before.
func (i *issuer) until(enough func(calls []issued, failures []string) bool) bool {
	for {
		i.mu.Lock()
		ok, more := enough(i.calls, i.failures), i.more
		i.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-more:
		case <-i.done:
			i.mu.Lock()
			defer i.mu.Unlock()
			return enough(i.calls, i.failures)
		}
	}
}

// made waits until n more calls have received ids.
func (i *issuer) made(t *testing.T, n int) {
	t.Helper()
	i.mu.Lock()
	before := len(i.calls)
	i.mu.Unlock()
	if !i.until(func(calls []issued, _ []string) bool { return len(calls) >= before+n }) {
		t.Fatalf("a process ended early: %s %.500q", i.stderr.String(), i.failures)
	}
}

// end kills the process, or lets it close, and returns its result.
func (i *issuer) end(kill bool) error {
	var err error
	if kill {
		if err = i.cmd.Process.Signal(syscall.SIGKILL); errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
	} else {
		err = i.in.Close()
	}
	<-i.done
	var exit *exec.ExitError
	if wait := i.cmd.Wait(); wait != nil && (!kill || !errors.As(wait, &exit)) {
		err = errors.Join(err, fmt.Errorf("%w: %s", wait, i.stderr.String()))
	}
	return err
}
