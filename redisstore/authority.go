package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
)

// authority returns the run id of the server that has the set, and its time when it was
// asked. Where Sentinels or a cluster decide which is the primary, they must agree that it is
// this one, and know n replicas at most that they could make the next; else the error is
// [store.ErrRefused].
func (s *Store) authority(ctx context.Context, n int) (run string, asked time.Time, err error) {
	if s.cluster != nil {
		if err := s.follow(ctx, 0); err != nil {
			return "", asked, err
		}
	}
	node, err := s.node(ctx)
	if err != nil {
		return "", asked, err
	}
	if asked, err = node.Time(ctx).Result(); err != nil {
		return "", asked, err
	}
	run, err = runID(ctx, node)
	switch {
	case err != nil:
		return "", asked, err
	case s.cluster != nil:
		return run, asked, s.askCluster(ctx, node, n)
	default:
		return run, asked, s.sentinels.agree(ctx, run, n)
	}
}

// runID returns the name of a process.
func runID(ctx context.Context, node *redis.Client) (string, error) {
	text, err := node.Info(ctx, "server").Result()
	return parseInfo(text)["run_id"], err
}

// sentinels are those that a URL names, if any.
type sentinels struct {
	options *redis.UniversalOptions
}

// agree is nil if each Sentinel that answers names the server with a run id as the
// primary, and knows n replicas at most; and one of them could have it replaced: one that is cut
// off from the others may not know of the new primary.
func (q sentinels) agree(ctx context.Context, run string, n int) error {
	if q.options == nil || q.options.MasterName == "" {
		return nil
	}
	// All at once: those on the other side of a split keep silent for as long as they may.
	objections, doubts := make([]error, len(q.options.Addrs)), make([]error, len(q.options.Addrs))
	var group sync.WaitGroup
	for i, addr := range q.options.Addrs {
		group.Go(func() { objections[i], doubts[i] = q.ask(ctx, addr, run, n) })
	}
	group.Wait()
	switch err := errors.Join(objections...); {
	case err != nil:
		return err
	case !slices.Contains(doubts, nil):
		return fmt.Errorf("whether another server is the primary is not known: %w", errors.Join(doubts...))
	default:
		return nil
	}
}

// ask asks a Sentinel. It objects if the server is not the primary that it names, or if it knows
// more than n replicas, gone ones too; and doubts if it does not answer, or does not reach
// enough others.
func (q sentinels) ask(ctx context.Context, addr, run string, n int) (objection, doubt error) {
	options := q.options.Simple()
	options.Addr, options.DB = addr, 0
	options.Username, options.Password = q.options.SentinelUsername, q.options.SentinelPassword
	c := redis.NewSentinelClient(options)
	defer func() { _ = c.Close() }()
	parts, err := c.GetMasterAddrByName(ctx, q.options.MasterName).Result()
	if err == nil && len(parts) != 2 {
		err = fmt.Errorf("it answers %q", parts)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: no Sentinel answers: %s: %w", store.ErrUnavailable, addr, err)
	}
	primary := net.JoinHostPort(parts[0], parts[1])
	options = q.options.Simple()
	options.Addr = primary
	named := redis.NewClient(options)
	defer func() { _ = named.Close() }()
	switch there, err := runID(ctx, named); {
	case err != nil:
		return fmt.Errorf("%w: Sentinel %s names %s as the primary, which does not answer: %w", store.ErrRefused, addr, primary, err), nil
	case there != run:
		return fmt.Errorf("%w: Sentinel %s names another primary, %s", store.ErrRefused, addr, primary), nil
	}
	known, err := c.Replicas(ctx, q.options.MasterName).Result()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: Sentinel %s: %w", store.ErrUnavailable, addr, err)
	case len(known) > n:
		return fmt.Errorf("%w: Sentinel %s knows %d replicas, and may promote one that no write waited for: once those that left are gone for good, send each Sentinel SENTINEL RESET %s",
			store.ErrRefused, addr, len(known), q.options.MasterName), nil
	}
	if err := c.CkQuorum(ctx, q.options.MasterName).Err(); err != nil {
		return nil, fmt.Errorf("%w: Sentinel %s: %w", store.ErrRefused, addr, err)
	}
	return nil, nil
}

// askCluster is nil if every server of a cluster that answers says that node owns the
// slot of the set, and node knows n replicas of its own at most.
func (s *Store) askCluster(ctx context.Context, node *redis.Client, n int) error {
	id, err := node.Do(ctx, "cluster", "myid").Text()
	if err != nil {
		return err
	}
	slot, err := node.ClusterKeySlot(ctx, s.cfg.Key).Result()
	if err != nil {
		return err
	}
	err = s.cluster.ForEachShard(ctx, func(ctx context.Context, member *redis.Client) error {
		slots, err := member.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS needs Redis 7.0
		if err != nil {
			return nil //nolint:nilerr // the members that answer decide
		}
		i := slices.IndexFunc(slots, func(r redis.ClusterSlot) bool { return int64(r.Start) <= slot && slot <= int64(r.End) })
		if i < 0 || len(slots[i].Nodes) == 0 || slots[i].Nodes[0].ID != id {
			return fmt.Errorf("%w: %s names another primary for the key", store.ErrRefused, member.Options().Addr)
		}
		return nil
	})
	if err != nil {
		return err
	}
	known, err := node.Do(ctx, "cluster", "replicas", id).StringSlice()
	switch {
	case err != nil:
		return err
	case len(known) > n:
		return fmt.Errorf("%w: the cluster knows %d replicas of it, and may promote one that no write waited for: once those that left are gone for good, send each server CLUSTER FORGET",
			store.ErrRefused, len(known))
	}
	return nil
}
