package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

func newWorkers() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "Show who holds which worker, take one back, or end a strict pool",
		Long: `workers shows the slots of a pool: each worker that was ever held, by whom, since
when, and until when unless renewed: when the tick of its fence has ended. It is free
then if its holder gave it back, and twice the tolerance of clocks (20s) later if not.
Nothing is written.`,
		Example: `  firn workers --store redis://127.0.0.1:6379/0
  firn workers list --pool payments --json
  firn workers release 17
  firn workers relax --pool payments`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("%q: list, release and relax are what workers can do", args[0]))
			}
			return nil
		},
	}
	list := newWorkersList()
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.AddCommand(list, newWorkersRelease(), newWorkersRelax())
	return cmd
}

func newWorkersList() *cobra.Command {
	var (
		flags  storeFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the slots of a pool",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.onPool(cmd.Context(), func(ctx context.Context, s store.Store) error {
				pool, err := issuing.ReadPool(ctx, s, flags.pool)
				switch {
				case errors.Is(err, store.ErrNotFound):
					return nobodyJoined(flags)
				case err != nil:
					return misuse(err)
				case asJSON:
					return json.NewEncoder(cmd.OutOrStdout()).Encode(pool)
				}
				return showSlots(cmd.OutOrStdout(), pool)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func nobodyJoined(flags storeFlags) error {
	return fmt.Errorf("nobody has joined pool %q in store %s yet", flags.pool, storeurl.Redact(flags.store))
}

// storePatience bounds the commands that look at a store once.
const storePatience = 30 * time.Second

func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, storePatience)
}

// seconds is RFC 3339 in UTC to the second.
const seconds = "2006-01-02T15:04:05Z"

// freeAt writes when a slot is free: the next whole second, since it is not before.
func freeAt(t time.Time) string {
	return t.UTC().Add(time.Second - 1).Format(seconds)
}

func showSlots(out io.Writer, p issuing.Pool) error {
	counts := map[string]int64{}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WORKER\tSTATE\tUNTIL\tHOLDER\tSINCE")
	several := false
	for _, s := range p.Slots {
		several = several || s.Datacenter != 0
	}
	for _, s := range p.Slots {
		counts[s.State]++
		worker := strconv.FormatInt(s.Worker, 10)
		if several {
			worker = fmt.Sprintf("%d/%d", s.Datacenter, s.Worker)
		}
		until := "no id yet"
		if s.Fence >= 0 {
			until = fmt.Sprintf("%s (%s)", freeAt(s.Until), fromNow(s.Until.Sub(p.Clock)))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", worker, s.State, until, holder(s), s.Since.UTC().Format(seconds))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	used := int64(len(p.Slots))
	strict := ""
	if p.Strict != "" {
		strict = fmt.Sprintf(", strict (a claim waits %s)", p.Strict)
	}
	_, err := fmt.Fprintf(out, "\npool %s, layout %s%s: %d live, %d idle, %d given back, %d ahead of the clock, %s never used\n",
		p.Pool, p.Layout, strict, counts[issuing.SlotLive], counts[issuing.SlotIdle], counts[issuing.SlotGiven], counts[issuing.SlotAhead], thousands(p.Workers-used))
	return err
}

func holder(s issuing.Slot) string {
	if s.Host == "" {
		return s.Owner
	}
	return fmt.Sprintf("%s pid %d", s.Host, s.PID)
}

// fromNow says how far off a moment is, roughly.
func fromNow(d time.Duration) string {
	size := d.Abs().Round(time.Second).String()
	if days := int(d.Abs().Hours() / 24); days > 1 {
		size = fmt.Sprintf("%d days", days)
	}
	if d < 0 {
		return size + " ago"
	}
	return "in " + size
}

func newWorkersRelease() *cobra.Command {
	var (
		flags      storeFlags
		datacenter int64
		gone       bool
	)
	cmd := &cobra.Command{
		Use:   "release WORKER",
		Short: "Take a worker away from its holder",
		Long: `release takes a worker away from its holder, which goes on with another at its next
look. The fence stays, so nothing is issued twice, and the worker is granted again
once that has passed by any clock, twice the tolerance (20s) later: release is safe
whether the holder lives or not.

With --holder-is-gone you answer for it that the holder has ended, that its clock was
right, and that its ids were not ahead of it: by a virtual clock, or by an --ahead that
is longer than the tolerance. Then the fence is moved back to now, or rather that
tolerance (10s) ahead, and the worker is granted again after that. If you are wrong, ids
are made twice. The fence of a worker that its holder gave back stays.`,
		Example: `  firn workers release 17 --store redis://127.0.0.1:6379/0`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("name one worker, as in firn workers release 17"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			worker, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usage(fmt.Errorf("worker %q is not a number", args[0]))
			}
			return flags.onPool(cmd.Context(), func(ctx context.Context, s store.Store) error {
				var last time.Time
				if gone {
					var err error
					if last, err = lastPossible(ctx, s, flags.pool); err != nil {
						return misuse(err)
					}
				}
				slot, err := lease.Reclaim(ctx, s, flags.pool, datacenter, worker, last)
				if err != nil {
					return misuse(err)
				}
				later := ""
				if slot.Taken && !slot.Gone {
					later = ", or 20s later, as its holder may live"
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "worker %d of pool %s was taken back; it is free at %s%s\n",
					slot.Worker, flags.pool, freeAt(slot.Until), later)
				return err
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().Int64Var(&datacenter, "datacenter", 0, "datacenter number of the worker")
	cmd.Flags().BoolVar(&gone, "holder-is-gone", false, "move the fence back: its holder has ended for certain, and its clock was right")
	return cmd
}

func newWorkersRelax() *cobra.Command {
	var flags storeFlags
	cmd := &cobra.Command{
		Use:   "relax",
		Short: "End the strict wait of a pool",
		Long: `relax makes a pool that is strict one that is not: claims are used at once again, and
processes without --strict may join. Nothing is issued twice by it, but the pool is
then as safe as any other: what the store forgets, claims no longer outwait.

Running processes keep their workers until they are restarted. A process that still has
--strict cannot join, or take another worker, while any worker is held. Once none is, it
makes the pool strict again; so does a running one that finds data missing in the store.
End such processes first, or restart them without --strict.`,
		Example: `  firn workers relax --pool payments --store redis://127.0.0.1:6379/0`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.onPool(cmd.Context(), func(ctx context.Context, s store.Store) error {
				had, err := lease.Relax(ctx, s, flags.pool)
				switch {
				case errors.Is(err, store.ErrNotFound):
					return nobodyJoined(flags)
				case err != nil:
					return misuse(err)
				case had == 0:
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "pool %s is not strict\n", flags.pool)
				default:
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "pool %s is no longer strict; a claim waited %v\n", flags.pool, had)
				}
				return err
			})
		},
	}
	flags.add(cmd)
	return cmd
}

// lastPossible is a time that no id of a holder that has ended is beyond, if its
// clock was within the pool's tolerance and it issued no further ahead of it than that.
func lastPossible(ctx context.Context, s store.Store, pool string) (time.Time, error) {
	p, err := lease.Inspect(ctx, s, pool)
	now := time.Now()
	if clock, ok := s.(store.Clock); ok && err == nil {
		now, err = clock.Now(ctx)
	}
	return now.Add(time.Duration(p.Tolerance)), err
}
