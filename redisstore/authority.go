package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
)

// authority returns the run id of the server that has the set, and its time at the query. The error is
// [store.ErrRefused] unless its Sentinels or cluster, if there are any, agree that this server is the
// primary, and know at most n replicas that they could promote; and if Sentinels that the URL does not
// name watch it.
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
	if asked, err = node.Time(ctx).Result(); err == nil {
		run, err = runID(ctx, node)
	}
	switch {
	case err != nil:
	case s.cluster != nil:
		err = s.askCluster(ctx, node, n)
	case s.sentinels != nil:
		err = errors.Join(askSentinels(ctx, s.sentinels, run, n))
	default:
		if watched, _ := s.watched(ctx, node); !watched { // an account that may not see it is believed
			break
		}
		err = fmt.Errorf("%w: Sentinels monitor this server and may promote another one: name them in the URL, with ?master=NAME", store.ErrRefused)
	}
	return run, asked, err
}

// watched reports whether Sentinels that the URL does not name watch a server: they subscribe to their
// channel there.
func (s *Store) watched(ctx context.Context, node *redis.Client) (bool, error) {
	if s.cluster != nil || s.sentinels != nil {
		return false, nil
	}
	const channel = "__sentinel__:hello"
	subscribers, err := node.PubSubNumSub(ctx, channel).Result()
	return subscribers[channel] > 0, err
}

// runID returns the run id of a process.
func runID(ctx context.Context, node *redis.Client) (string, error) {
	text, err := node.Info(ctx, "server").Result()
	return parseInfo(text)["run_id"], err
}

// askTimeout bounds how long all the others may take to answer. Unreachable ones stay silent, and the
// answers of the rest are valid for no longer than answerHolds.
const askTimeout = time.Second

// askSentinels returns what the Sentinels of a URL object to about the server with a run id, see
// askSentinel, or that all have doubts: a Sentinel that is cut off may not know of the new primary.
func askSentinels(ctx context.Context, url *redis.UniversalOptions, run string, n int) (objection, doubt error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	objections, doubts := make([]error, len(url.Addrs)), make([]error, len(url.Addrs))
	var group sync.WaitGroup
	for i, addr := range url.Addrs {
		group.Go(func() { objections[i], doubts[i] = askSentinel(ctx, url, addr, run, n) })
	}
	group.Wait()
	objection = errors.Join(objections...)
	if objection == nil && !slices.Contains(doubts, nil) {
		doubt = fmt.Errorf("cannot find out whether another server is the primary: %w", errors.Join(doubts...))
	}
	return objection, doubt
}

// askSentinel asks one Sentinel. It objects if it names another primary, or knows more than n replicas,
// gone or not. It doubts if it does not answer, or does not reach enough others.
func askSentinel(ctx context.Context, url *redis.UniversalOptions, addr, run string, n int) (objection, doubt error) {
	c := redis.NewSentinelClient(sentinelOptions(url, addr))
	defer func() { _ = c.Close() }()
	parts, err := c.GetMasterAddrByName(ctx, url.MasterName).Result()
	if err == nil && len(parts) != 2 {
		err = fmt.Errorf("it answers %q", parts)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: no Sentinel answers: %s: %w", store.ErrUnavailable, addr, err)
	}
	options := url.Simple()
	options.Addr = net.JoinHostPort(parts[0], parts[1])
	named := redis.NewClient(options)
	defer func() { _ = named.Close() }()
	switch there, err := runID(ctx, named); {
	case err != nil:
		return fmt.Errorf("%w: Sentinel %s names %s as the primary, which does not answer: %w", store.ErrRefused, addr, options.Addr, err), nil
	case there != run:
		return fmt.Errorf("%w: Sentinel %s names another primary, %s", store.ErrRefused, addr, options.Addr), nil
	}
	known, err := c.Replicas(ctx, url.MasterName).Result()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: Sentinel %s: %w", store.ErrUnavailable, addr, err)
	case len(known) > n:
		return fmt.Errorf("%w: Sentinel %s knows %d replicas, and may promote one that no write waited for: once those that left are gone for good, send each Sentinel SENTINEL RESET %s",
			store.ErrRefused, addr, len(known), url.MasterName), nil
	}
	if err := c.CkQuorum(ctx, url.MasterName).Err(); err != nil {
		doubt = fmt.Errorf("%w: Sentinel %s: %w", store.ErrRefused, addr, err)
	}
	return nil, doubt
}

// askCluster returns nil if every server of the cluster that answers says that node has the slot of the
// set, and knows at most n replicas of node: each may vote for one that it knows.
func (s *Store) askCluster(ctx context.Context, node *redis.Client, n int) error {
	id, slot, err := s.place(ctx, node)
	if err != nil {
		return err
	}
	others, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := s.cluster.ForEachShard(others, func(ctx context.Context, member *redis.Client) error {
		err := cmp.Or(askMember(ctx, member, id, slot), clusterKnows(ctx, member, id, n))
		if errors.Is(err, store.ErrRefused) {
			return err
		}
		return nil // the members that answer decide
	}); err != nil {
		return err
	}
	return clusterKnows(ctx, node, id, n)
}

// clusterKnows returns an error if a server of a cluster knows more than n replicas of the one that has that id.
func clusterKnows(ctx context.Context, member *redis.Client, id string, n int) error {
	known, err := member.Do(ctx, "cluster", "replicas", id).StringSlice()
	if err == nil && len(known) > n {
		err = fmt.Errorf("%w: the cluster knows %d replicas of it, as %s says, and may promote one that no write waited for: once those that left are gone for good, send each server CLUSTER FORGET",
			store.ErrRefused, len(known), member.Options().Addr)
	}
	return err
}

