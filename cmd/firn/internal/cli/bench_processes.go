package cli

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// newEmit is the hidden command that the processes of a benchmark run. It writes each id to standard output, as eight
// big-endian bytes.
func newEmit() *cobra.Command {
	var (
		flags generatorFlags
		l     = load{processes: 1}
	)
	cmd := &cobra.Command{
		Use:    "emit",
		Short:  "Write ids as eight bytes each, for bench --processes",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(); err != nil {
				return usage(err)
			}
			cfg, err := flags.config(cmd.ErrOrStderr())
			if err != nil {
				return usage(err)
			}
			var (
				mu       sync.Mutex
				out      = bufio.NewWriterSize(cmd.OutOrStdout(), 1<<20)
				writeErr error
			)
			err = withLease(cmd.Context(), &flags.storeFlags, cfg, func(leased *lease.Lease) error {
				_, err := drive(cmd.Context(), l, seldom, leased.Fill, func(ids []firn.ID) {
					bytes := make([]byte, 0, 8*len(ids))
					for _, id := range ids {
						bytes = binary.BigEndian.AppendUint64(bytes, uint64(id))
					}
					mu.Lock()
					defer mu.Unlock()
					if _, err := out.Write(bytes); err != nil {
						writeErr = err
					}
				})
				return err
			})
			return errors.Join(err, writeErr, out.Flush())
		},
	}
	flags.add(cmd, 10*time.Second)
	l.add(cmd)
	return cmd
}

// benchProcesses runs several emitters on one store.
func benchProcesses(ctx context.Context, flags generatorFlags, l load, r *report) error {
	// This creates the default store, which the processes only open.
	if err := flags.with(ctx, func(store.Store) error { return nil }); err != nil {
		return err
	}
	if flags.store == "memory:" {
		return usage(errors.New("--processes needs a shared store; memory: belongs to one process"))
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to run it again: %w", err)
	}
	args := []string{
		"emit", "--store", flags.store,
		"--callers", fmt.Sprint(l.callers), "--batch", fmt.Sprint(l.batch), "--duration", l.duration.String(),
	}
	if flags.set.Worker != nil {
		return usage(errors.New("--worker gives all processes the same worker: leave it out"))
	}
	for _, s := range settings.Group(settings.Pooled{}) {
		if f := flags.flags.Lookup(s.Flag); f.Changed {
			args = append(args, "--"+s.Flag, f.Value.String())
		}
	}
	var (
		set   idset.Set
		group sync.WaitGroup
		errs  = make([]error, l.processes)
		total atomic.Int64
	)
	start := time.Now()
	p := l.show()
	defer p.end()
	for i := range l.processes {
		group.Go(func() {
			errs[i] = collect(ctx, self, args, func(ids []firn.ID) error {
				l.into(&set)(ids)
				p.add(int64(len(ids)))
				total.Add(int64(len(ids)))
				return nil
			})
		})
	}
	group.Wait()
	r.finish(&set, found{ids: total.Load(), took: time.Since(start)})
	return errors.Join(errs...)
}

// collect runs one emitter and gives its ids to record.
func collect(ctx context.Context, program string, args []string, record func([]firn.ID) error) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = eachBinary(pipe, record, func(string) {}) // an emitter that was killed may end within an id
	return errors.Join(err, cmd.Wait())
}
