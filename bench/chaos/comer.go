package main

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/bench/internal/ledger"
)

// A comer runs firn next again and again: processes with short lives.
type comer struct {
	world     *world
	namespace string
	args      []string
	most      int // ids of one process
	out       *ledger.Writer
	rng       *rand.Rand
}

func (w *world) newComer(namespace string, most int, rng *rand.Rand, args ...string) (*comer, error) {
	out, err := w.ledger(namespace, "next")
	if err != nil {
		return nil, err
	}
	return &comer{w, namespace, append([]string{"next", "--store", w.store.url}, args...), most, out, rng}, nil
}

// run starts one process after the other until the context ends.
func (c *comer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		n := 1 + c.rng.IntN(c.most)
		killed := c.rng.IntN(4) == 0
		life := between(c.rng, time.Millisecond, 2*time.Second)
		if !killed {
			life = answerTime
		}
		if err := c.one(ctx, n, life); err != nil {
			return err
		}
		rest(ctx, time.Duration(c.rng.Int64N(int64(300*time.Millisecond))))
	}
	return nil
}

// batch is how many ids of a process form one batch. A line is received when it is read, so the time of
// the answer of a batch is that of its last line.
const batch = 4096

// one runs a process, and kills it at the end of its life.
func (c *comer) one(ctx context.Context, n int, life time.Duration) error {
	c.world.comers.RLock()
	defer c.world.comers.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.world.firn, append(c.args, "-n", strconv.Itoa(n))...)
	var said strings.Builder
	cmd.Stderr = &said
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	asked := c.world.now()
	if err := cmd.Start(); ctx.Err() != nil {
		return nil // the run is over
	} else if err != nil {
		return err
	}
	c.world.net.Process(cmd.Process.Pid, "next")
	in := bufio.NewReaderSize(pipe, 64<<10)
	err = c.read(in, asked)
	if failed := cmd.Wait(); failed != nil {
		c.world.refusals.Add(1) // it was killed, or the store was unreachable
		if said.Len() > 0 {
			c.world.log.printf("firn next: %v: %s", failed, strings.TrimSpace(said.String()))
		}
	}
	return err
}

// read records the ids that a process prints.
func (c *comer) read(in *bufio.Reader, asked time.Duration) error {
	var runs ledger.Runs
	for more := true; more; {
		runs = runs[:0]
		var err error
		for read := 0; read < batch && more; read++ {
			runs, err = readID(in, runs)
			more = err == nil
		}
		if failed := c.world.receive(c.namespace, c.out, asked, runs); failed != nil {
			return failed
		}
		if errors.Is(err, errNoID) {
			return err
		}
	}
	return nil
}
