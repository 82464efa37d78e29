package redisstore

import (
	"context"
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
		return run, asked, s.askCluster(ctx, s.cluster, node, n)
	default:
		return run, asked, s.sentinels.agree(ctx, run, n)
	}
}

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
	answers := make([]opinion, len(q.options.Addrs))
	var group sync.WaitGroup
	for i, addr := range q.options.Addrs {
		group.Go(func() { answers[i] = q.ask(ctx, addr) })
	}
	group.Wait()
	able, why := false, fmt.Errorf("%w: no Sentinel answers", store.ErrUnavailable)
	for i, addr := range q.options.Addrs {
		primary, quorum := answers[i].primary, answers[i].quorum
		if answers[i].err != nil {
			why = fmt.Errorf("%w: Sentinel %s: %w", why, addr, answers[i].err)
			continue
		}
		there, err := q.runID(ctx, primary)
		switch {
		case err != nil:
			return fmt.Errorf("%w: Sentinel %s names %s as the primary, which does not answer: %w", store.ErrRefused, addr, primary, err)
		case there != run:
			return fmt.Errorf("%w: Sentinel %s names another primary, %s", store.ErrRefused, addr, primary)
		case answers[i].replicas > n:
			return fmt.Errorf("%w: Sentinel %s knows %d replicas, and may promote one that no write waited for: once those that left are gone for good, send each Sentinel SENTINEL RESET %s",
				store.ErrRefused, addr, answers[i].replicas, q.options.MasterName)
		case quorum != nil:
			why = fmt.Errorf("%w: Sentinel %s: %w", store.ErrRefused, addr, quorum)
		default:
			able = true
		}
	}
	if !able {
		return fmt.Errorf("whether another server is the primary is not known: %w", why)
	}
	return nil
}

// An opinion is the primary that a Sentinel names, how many replicas it knows, gone ones too,
// and whether it reaches enough others.
type opinion struct {
	primary     string
	replicas    int
	quorum, err error
}

func (q sentinels) ask(ctx context.Context, addr string) opinion {
	options := q.options.Simple()
	options.Addr, options.DB = addr, 0
	options.Username, options.Password = q.options.SentinelUsername, q.options.SentinelPassword
	c := redis.NewSentinelClient(options)
	defer func() { _ = c.Close() }()
	parts, err := c.GetMasterAddrByName(ctx, q.options.MasterName).Result()
	switch {
	case err != nil:
		return opinion{err: err}
	case len(parts) != 2:
		return opinion{err: fmt.Errorf("it answers %q", parts)}
	}
	known, err := c.Replicas(ctx, q.options.MasterName).Result()
	return opinion{
		primary: net.JoinHostPort(parts[0], parts[1]), replicas: len(known),
		quorum: c.CkQuorum(ctx, q.options.MasterName).Err(), err: err,
	}
}

func (q sentinels) runID(ctx context.Context, addr string) (string, error) {
	options := q.options.Simple()
	options.Addr = addr
	c := redis.NewClient(options)
	defer func() { _ = c.Close() }()
	return runID(ctx, c)
}

// askCluster is nil if every server of a cluster that answers says that node owns the
// slot of the set, and node knows n replicas of its own at most.
func (s *Store) askCluster(ctx context.Context, c *redis.ClusterClient, node *redis.Client, n int) error {
	id, err := node.Do(ctx, "cluster", "myid").Text()
	if err != nil {
		return err
	}
	slot, err := node.ClusterKeySlot(ctx, s.cfg.Key).Result()
	if err != nil {
		return err
	}
	err = c.ForEachShard(ctx, func(ctx context.Context, member *redis.Client) error {
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
