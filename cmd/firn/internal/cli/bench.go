package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
)

// load configures a benchmark.
type load struct {
	callers   int
	batch     int
	pipeline  int
	processes int
	duration  time.Duration
	verify    bool
	buffered  bool
	tokenFile string
	progress  io.Writer   // shows how far it is, if it is a terminal; may be nil
	rate      access.Rate // calls of all callers together; zero: each caller calls again at once
}

// size is how many ids a call takes.
func (l load) size() int { return l.batch * max(l.pipeline, 1) }

// The bounds of a benchmark.
const (
	maxCallers   = 10_000
	maxBatch     = 1_000_000
	maxPipeline  = 10_000
	maxProcesses = 64
	maxDuration  = time.Hour
)

// errNoIDs reports a benchmark that received no ids.
var errNoIDs = errors.New("no ids were issued within --duration")

func (l *load) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&l.callers, "callers", 1, "concurrent callers in each process")
	flags.IntVar(&l.batch, "batch", 1, "ids per call")
	flags.DurationVar(&l.duration, "duration", 3*time.Second, "duration of the measurement")
}

func (l *load) check() error {
	var duration error
	if l.duration <= 0 || l.duration > maxDuration {
		duration = &firn.RangeError{What: "--duration", Value: l.duration.String(), Min: "1ns", Max: maxDuration.String()}
	}
	return errors.Join(
		checkMost("--callers", int64(l.callers), maxCallers),
		checkMost("--batch", int64(l.batch), maxBatch),
		checkMost("--processes", int64(l.processes), maxProcesses),
		checkMost("--pipeline", int64(cmp.Or(l.pipeline, 1)), maxPipeline),
		duration)
}

func newBench() *cobra.Command {
	var (
		flags generatorFlags
		l     load
		pace  string
	)
	cmd := &cobra.Command{
		Use:   "bench [TARGET]",
		Short: "Measure a local generator or a running server, and check for duplicates",
		Long: `bench measures how fast ids are generated: in this process, in several processes that
share the store, or by the server at TARGET:

  http://HOST:PORT/NAMESPACE    firn serve, one request per call; with --buffered,
  https://…                     calls of the Go client, from its buffer
  redis://HOST:PORT/KEY         INCR, of firn serve or of Redis; --pipeline
  rediss://…
  grpc://HOST:PORT/NAMESPACE    one request per call; ?stream=true: one stream per caller
  grpcs://…

Each caller sends the next call as soon as the last one is answered. With --rate, calls
to a server start on a fixed schedule, even if earlier ones are still open, and are timed
from when they were due: that is the latency independent clients see. Use enough
--callers for all calls in flight.

The default namespace is "bench". A token is read from --token-file, or from the
environment variable FIRN_TOKEN. With --verify every id of all callers and
processes goes into one exact set; a duplicate is an error.`,
		Example: `  firn bench --layout 41/0/0/22 --pool bench-wide
  firn bench --verify --callers 100 --duration 30s
  firn bench --verify --callers 100 --duration 30s --processes 4
  firn bench --verify --callers 100 --batch 100 http://127.0.0.1:7070
  firn bench --buffered http://127.0.0.1:7070/orders
  firn bench --callers 50 --rate 20000/s grpc://127.0.0.1:7072/orders
  firn bench --callers 50 --pipeline 16 redis://127.0.0.1:7071/orders`,
		Args: func(cmd *cobra.Command, args []string) error { return atMostOne(cmd, args, "TARGET") },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.check(); err != nil {
				return usage(err)
			}
			if pace != "" {
				var err error
				if l.rate, err = parseCallRate(pace); err != nil {
					return usage(err)
				}
			}
			cfg, err := flags.config(cmd.ErrOrStderr())
			if err != nil {
				return usage(err)
			}
			l.progress = cmd.ErrOrStderr()
			r := report{Callers: l.callers, Processes: l.processes, Batch: l.batch, Pipeline: l.pipeline, Rate: pace, Buffered: l.buffered, Verified: l.verify}
			switch {
			case len(args) == 1 && l.processes > 1:
				return usage(errors.New("--processes are for a benchmark here, not for one of a server"))
			case len(args) == 1:
				r.Target = storeurl.Redact(args[0])
				err = benchTarget(cmd.Context(), args[0], l, &r)
			case l.pipeline != 0 || l.buffered || l.tokenFile != "" || pace != "":
				return usage(errors.New("--rate, --pipeline, --buffered and --token-file need a server: give its URL"))
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
			if err := answer(cmd, r, r.print); err != nil {
				return err
			}
			switch {
			case r.Duplicates > 0:
				return fmt.Errorf("%d duplicates among %d ids, the first: %v", r.Duplicates, r.IDs, r.Examples)
			case r.IDs == 0:
				return errNoIDs
			}
			return nil
		},
	}
	flags.add(cmd, 10*time.Second)
	l.add(cmd)
	cmd.Flags().IntVar(&l.processes, "processes", 1, "processes that share the store, each with its own worker")
	cmd.Flags().IntVar(&l.pipeline, "pipeline", 0, "commands sent at once, to redis:// (default 1)")
	cmd.Flags().StringVar(&pace, "rate", "", "total rate of calls, such as 5000/s, timed from when each was due (default: each caller calls again at once)")
	cmd.Flags().BoolVar(&l.buffered, "buffered", false, "take from the Go client's buffer, of http://")
	cmd.Flags().StringVar(&l.tokenFile, "token-file", "", "file with the token for the server")
	cmd.Flags().BoolVar(&l.verify, "verify", false, "put every id into one set and fail on a duplicate")
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

func benchHere(ctx context.Context, flags *storeFlags, cfg lease.Config, l load, r *report) error {
	var set idset.Set
	return withLease(ctx, flags, cfg, func(leased *lease.Lease) error {
		fill := leased.Fill
		if l.batch == 1 {
			fill = func(ctx context.Context, ids []firn.ID) (int, error) {
				id, err := leased.Next(ctx)
				if err != nil {
					return 0, err
				}
				ids[0] = id
				return 1, nil
			}
		}
		found, err := drive(ctx, l, seldom, fill, l.into(&set))
		r.finish(&set, found)
		return err
	})
}
