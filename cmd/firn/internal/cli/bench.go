package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
	"github.com/firn-id/firn/lease"
)

// load is what a benchmark does.
type load struct {
	callers   int
	batch     int
	processes int
	duration  time.Duration
	verify    bool
}

// The bounds of a benchmark.
const (
	maxCallers   = 10_000
	maxBatch     = 1_000_000
	maxProcesses = 64
	maxDuration  = time.Hour
)

func (l *load) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&l.callers, "callers", 1, "concurrent callers in each process")
	flags.IntVar(&l.batch, "batch", 1, "ids a call takes")
	flags.DurationVar(&l.duration, "duration", 3*time.Second, "how long")
}

func (l *load) check() error {
	var errs []error
	bound := func(what string, value, most int) {
		if value < 1 || value > most {
			errs = append(errs, firn.NewRangeError(what, int64(value), 1, int64(most), ""))
		}
	}
	bound("--callers", l.callers, maxCallers)
	bound("--batch", l.batch, maxBatch)
	bound("--processes", l.processes, maxProcesses)
	if l.duration <= 0 || l.duration > maxDuration {
		errs = append(errs, &firn.RangeError{What: "--duration", Value: l.duration.String(), Min: "1ns", Max: maxDuration.String()})
	}
	return errors.Join(errs...)
}

// report is what a benchmark found.
type report struct {
	Target     string        `json:"target"`
	Callers    int           `json:"callers"`
	Processes  int           `json:"processes"`
	Batch      int           `json:"batch"`
	Seconds    float64       `json:"seconds"`
	IDs        int64         `json:"ids"`
	PerSecond  float64       `json:"ids_per_second"`
	Nanos      float64       `json:"ns_per_id"`
	Verified   bool          `json:"verified"`
	Duplicates int64         `json:"duplicates"`
	Examples   []firn.ID     `json:"examples,omitempty"`
	Median     time.Duration `json:"median_ns,omitempty"`
	P99        time.Duration `json:"p99_ns,omitempty"`
}