// place returns the id of a server in its cluster, and the slot of the set.
func (s *Store) place(ctx context.Context, node *redis.Client) (id string, slot int64, err error) {
	if id, err = node.ClusterMyID(ctx).Result(); err == nil {
		slot, err = node.ClusterKeySlot(ctx, s.cfg.Key).Result()
	}
	return id, slot, err
}

// askMember returns nil if a server of a cluster names that id for the slot, or does not answer.
func askMember(ctx context.Context, member *redis.Client, id string, slot int64) error {
	slots, err := member.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS needs Redis 7.0
	if err != nil {
		return nil //nolint:nilerr // the members that answer decide
	}
	i := slices.IndexFunc(slots, func(r redis.ClusterSlot) bool { return int64(r.Start) <= slot && slot <= int64(r.End) })
	if i < 0 || len(slots[i].Nodes) == 0 || slots[i].Nodes[0].ID != id {
		return fmt.Errorf("%w: %s names another primary for the key", store.ErrRefused, member.Options().Addr)
	}
	return nil
}

// askNamed returns nil if all Sentinels or servers of a cluster that the URL names, and that answer, name
// node as the primary. A client asks only the first that answers, or one of them at random.
func (s *Store) askNamed(ctx context.Context, node *redis.Client) error {
	if s.sentinels != nil {
		run, err := runID(ctx, node)
		if err != nil {
			return err
		}
		objection, _ := askSentinels(ctx, s.sentinels, run, MaxReplicas) // doubts name no other primary
		return objection
	}
	if s.cluster == nil {
		return nil
	}
	id, slot, err := s.place(ctx, node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	addrs := s.cluster.Options().Addrs
	objections := make([]error, len(addrs))
	var group sync.WaitGroup
	for i, addr := range addrs {
		options := *node.Options()
		options.Addr = addr
		group.Go(func() {
			member := redis.NewClient(&options)
			defer func() { _ = member.Close() }() // all answers have been read
			objections[i] = askMember(ctx, member, id, slot)
		})
	}
	group.Wait()
	return errors.Join(objections...)
}

// knowMore says that a Sentinel of the URL, or the cluster, knows more than n replicas, as when one was
// away when Firn wrote first: it may be promoted, and no write waited for it.
func (s *Store) knowMore(ctx context.Context, node *redis.Client, n int) string {
	var err error
	switch {
	case s.sentinels != nil:
		var run string
		if run, err = runID(ctx, node); err == nil {
			err, _ = askSentinels(ctx, s.sentinels, run, n)
		}
	case s.cluster != nil:
		err = s.askCluster(ctx, node, n)
	}
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // the other Sentinels say the same
	return strings.TrimPrefix(first, store.ErrRefused.Error()+": ")
}

// alone returns nil if no other primary of the cluster has keys in the slot of the set, so that the set
// may be created. A set that was moved without its slot looks new at its old place once the server there
// has failed over: the replica does not know of the move.
func (s *Store) alone(ctx context.Context, node *redis.Client) error {
	slot, err := node.ClusterKeySlot(ctx, s.cfg.Key).Result()
	if err != nil {
		return err
	}
	nodes, err := node.ClusterNodes(ctx).Result()
	if err != nil {
		return err
	}
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line) // id, address, flags
		if len(fields) < 3 || !strings.Contains(fields[2], "master") || strings.Contains(fields[2], "myself") {
			continue
		}
		options := *node.Options()
		options.Addr = reachedAt(fields[1], options.Addr)
		there, err := keysAt(ctx, &options, slot)
		switch {
		case err != nil:
			return fmt.Errorf("%w: there is no set in the cluster, and server %s, which may have it, does not answer: start it, or remove it with CLUSTER FORGET %s: %w",
				store.ErrUnavailable, options.Addr, fields[0], err)
		case there > 0:
			return fmt.Errorf("%w: there is no set in the cluster, but %s has keys of its slot %d: finish the move with redis-cli --cluster fix",
				store.ErrRefused, options.Addr, slot)
		}
	}
	return nil
}

// reachedAt returns the address of a server of a cluster, from its entry in CLUSTER NODES,
// IP:PORT@BUS[,NAME[,...]], and from the address where the client reaches another. If that is a name,
// certificates may be for names alone, and the listed addresses may belong to another network.
func reachedAt(address, another string) string {
	address, more, _ := strings.Cut(address, "@")
	port := strings.LastIndex(address, ":")
	host := address[:max(port, 0)]
	_, name, _ := strings.Cut(more, ",")
	name, _, _ = strings.Cut(name, ",")
	if theirs, _, err := net.SplitHostPort(another); err == nil && net.ParseIP(theirs) == nil {
		host = cmp.Or(name, theirs) // without a name of their own, all servers have that of another
	}
	return net.JoinHostPort(host, address[port+1:]) // brackets, for IPv6
}

// keysAt returns how many keys of a slot a server of a cluster stores, whichever server serves the slot.
func keysAt(ctx context.Context, options *redis.Options, slot int64) (int64, error) {
	c := redis.NewClient(options)
	defer func() { _ = c.Close() }()
	return c.ClusterCountKeysInSlot(ctx, int(slot)).Result()
}
