package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

func newWorkers() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List workers, release one, or end the strict mode of a pool",
		Long: `workers lists the slots of a pool: each worker that was ever held, its holder, since
when, and the time of its fence. After that time, unless it was renewed, the worker is
free: at once if its holder returned it, else after twice the clock tolerance (20s).
It writes nothing.

  held      the fence lies ahead. The store does not know whether the holder still runs:
            one that does writes again when half its window is left (2.5 of 5 minutes)
  ahead     held, and the holder's clock is more than 10s ahead
  returned  the holder closed it
  released  taken from its holder by firn workers release
  expired   the fence has passed and the holder did not close it, as after a crash`,
		Example: `  firn workers --store redis://127.0.0.1:6379/0
  firn workers list --pool payments --json
  firn workers release 17
  firn workers relax --pool payments`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("workers %q: list, release and relax are allowed%s", args[0], guess(cmd, args[0])))
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
	var flags storeFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the slots of a pool",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.onPool(cmd.Context(), func(ctx context.Context, s store.Store) error {
				pool, err := issuing.ReadPool(ctx, s, flags.pool)
				if err != nil {
					return missing(ctx, s, flags, err)
				}
				return answer(cmd, pool, func(out io.Writer) error { return showSlots(out, paletteOf(cmd), pool) })
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

// missing returns what to do instead of err if the pool does not exist. A worker that was never
// used is not found either.
func missing(ctx context.Context, s store.Store, flags storeFlags, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		if _, poolErr := lease.Inspect(ctx, s, flags.pool); errors.Is(poolErr, store.ErrNotFound) {
			return fmt.Errorf("pool %q does not exist in store %s (no process has joined it yet): name another with --pool or --store; "+
				"firn next and firn serve create a pool when they join it", flags.pool, storeurl.Redact(flags.store))
		}
	}
	return misuse(err)
}

// storeTimeout bounds commands that read or write the store a few times.
const storeTimeout = 30 * time.Second

// tooLate stands for a time that has no text, see [decode.Shown].
const tooLate = "after the year 9999"

// freeAt writes when a slot is free: the next whole second, since it is not before.
func freeAt(t time.Time) string {
	if shown, note := decode.Shown(t); note != "" || shown.IsZero() {
		return tooLate
	}
	return t.UTC().Add(time.Second - 1).Format(time.RFC3339)
}

// stateColours are the colours of the states of slots.
var stateColours = map[string]colour{
	issuing.SlotHeld: green, issuing.SlotAhead: yellow, issuing.SlotReturned: faint, issuing.SlotReleased: faint, issuing.SlotExpired: yellow,
}

func showSlots(out io.Writer, colours palette, p issuing.Pool) error {
	counts := map[string]int64{}
	rows := [][]string{{"WORKER", "STATE", "UNTIL", "HOLDER", "SINCE", "WROTE"}}
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
		switch {
		case s.Fence < 0:
		case s.Until.IsZero():
			until = tooLate
		default:
			until = fmt.Sprintf("%s (%s)", freeAt(s.Until), fromNow(s.Until.Sub(p.Clock)))
		}
		rows = append(rows, []string{worker, colours.paint(stateColours[s.State], s.State), until, holder(s), s.Since.UTC().Format(time.RFC3339), fromNow(s.Seen.Sub(p.Clock))})
	}
	if err := writeTable(out, rows); err != nil {
		return err
	}
	used := int64(len(p.Slots))
	strict := ""
	if p.Strict != "" {
		strict = fmt.Sprintf(", strict (a claim waits %s)", p.Strict)
	}
	_, err := fmt.Fprintf(out, "\npool %s, layout %s%s: %d held, %d ahead of the clock, %d returned, %d released, %d expired, %s unused\n",
		p.Pool, p.Layout, strict, counts[issuing.SlotHeld], counts[issuing.SlotAhead], counts[issuing.SlotReturned],
		counts[issuing.SlotReleased], counts[issuing.SlotExpired], thousands(p.Workers-used))
	return err
}