func newBench() *cobra.Command {
	var (
		flags  generatorFlags
		l      load
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "bench [TARGET]",
		Short: "Measure the generator here, or a running server, and check for duplicates",
		Long: `bench measures how fast ids are made: here, in one process or several that share
the store, or by the server at TARGET, as http://127.0.0.1:7070,
http://127.0.0.1:7070/NAMESPACE, or the same with grpc:// (and ?stream=true for
one stream a caller). With --verify every id of all callers and
processes goes into one exact set; a duplicate is an error.`,
		Example: `  firn bench --layout 41/0/0/22 --pool bench-wide
  firn bench --verify --callers 100 --duration 30s
  firn bench --verify --callers 100 --duration 30s --processes 4
  firn bench --verify --callers 100 --duration 30s http://127.0.0.1:7070`,
		Args: func(cmd *cobra.Command, args []string) error { return usage(cobra.MaximumNArgs(1)(cmd, args)) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.check(); err != nil {
				return usage(err)
			}
			cfg, err := flags.config(cmd.ErrOrStderr())
			if err != nil {
				return usage(err)
			}
			r := report{Callers: l.callers, Processes: l.processes, Batch: l.batch, Verified: l.verify}
			switch {
			case len(args) == 1 && l.processes > 1:
				return usage(errors.New("--processes are for a benchmark here, not for one of a server"))
			case len(args) == 1 && strings.HasPrefix(args[0], "grpc"):
				r.Target = args[0]
				err = benchGRPC(cmd.Context(), args[0], l, &r)
			case len(args) == 1:
				r.Target = args[0]
				err = benchHTTP(cmd.Context(), args[0], l, &r)
			case l.processes > 1:
				r.Target = "generators of several processes"
				err = benchProcesses(cmd.Context(), flags, l, &r)
			default:
				r.Target = "generator in this process"
				err = benchHere(cmd.Context(), &flags.storeFlags, cfg, l, &r)
			}
			if err != nil {
				return err
			}
			if r.IDs > 0 {
				r.PerSecond, r.Nanos = float64(r.IDs)/r.Seconds, r.Seconds*1e9/float64(r.IDs)
			}
			if err := r.print(cmd.OutOrStdout(), asJSON); err != nil {
				return err
			}
			switch {
			case r.Duplicates > 0:
				return fmt.Errorf("%d duplicates among %d ids, the first: %v", r.Duplicates, r.IDs, r.Examples)
			case r.IDs == 0:
				return errors.New("no ids were made in the time given")
			}
			return nil
		},
	}
	flags.add(cmd, 10*time.Second)
	l.add(cmd)
	cmd.Flags().IntVar(&l.processes, "processes", 1, "processes that share the store, each with its own worker")
	cmd.Flags().BoolVar(&l.verify, "verify", false, "put every id into one set and fail on a duplicate")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (r report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s ids in %.2f s from %s: %s a second, %.1f ns each\n",
		thousands(r.IDs), r.Seconds, r.Target, thousands(int64(r.PerSecond)), r.Nanos)
	fmt.Fprintf(&b, "%d callers in each of %d processes, %d ids a call\n", r.Callers, r.Processes, r.Batch)
	if r.P99 > 0 {
		fmt.Fprintf(&b, "a call took %v in the median, %v at the 99th percentile\n", r.Median, r.P99)
	}
	if r.Verified {
		fmt.Fprintf(&b, "%d duplicates\n", r.Duplicates)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// finish notes what the set found.
func (r *report) finish(set *idset.Set, ids int64, took time.Duration) {
	r.IDs, r.Seconds = ids, took.Seconds()
	if r.Verified {
		r.IDs, r.Duplicates, r.Examples = set.Added(), set.Duplicates(), set.Examples()
	}
}

// drive lets callers fill their buffers from fill until the time is over, and
// hands what each made to keep.
func drive(ctx context.Context, l load, fill func(context.Context, []firn.ID) (int, error), keep func([]firn.ID)) (ids int64, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.duration)
	defer cancel()
	var (
		stop  atomic.Bool
		total atomic.Int64
		mu    sync.Mutex
		errs  []error
		group sync.WaitGroup
	)
	context.AfterFunc(ctx, func() { stop.Store(true) })
	start := time.Now()
	for range l.callers {
		group.Go(func() {
			size, made := max(l.batch, keptAtOnce), int64(0)
			defer func() { total.Add(made) }() // counting together would cost more than an id
			buffer := make([]firn.ID, 0, size+l.batch)
			for !stop.Load() {
				n, err := fill(ctx, buffer[len(buffer):len(buffer)+l.batch])
				buffer = buffer[:len(buffer)+n]
				made += int64(n)
				if err != nil && ctx.Err() == nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
					cancel()
				}
				if len(buffer) >= size {
					keep(buffer)
					buffer = buffer[:0]
				}
			}
			keep(buffer)
		})
	}
	group.Wait()
	return total.Load(), time.Since(start), errors.Join(errs...)
}

// keptAtOnce is how many ids a caller gathers before it puts them into the set.
const keptAtOnce = 1024

func benchHere(ctx context.Context, flags *storeFlags, cfg lease.Config, l load, r *report) error {
	var set idset.Set
	return withLease(ctx, flags, cfg, func(leased *lease.Lease) error {
		g := leased.Generator()
		fill := g.Fill
		if l.batch == 1 {
			fill = func(ctx context.Context, ids []firn.ID) (int, error) {
				id, err := g.NextContext(ctx)
				if err != nil {
					return 0, err
				}
				ids[0] = id
				return 1, nil
			}
		}
		ids, took, err := drive(ctx, l, fill, func(ids []firn.ID) {
			if l.verify {
				set.Add(ids)
			}
		})
		r.finish(&set, ids, took)
		return err
	})
}
