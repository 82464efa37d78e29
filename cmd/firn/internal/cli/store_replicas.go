package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
)

func newStore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Create a store, or show and set its replicas",
	}
	cmd.AddCommand(newStoreMake(), newStoreReplicas())
	onlyItsCommands(cmd)
	return cmd
}

func newStoreReplicas() *cobra.Command {
	var flags storeFlags
	var expected bool
	cmd := &cobra.Command{
		Use:   "replicas [N]",
		Short: "Show or set how many Redis replicas must confirm each write",
		Long: `replicas shows how many replicas of a Redis must confirm each write: the most that were
ever attached at the same time, as recorded in the store. It rises automatically. It
also writes something that changes nothing, and shows how many attached replicas have
that within a second, and so have caught up: promote no other.

After removing replicas for good, lower it with N; until then no write is confirmed. That is
safe only if no other server has this data and is a primary or may become one. It is
refused on a replica; if more than N replicas are online; if the Sentinels of the URL, or
the cluster, name another primary or know more than N replicas (SENTINEL RESET, CLUSTER
FORGET); and if Sentinels watch the server that the URL does not name. Without Sentinels
or cluster nothing can be checked: you must be sure. New processes then wait once, until
running holders have rewritten their slots.

The number rises by itself when a replica is attached. To raise it before that, add
--expected: until so many are attached, no write is confirmed.`,
		Example: `  firn store replicas --store 'redis://10.0.0.5,10.0.0.6,10.0.0.7:26379?master=main'
  firn store replicas 1 --store redis://10.0.0.5:6379/0`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(errors.New("name one number, as in firn store replicas 1"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			to := -1
			if len(args) == 1 {
				var err error
				if to, err = strconv.Atoi(args[0]); err != nil || to < 0 || to > redisstore.MaxReplicas {
					return usage(fmt.Errorf("%q replicas: 0 to %d are allowed", args[0], redisstore.MaxReplicas))
				}
			}
			ctx, end := context.WithTimeout(cmd.Context(), storeTimeout)
			defer end()
			return flags.with(ctx, func(s store.Store) error {
				redis, ok := s.(*redisstore.Store)
				if !ok {
					return usage(fmt.Errorf("%s: only a Redis counts its replicas here; firn doctor examines other stores", origin(flags.flags, "store")))
				}
				if to >= 0 {
					return setReplicas(ctx, cmd.OutOrStdout(), redis, to, expected)
				}
				there, err := redis.Replicas(ctx)
				if err != nil {
					return err
				}
				return answer(cmd, there, func(out io.Writer) error { return showReplicas(out, there) })
			})
		},
	}
	flags.addStore(cmd, "Redis to show or change, such as redis://HOST (see docs/stores.md)")
	cmd.Flags().BoolVar(&expected, "expected", false, "set a number above the replicas that are online")
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

func showReplicas(out io.Writer, r redisstore.Replicas) error {
	lowered := ""
	if !r.Lowered.IsZero() {
		lowered = " (lowered at " + r.Lowered.UTC().Format(time.RFC3339) + ")"
	}
	_, err := fmt.Fprintf(out, "recorded  %d%s\nattached  %d\nonline    %d\ncaught up %d\n", r.Recorded, lowered, r.Attached, r.Online, r.CaughtUp)
	if err == nil && r.Online < r.Recorded {
		_, err = fmt.Fprintf(out, "\nNo write is confirmed: start the missing replicas, or lower the number with firn store replicas %d.\n", r.Online)
	}
	if err == nil && r.CaughtUp < r.Attached {
		_, err = fmt.Fprint(out, "\nPromote no replica that has not caught up: replica-priority 0 until then, in a cluster cluster-replica-no-failover yes.\n")
	}
	return err
}

func setReplicas(ctx context.Context, out io.Writer, s *redisstore.Store, n int, expected bool) error {
	before, err := s.Replicas(ctx)
	if err != nil {
		return err
	}
	if n > before.Online && n > before.Recorded && !expected {
		return fmt.Errorf("%d replicas, but %d online, and no write would be confirmed: attach them, and the number rises by itself; or add --expected", n, before.Online)
	}
	if err := s.SetReplicas(ctx, n); err != nil {
		return err
	}
	after := ""
	if n < before.Recorded {
		after = "; new processes wait once until running holders have rewritten their slots"
	}
	_, err = fmt.Fprintf(out, "writes now need %s (before: %d)%s\n", count(int64(n), "replica"), before.Recorded, after)
	return err
}
