package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// closeTimeout bounds giving a worker back.
const closeTimeout = 5 * time.Second

func newNext() *cobra.Command {
	var (
		flags  generatorFlags
		as     kindFlags
		n      int64
		format string
	)
	cmd := &cobra.Command{
		Use:   "next",
		Short: "Generate ids on this machine",
		Long: `next generates ids on this machine. It leases a worker from the store, and returns
it at the end: no two processes with the same store and pool generate the same id
while the store keeps what it confirmed. Segments, sequences and numbers use a
named counter in the store instead. The default store is a folder of this user.`,
		Example: `  firn next
  firn next -n 5 --format base58
  firn next --layout sonyflake --pool flakes
  firn next --prefix ord
  firn next --kind uuid
  firn next --kind serial --prefix PAY --check luhn
  firn next --kind segment --name orders
  firn next --kind sequence --name txn -n 100
  firn next --kind number --name bills --template 'INV{yyyy}-{n:5}' --zone +08:00`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 {
				return usage(firn.NewRangeError("-n", n, 1, int64(firn.MaxID), ""))
			}
			k, set, err := as.parse(cmd.Flags())
			if err != nil {
				return usage(err)
			}
			p := newPrinter(cmd.OutOrStdout(), asJSON(cmd))
			if !isTerminal(cmd.OutOrStdout()) { // the ids would run into the progress
				p.progress = newProgress(cmd.ErrOrStderr(), "made", "ids", n, 0)
				defer p.progress.end()
			}
			if k.Source == settings.Local {
				if err := mistaken(cmd.Flags(), set); err != nil {
					return usage(err)
				}
				return p.ending(writeWide(cmd.Context(), set, n, p))
			}
			if k.Counted() {
				c, err := as.counted(cmd.Flags(), set, n, format, flags.log(cmd.ErrOrStderr(), true))
				if err != nil {
					return usage(err)
				}
				return flags.with(cmd.Context(), func(s store.Store) error { return p.ending(c.make(cmd.Context(), s, p)) })
			}
			cfg, err := flags.configOf(set, cmd.ErrOrStderr())
			if err != nil {
				return usage(err)
			}
			write, err := newAppender(set, format, cfg.Generator.Layout)
			if err != nil {
				return usage(err)
			}
			return withLease(cmd.Context(), &flags.storeFlags, cfg, func(l *lease.Lease) error {
				return p.ending(writeIDs(cmd.Context(), l, n, p, write))
			})
		},
	}
	flags.add(cmd, 2*time.Second)
	as.add(cmd, &flags.set)
	cmd.Flags().Int64VarP(&n, "n", "n", 1, "number of ids")
	cmd.Flags().StringVar(&format, "format", "decimal", encodingHelp+", readable; with :fixed also decimal:fixed and so on")
	cmd.Flags().Bool("json", false, `print {"ids":["…"]}; valid JSON even if some ids could not be made`)
	return cmd
}

// withLease leases a worker, runs do, and releases the worker.
func withLease(ctx context.Context, flags *storeFlags, cfg lease.Config, do func(*lease.Lease) error) error {
	flags.leases = true
	return flags.with(ctx, func(s store.Store) error {
		if err := refuseForgetful(flags.store, !cfg.Generator.From.IsZero()); err != nil {
			return err
		}
		cfg.Store = s
		l, err := lease.Open(ctx, cfg)
		if err != nil {
			return misuse(hint(err))
		}
		_, err = thenClose(ctx, l.Close, func() error { return do(l) }) // which logs a worker that it could not give back
		return err
	})
}

// refuseForgetful refuses a clock that begins at a time of its own over a store that forgets the fences of its ids. Package
// issuing does so for those of a configuration.
func refuseForgetful(url string, begins bool) error {
	if begins && url == "memory:" {
		return usage(errors.New("--clock-from needs a store that keeps fences: over memory: each process would repeat the ids from that time on. Use file:FOLDER or another store, or leave it out"))
	}
	return nil
}

// hint adds the flags that help to an error about a pool.
func hint(err error) error {
	pool, ok := errors.AsType[*lease.PoolError](err)
	switch {
	case !ok:
		return err
	case strings.HasPrefix(pool.Have, "the strict wait "):
		return fmt.Errorf("%w (flags --strict and --pool; firn workers relax ends a strict pool)", err)
	default:
		return fmt.Errorf("%w (flag --pool)", err)
	}
}

// chunk is how many ids are made and written at once.
const chunk = 4096

// writeSome makes n ids in chunks. Some makes up to so many and writes them to p; it returns how many it made, and an
// error if those are not all.
func writeSome(ctx context.Context, n int64, p *printer, some func(n int) (int, error)) error {
	var waited time.Duration // since the last id
	for n > 0 {
		made, err := some(int(min(n, chunk)))
		if flushErr := p.flush(); flushErr != nil {
			return flushErr
		}
		n -= int64(made)
		if err = awaitRenewal(ctx, err, &waited); err != nil {
			return err
		}
		if n > 0 && ctx.Err() != nil {
			return fmt.Errorf("stopped with %d ids to go: %w", n, context.Cause(ctx))
		}
	}
	return nil
}

// maxFenceWait bounds how long a command waits for its lease to be renewed.
const maxFenceWait = 30 * time.Second

// awaitRenewal waits a little if err says that the fence was reached: the store may be slow. It returns other errors,
// and that one too if it has lasted too long.
func awaitRenewal(ctx context.Context, err error, waited *time.Duration) error {
	if err == nil {
		*waited = 0
		return nil
	}
	if !errors.Is(err, firn.ErrFence) || *waited >= maxFenceWait {
		return err
	}
	const pause = 20 * time.Millisecond
	*waited += pause
	return firn.SystemTime().Sleep(ctx, pause)
}