func holder(s issuing.Slot) string {
	if s.Host == "" {
		return printable(s.Owner)
	}
	return fmt.Sprintf("%s pid %d", printable(s.Host), s.PID)
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
		Short: "Release a worker from its holder",
		Long: `release takes a worker from its holder, which continues with another at its next check
of the store. The fence stays, so no id is issued twice; the worker is granted again
once the fence has passed by twice the tolerance (20s). So release is safe even if the
holder is running.

With --holder-is-gone you guarantee that the holder has ended, that its clock was right
and that its ids were not ahead of it (by a virtual clock, --worker-ahead, or an --ahead
longer than the tolerance). Then the fence moves back to 10s (the tolerance) from now,
and the worker is granted again after that. If the guarantee is wrong, ids are issued
twice. The fence of a returned worker stays.`,
		Example: `  firn workers release 17 --store redis://127.0.0.1:6379/0
  firn workers release 1/98 --pool sites          # of datacenter 1`,
		ValidArgsFunction: completeWorkers,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("name one worker, as in firn workers release 17"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			number := args[0]
			if dc, n, ok := strings.Cut(number, "/"); ok { // as firn workers prints it
				number = n
				var err error
				if datacenter, err = strconv.ParseInt(dc, 10, 64); err != nil || cmd.Flags().Changed("datacenter") {
					return usage(fmt.Errorf("worker %q: write its number with --datacenter, or both as in 1/98", args[0]))
				}
			}
			worker, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return usage(fmt.Errorf("worker %q is not a number, or a datacenter and a number as in 1/98", args[0]))
			}
			return flags.onPool(cmd.Context(), func(ctx context.Context, s store.Store) error {
				pool, err := lease.Inspect(ctx, s, flags.pool)
				var last time.Time
				if err == nil && gone {
					last, err = lastPossible(ctx, s, pool)
				}
				if err != nil {
					return missing(ctx, s, flags, err)
				}
				slot, err := lease.Reclaim(ctx, s, flags.pool, datacenter, worker, last)
				if err != nil {
					return missing(ctx, s, flags, err)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "worker %d of pool %s was taken back; it can be leased from %s\n",
					slot.Worker, flags.pool, freeAt(pool.FreeAt(s, slot)))
				return err
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().Int64Var(&datacenter, "datacenter", 0, "datacenter number of the worker")
	cmd.Flags().BoolVar(&gone, "holder-is-gone", false, "move the fence back; only if the holder has certainly ended and its clock was right")
	return cmd
}

func newWorkersRelax() *cobra.Command {
	var flags storeFlags
	cmd := &cobra.Command{
		Use:   "relax",
		Short: "End the strict mode of a pool",
		Long: `relax ends the strict mode of a pool: claimed workers are used at once, and processes
without --strict may join. It causes no duplicates itself, but the pool no longer
tolerates a store that loses data.

Running processes keep their workers until they are restarted. A process that still has
--strict cannot join, or take another worker, while any worker is held. Once no worker is
held, it makes the pool strict again; so does a running process that finds data missing
in the store. End such processes first, or restart them without --strict.`,
		Example: `  firn workers relax --pool payments --store redis://127.0.0.1:6379/0`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.onPool(cmd.Context(), func(ctx context.Context, s store.Store) error {
				had, err := lease.Relax(ctx, s, flags.pool)
				if err != nil {
					return missing(ctx, s, flags, err)
				}
				says := "is not strict"
				if had != 0 {
					says = fmt.Sprintf("is no longer strict; a claim waited %v", had)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "pool %s %s\n", flags.pool, says)
				return err
			})
		},
	}
	flags.add(cmd)
	return cmd
}

// lastPossible is a time that no id of a holder that has ended is beyond, if its
// clock was within the pool's tolerance and it issued no further ahead of it than that.
func lastPossible(ctx context.Context, s store.Store, pool lease.Pool) (_ time.Time, err error) {
	now := time.Now()
	if clock := s.Traits().Clock; clock != nil {
		now, err = clock.Now(ctx)
	}
	return now.Add(time.Duration(pool.Tolerance)), err
}
