package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// sentinels starts n Sentinels that watch a primary as "main", and waits until each knows the others
// and the replicas. It returns them and their URL.
func sentinels(t *testing.T, addr string, n, quorum, replicas int) ([]*servers.Server, string) {
	t.Helper()
	var all []*servers.Server
	var addrs []string
	for range n {
		s := servers.Sentinel(t, "main", addr, quorum)
		all, addrs = append(all, s), append(addrs, s.Addr())
	}
	acquainted(t, all, replicas)
	return all, "redis://" + strings.Join(addrs, ",") + "?master=main"
}

// acquainted waits until each Sentinel knows the others and this many replicas.
func acquainted(t *testing.T, all []*servers.Server, replicas int) {
	t.Helper()
	ctx := context.Background()
	for _, s := range all {
		watcher := redis.NewSentinelClient(&redis.Options{Addr: s.Addr()})
		t.Cleanup(func() { _ = watcher.Close() })
		await(t, "the Sentinels to know all", func() bool {
			others, err := watcher.Sentinels(ctx, "main").Result()
			known, err2 := watcher.Replicas(ctx, "main").Result()
			return err == nil && err2 == nil && len(others) == len(all)-1 && len(known) == replicas
		})
	}
}

// forget makes Sentinels forget the servers that are gone. It waits for the end of a failover first: a
// Sentinel that forgets a server before it follows the new primary keeps the old one for ever.
func forget(t *testing.T, all []*servers.Server, replicas int) {
	t.Helper()
	ctx := context.Background()
	await(t, "the Sentinels to name one primary, and the replicas to follow it", func() bool {
		named := map[string]bool{}
		for _, s := range all {
			watcher := redis.NewSentinelClient(&redis.Options{Addr: s.Addr()})
			primary, err := watcher.Master(ctx, "main").Result()
			known, err2 := watcher.Replicas(ctx, "main").Result()
			if err := watcher.Close(); err != nil {
				t.Error(err)
			}
			following := 0
			for _, r := range known {
				if r["flags"] == "slave" && r["master-link-status"] == "ok" && r["master-port"] == primary["port"] {
					following++
				}
			}
			if err != nil || err2 != nil || primary["flags"] != "master" || following != replicas {
				return false
			}
			named[primary["port"]] = true
		}
		return len(named) == 1
	})
	for _, s := range all {
		if err := raw(t, s.Addr()).Do(ctx, "sentinel", "reset", "main").Err(); err != nil {
			t.Fatal(err)
		}
	}
	acquainted(t, all, replicas)
}

// A primary with two replicas and three Sentinels is cut off, together with one of its clients.
func TestASplitOfThreeSentinels(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := primary(t)
	proxy := servers.NewProxy(t, p.Addr(), nil)
	for range 2 {
		servers.Replica(t, proxy.Addr())
	}
	online(t, p.Addr(), 2)
	watchers, url := sentinels(t, proxy.Addr(), 3, 2, 2)
	holder, operator := open(t, "redis://"+p.Addr()), open(t, url)
	before := confirmed(t, holder, "together")
	if life := confirmed(t, operator, "through the Sentinels"); life != before {
		t.Errorf("lives %q and %q of one store", before, life)
	}
	if err := holder.AskSentinels(ctx, url); err != nil {
		t.Errorf("before the split: %v", err)
	}

	proxy.Refuse(true)
	unconfirmed(t, holder, "cut off", "of 2 replicas")
	await(t, "a replica to be promoted", func() bool {
		there, err := operator.Replicas(ctx)
		return err == nil && there.Online == 1 && there.Recorded == 2
	})
	unconfirmed(t, open(t, url), "on the new primary", "of 2 replicas")
	unconfirmed(t, holder, "still cut off", "of 2 replicas")
	expect(t, "the old primary", holder.AskSentinels(ctx, url), store.ErrRefused, "names another primary")
	expect(t, "the old primary may be promoted again", operator.SetReplicas(ctx, 1), store.ErrRefused, "knows 2 replicas", "SENTINEL RESET main")
	forget(t, watchers, 1)
	await(t, "the number to be lowered", func() bool { return operator.SetReplicas(ctx, 1) == nil })
	if life := confirmed(t, open(t, url), "with a lowered number"); life == before {
		t.Errorf("the life is %q as before", life)
	}
	unconfirmed(t, holder, "cut off for good", "of 2 replicas")

	watchers[0].Kill()
	watchers[1].Kill()
	_, last, _ := strings.Cut(url, watchers[1].Addr()+",")
	last = "redis://" + last
	await(t, "the last Sentinel to be alone", func() bool {
		return open(t, last).SetReplicas(ctx, 1) != nil
	})
	expect(t, "a Sentinel that is cut off", open(t, last).SetReplicas(ctx, 1), store.ErrRefused, "NOQUORUM")
	watchers[2].Kill()
	expect(t, "no Sentinel", operator.SetReplicas(ctx, 1), store.ErrUnavailable, "no Sentinel answers")
}

// An operator declared the replica gone for good, and the Sentinels promote it later, with its old
// data.
func TestANumberIsNotLoweredWhileASentinelKnowsTheReplicaThatIsGone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, replicas := withReplicas(t, 1)
	watchers, url := sentinels(t, p.Addr(), 1, 1, 1)
	s := open(t, url)
	confirmed(t, s, "together")
	replicas[0].Kill()
	operator := raw(t, p.Addr())
	await(t, "it to be gone", func() bool { return replicaLines(operator) == "" })
	expect(t, "it may be promoted", s.SetReplicas(ctx, 0), store.ErrRefused, "knows 1 replicas", "SENTINEL RESET main")
	unconfirmed(t, s, "as before", "0 of 1")
	forget(t, watchers, 0)
	if err := s.SetReplicas(ctx, 0); err != nil {
		t.Fatal(err)
	}
	confirmed(t, s, "alone")
}

// It was away when Firn wrote first, so no write waits for it.
func TestAReplicaThatOnlySentinelsKnowIsDoubtful(t *testing.T) {
	t.Parallel()
	p, replicas := withReplicas(t, 2)
	_, url := sentinels(t, p.Addr(), 1, 1, 2)
	replicas[1].Kill()
	operator := raw(t, p.Addr())
	await(t, "it to be gone", func() bool { return strings.Count(replicaLines(operator), "state=") == 1 })
	s := open(t, url)
	confirmed(t, s, "beside one")
	if f := verdict(t, s); f.Verdict != store.Doubtful || !contains(f.Says, "a write waits for 1: Sentinel") || !contains(f.Says, "knows 2 replicas") || contains(f.Says, "refused") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	replicas[1].Restart()
	online(t, p.Addr(), 2)
	confirmed(t, s, "with both")
	if f := verdict(t, s); f.Verdict != store.Good {
		t.Errorf("%v: %v", f.Verdict, f)
	}
}

// Without the Sentinels nothing shows whether the cut-off replica has been promoted meanwhile.
func TestANumberIsNotLoweredWithoutTheSentinelsThatWatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, replicas := withReplicas(t, 1)
	watchers, _ := sentinels(t, p.Addr(), 2, 2, 1)
	s, operator := open(t, "redis://"+p.Addr()), raw(t, p.Addr())
	confirmed(t, s, "together")
	if f := verdict(t, s); f.Verdict != store.Doubtful || !contains(f.Advice, "name them, with ?master=NAME") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	replicas[0].Kill()
	await(t, "it to be gone", func() bool { return replicaLines(operator) == "" })
	expect(t, "by a URL of the server", s.SetReplicas(ctx, 0), store.ErrRefused, "Sentinels monitor", "?master=NAME")
	for _, w := range watchers {
		w.Kill()
	}
	await(t, "the number to be lowered", func() bool { return s.SetReplicas(ctx, 0) == nil })
	confirmed(t, s, "alone")
}

// Two servers and a Sentinel: the new primary has no replica until the old one is back, or until an
// operator declares that it will not come back.
func TestAFailoverOfTwoServers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, _ := withReplicas(t, 1)
	watchers, url := sentinels(t, p.Addr(), 1, 1, 1)
	s := open(t, url)
	first := confirmed(t, s, "k")
	p.Kill()
	await(t, "the failover", func() bool {
		_, err := write(s, "k")
		return err != nil && contains(err.Error(), "0 of 1 replicas")
	})
	unconfirmed(t, open(t, url), "a new handle", "0 of 1 replicas")
	if e, err := s.Get(ctx, "k"); err != nil || string(e.Value) != "v" {
		t.Errorf("%q, %v", e.Value, err)
	}
	p.Restart()
	settles(t, s, "with the old primary as a replica")
	second := confirmed(t, s, "k")
	p.Kill()
	unconfirmed(t, s, "alone again", "0 of 1 replicas")
	expect(t, "the former primary may be promoted", s.SetReplicas(ctx, 0), store.ErrRefused, "knows 1 replicas")
	forget(t, watchers, 0)
	if err := s.SetReplicas(ctx, 0); err != nil {
		t.Fatal(err)
	}
	third := confirmed(t, s, "with no replica to come")
	if first == second || second == third || !strings.HasPrefix(third, second) {
		t.Errorf("lives %q, %q, %q", first, second, third)
	}
	if f := verdict(t, open(t, url)); f.Verdict != store.Good {
		t.Error(f)
	}
}

// replaced has a follower take over from the owner of its slots.
func replaced(t *testing.T, owner, follower *redis.Client) {
	t.Helper()
	ctx := context.Background()
	var asked time.Time
	await(t, "the failover", func() bool {
		if time.Since(asked) > 6*time.Second { // Redis gives up after 5 s
			asked = time.Now()
			if err := follower.ClusterFailover(ctx).Err(); err != nil {
				t.Fatal(err)
			}
		}
		info, err := owner.Info(ctx, "replication").Result()
		return err == nil && contains(info, "role:slave")
	})
}

func TestAClusterFailsOverAndMovesTheSet(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addrs, _ := cluster(t)
	s := open(t, "redis://"+addrs[0]+"?cluster=true")
	alone := confirmed(t, s, "without replicas")
	owner, other := raw(t, addrs[0]), raw(t, addrs[1])
	if slotOf(owner) >= 8192 {
		t.Fatal("firn was expected on the first server")
	}

	// A replica, which then takes over.
	replica := joined(t, owner, other, 1)
	follower := raw(t, replica.Addr())
	first := confirmed(t, s, "with a replica")
	if there, err := s.Replicas(ctx); err != nil || there.Recorded != 1 {
		t.Errorf("%+v, %v", there, err)
	}
	if f := verdict(t, s); f.Verdict != store.Doubtful || !contains(f.Says, "to replace a missing one") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	replaced(t, owner, follower)
	settles(t, s, "after the failover")
	second := confirmed(t, s, "after the failover")
	if alone == second || first == second {
		t.Errorf("lives %q, %q, %q", alone, first, second)
	}
	if err := s.AskCluster(ctx, replica.Addr()); err != nil {
		t.Errorf("the new primary: %v", err)
	}
	expect(t, "the old one", s.AskCluster(ctx, addrs[0]), store.ErrRefused, "another primary")

	// The slot moves to the other server, which has no replica.
	const whole = 5
	migrate(t, follower, other, whole)
	unconfirmed(t, s, "after it was moved", "0 of 1")
	expect(t, "where it was", s.AskCluster(ctx, replica.Addr()), store.ErrRefused, "another primary")
	await(t, "all to know where it is", func() bool { return s.AskCluster(ctx, addrs[1]) == nil })
	if err := s.SetReplicas(ctx, 0); err != nil {
		t.Fatal(err)
	}
	confirmed(t, s, "lowered")
}

// A former primary that was never a replica, and wins its slots back, has its former run and replication ids.
func TestTheLifeOfAClusterChangesWithTheEpochOfItsServer(t *testing.T) {
	t.Parallel()
	addrs, _ := cluster(t)
	s := open(t, "redis://"+addrs[0]+"?cluster=true")
	first := confirmed(t, s, "first")
	if again := confirmed(t, open(t, "redis://"+addrs[1]+"?cluster=true"), "another handle"); again != first {
		t.Errorf("%q, then %q", first, again)
	}
	owner := raw(t, addrs[0])
	for raised := ""; !contains(raised, "BUMPED"); { // STILL: it has the greatest epoch already
		for _, c := range []*redis.Client{raw(t, addrs[1]), owner} {
			raised = c.Do(context.Background(), "cluster", "bumpepoch").String()
		}
		agreed(t, 2, addrs[:]...)
	}
	if then := confirmed(t, s, "of another epoch"); then == first {
		t.Errorf("%q as before", then)
	}
}

// A store checks the policy when it is opened, and a slot may move later.
func TestASetThatMovesToAServerThatEvictsIsNotWritten(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addrs, _ := cluster(t)
	s := open(t, "redis://"+addrs[0]+"?cluster=true")
	confirmed(t, s, "before")
	owner, other := raw(t, addrs[0]), raw(t, addrs[1])
	if err := other.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	const whole = 5
	migrate(t, owner, other, whole)
	for range 2 {
		unconfirmed(t, s, "after it was moved", "allkeys-lru", "noeviction")
	}
	if err := other.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	confirmed(t, s, "on a server that keeps it")
}

func TestWhileServersOfAClusterSendToEachOtherNothingIsRefusedForGood(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addrs, _ := cluster(t)
	s := open(t, "redis://"+addrs[0]+"?cluster=true")
	owner, other := raw(t, addrs[0]), raw(t, addrs[1])
	for _, step := range [][2]*redis.Client{{owner, other}, {other, owner}} {
		if err := step[0].Do(ctx, "cluster", "setslot", slotOf(owner), "node", idOf(step[1])).Err(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.List(ctx, "")
	expect(t, "a read", err, store.ErrUnavailable, "is moving the key")
	expect(t, "a write", second(s.CompareAndSwap(ctx, "k", 0, nil)), store.ErrUnavailable, "is moving the key")
}

// MIGRATE copied the set, and its answer was lost. Whichever copy the cluster keeps, it has every
// confirmed write.
func TestNothingIsWrittenToASetThatMayHaveBeenCopied(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addrs, all := cluster(t)
	s := open(t, "redis://"+addrs[0]+"?cluster=true")
	owner, other := raw(t, addrs[0]), raw(t, addrs[1])
	written, err := s.CompareAndSwap(ctx, "k", 0, []byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	const open = 2
	migrate(t, owner, other, open)
	if err := owner.Do(ctx, "migrate", "127.0.0.1", all[1].Port(), "firn", 0, 5000, "copy").Err(); err != nil {
		t.Fatal(err)
	}
	expect(t, "the owner", second(s.CompareAndSwap(ctx, "k", written.Revision, []byte("meanwhile"))), store.ErrUnavailable, "is moving the key")
	if err := other.Do(ctx, "cluster", "setslot", slotOf(owner), "node", idOf(other)).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "the other to have the slot", func() bool {
		_, err = s.CompareAndSwap(ctx, "k", written.Revision, []byte("after"))
		return !errors.Is(err, store.ErrUnavailable)
	})
	if err != nil {
		t.Errorf("the copy lacks a confirmed write: %v", err)
	}
}

// The replica of the node that had the set does not know of the move, and is empty.
func TestASetMovedWithoutItsSlotIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	addrs, all := cluster(t)
	s := open(t, "redis://"+addrs[0]+"?cluster=true")
	owner, other := raw(t, addrs[0]), raw(t, addrs[1])
	follower := raw(t, joined(t, owner, other, 1).Addr())
	confirmed(t, s, "before")
	const half = 3
	migrate(t, owner, other, half)
	expect(t, "the owner", second(write(s, "k")), store.ErrUnavailable, "is moving the key")
	replaced(t, owner, follower)
	await(t, "the client to know", func() bool { return errors.Is(second(write(s, "k")), store.ErrRefused) })
	late := open(t, "redis://"+addrs[0]+"?cluster=true")
	expect(t, "the replica of the owner", second(write(late, "k")), store.ErrRefused, "no set", addrs[1], "redis-cli --cluster fix")
	all[1].Kill()
	await(t, "it to say that the other does not answer", func() bool { // at first the client may ask that itself
		err := second(write(late, "k"))
		return errors.Is(err, store.ErrUnavailable) && contains(err.Error(), "does not answer") && contains(err.Error(), addrs[1])
	})
}

func second[A, B any](_ A, b B) B { return b }

// Certificates are for names, while CLUSTER NODES begins with addresses.
func TestASetIsMadeInAClusterThatIsReachedByNames(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cert, key := servers.Certificate(t, t.TempDir(), "localhost")
	var ports, buses []string
	var all []*redis.Client
	for i := range 2 {
		ports, buses = append(ports, strconv.Itoa(servers.FreePort(t))), append(buses, strconv.Itoa(servers.FreePort(t)))
		server := raw(t, servers.Redis(t, "--cluster-enabled", "yes", "--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname",
			"--tls-cluster", "yes", "--cluster-port", buses[i], "--tls-port", ports[i], "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no").Addr())
		all = append(all, server)
		await(t, "half of the slots", func() bool { // a try may succeed without an answer
			err := server.ClusterAddSlotsRange(ctx, i*8192, i*8192+8191).Err()
			return err == nil || strings.Contains(err.Error(), "is already busy")
		})
	}
	if err := all[1].Do(ctx, "cluster", "meet", "127.0.0.1", ports[0], buses[0]).Err(); err != nil {
		t.Fatal(err)
	}
	for _, server := range all {
		await(t, "the cluster to agree", func() bool {
			nodes, err1 := server.ClusterNodes(ctx).Result()
			info, err2 := server.ClusterInfo(ctx).Result()
			return err1 == nil && err2 == nil && strings.Count(nodes, ",localhost") == 2 && contains(info, "cluster_state:ok")
		})
	}
	confirmed(t, open(t, "rediss://localhost:"+ports[0]+"?cluster=true&tls_ca="+cert), "by names")
}

func TestTheReachableAddressOfAClusterServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ address, another, want string }{
		{"10.0.0.5:6379@16379", "10.0.0.6:6379", "10.0.0.5:6379"},
		{"10.0.0.5:6379@16379,a.example", "10.0.0.6:6379", "10.0.0.5:6379"},
		{"10.0.0.5:6379@16379,a.example", "b.example:6379", "a.example:6379"},
		{"10.0.0.5:6379@16379,a.example,shard-id=1", "b.example:6379", "a.example:6379"},
		{"10.0.0.5:6380@16380,", "b.example:6379", "b.example:6380"},
		{"10.0.0.5:6380@16380", "b.example:6379", "b.example:6380"},
		{"fd00::5:6379@16379", "[fd00::6]:6379", "[fd00::5]:6379"},
		{":0@0", "10.0.0.6:6379", ":0"},
		{"", "10.0.0.6:6379", ":"},
	} {
		if got := redisstore.ReachedAt(test.address, test.another); got != test.want {
			t.Errorf("%q, where another is reached at %q: %q, want %q", test.address, test.another, got, test.want)
		}
	}
}

func TestAReplicaThatLeavesAClusterIsCountedUntilTheClusterForgetsIt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addrs, _ := cluster(t)
	s := open(t, "redis://"+addrs[0]+"?cluster=true")
	owner, other := raw(t, addrs[0]), raw(t, addrs[1])
	stays := raw(t, joined(t, owner, other, 1).Addr())
	leaves := joined(t, owner, other, 2)
	leaves.Pause()
	if f := verdict(t, s); f.Verdict != store.Doubtful || !contains(f.Advice, "cluster-replica-no-failover yes") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	leaves.Resume()
	leaves.Kill()
	await(t, "it to be gone", func() bool { return strings.Count(replicaLines(owner), "state=") == 1 })
	if f := verdict(t, s); f.Verdict != store.Doubtful || !contains(f.Says, "a write waits for 1: the cluster knows 2 replicas") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	leaves.Restart()
	online(t, owner.Options().Addr, 2)
	confirmed(t, s, "with both")
	if f := verdict(t, s); f.Verdict != store.Doubtful || !contains(f.Advice, "cluster-allow-replica-migration no") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	if err := owner.ConfigSet(ctx, "cluster-allow-replica-migration", "no").Err(); err != nil {
		t.Fatal(err)
	}
	if f := verdict(t, s); f.Verdict != store.Good {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	id := raw(t, leaves.Addr()).Do(ctx, "cluster", "myid").Val()
	leaves.Kill()
	await(t, "it to be gone", func() bool { return strings.Count(replicaLines(owner), "state=") == 1 })
	if err := owner.ZRem(ctx, "firn", recorded(t, owner.Options().Addr)).Err(); err != nil { // as if it was always away
		t.Fatal(err)
	}
	for _, server := range []*redis.Client{owner, other, stays} { // the others elect it while they know it
		expect(t, "it may be promoted", s.SetReplicas(ctx, 1), store.ErrRefused, "knows 2 replicas", "CLUSTER FORGET")
		if err := server.Do(ctx, "cluster", "forget", id).Err(); err != nil {
			t.Fatal(err)
		}
		if f := verdict(t, open(t, "redis://"+addrs[0]+"?cluster=true")); (f.Verdict == store.Good) != (server == stays) || server != stays && !contains(f.Says, "a write waits for 1: the cluster knows 2 replicas") {
			t.Errorf("%v: %v", f.Verdict, f)
		}
	}
	if err := s.SetReplicas(ctx, 1); err != nil {
		t.Fatal(err)
	}
	confirmed(t, s, "lowered")
}

// joined starts the nth replica of owner in a cluster of two primaries, and waits until it is online.
func joined(t *testing.T, owner, other *redis.Client, n int) *servers.Server {
	t.Helper()
	ctx := context.Background()
	replica := servers.Redis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0",
		"--cluster-allow-replica-migration", "no") // otherwise it might move to the other primary
	follower := raw(t, replica.Addr())
	_, port, _ := net.SplitHostPort(owner.Options().Addr)
	if err := follower.ClusterMeet(ctx, "127.0.0.1", port).Err(); err != nil {
		t.Fatal(err)
	}
	id := owner.Do(ctx, "cluster", "myid").Val().(string)
	await(t, "it to know its primary", func() bool { return follower.ClusterReplicate(ctx, id).Err() == nil })
	await(t, "it to be known", func() bool {
		nodes, err := other.ClusterNodes(ctx).Result()
		return err == nil && strings.Count(nodes, "\n") == 2+n && strings.Count(nodes, " slave ") == n
	})
	online(t, owner.Options().Addr, n)
	return replica
}

// slotOf returns the slot of the set in a cluster.
func slotOf(c *redis.Client) int {
	return int(c.ClusterKeySlot(context.Background(), "firn").Val())
}

// idOf returns the node id of a server of a cluster.
func idOf(c *redis.Client) string { return c.ClusterMyID(context.Background()).Val() }

// migrate moves the slot of the set from one server of a cluster to another, in five steps.
func migrate(t *testing.T, from, to *redis.Client, steps int) {
	t.Helper()
	ctx := context.Background()
	slot := slotOf(from)
	_, port, _ := net.SplitHostPort(to.Options().Addr)
	all := []struct {
		at   *redis.Client
		args []any
	}{
		{to, []any{"cluster", "setslot", slot, "importing", idOf(from)}},
		{from, []any{"cluster", "setslot", slot, "migrating", idOf(to)}},
		{from, []any{"migrate", "127.0.0.1", port, "firn", 0, 5000}},
		{to, []any{"cluster", "setslot", slot, "node", idOf(to)}},
		{from, []any{"cluster", "setslot", slot, "node", idOf(to)}},
	}
	for _, step := range all[:steps] {
		if err := step.at.Do(ctx, step.args...).Err(); err != nil {
			t.Fatalf("%v: %v", step.args, err)
		}
	}
}

var _ store.Store = (*redisstore.Store)(nil)

// After a split the other side's Sentinels may not answer at all. The answers of the others are valid
// for a moment only, and the number has to be lowered within that.
func TestANumberIsLoweredWhileSentinelsAreSilent(t *testing.T) {
	t.Parallel()
	p, replicas := withReplicas(t, 1)
	watchers, url := sentinels(t, p.Addr(), 1, 1, 1)
	hosts, master, _ := strings.Cut(url, "?")
	s := open(t, url)
	confirmed(t, s, "together")
	replicas[0].Kill()
	operator := raw(t, p.Addr())
	await(t, "it to be gone", func() bool { return replicaLines(operator) == "" })
	forget(t, watchers, 0)
	for range 4 {
		hosts += "," + servers.Silent(t)
	}
	if err := s.AskSentinels(context.Background(), hosts+"?"+master); err != nil {
		t.Error(err)
	}
	if err := open(t, hosts+"?"+master).SetReplicas(context.Background(), 0); err != nil {
		t.Error(err)
	}
	confirmed(t, s, "alone")
}

// The former server confirms by itself, as it has no replicas: no write that fails ends the connection to it.
func TestAStoreLeavesAServerThatConfirmsAndIsNoLongerNamed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cert, key := servers.Certificate(t, t.TempDir())
	secured := strconv.Itoa(servers.FreePort(t))
	former, next := servers.Redis(t, "--tls-port", secured, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"), servers.Redis(t)
	nextSecured := strconv.Itoa(servers.FreePort(t))
	config := raw(t, next.Addr())
	for _, setting := range []string{"tls-cert-file " + cert, "tls-key-file " + key, "tls-ca-cert-file " + cert, "tls-auth-clients no", "tls-port " + nextSecured} {
		name, value, _ := strings.Cut(setting, " ")
		if err := config.ConfigSet(ctx, name, value).Err(); err != nil {
			t.Fatal(setting, err)
		}
	}
	name, securedName := servers.NewProxy(t, former.Addr(), nil), servers.NewProxy(t, "127.0.0.1:"+secured, nil)
	stores := map[string]*redisstore.Store{
		"name": open(t, "redis://"+name.Addr()), "name with TLS": open(t, "rediss://"+securedName.Addr()+"?tls_ca="+cert),
	}
	for kind, s := range stores {
		confirmed(t, s, kind)
	}
	name.Choose(func(int) string { return next.Addr() }) // for new connections
	securedName.Choose(func(int) string { return "127.0.0.1:" + nextSecured })
	begun := time.Now()
	for kind, s := range stores {
		await(t, kind+": the next server to answer", func() bool {
			_, err := s.Get(ctx, kind)
			return errors.Is(err, store.ErrNotFound)
		})
		if took := time.Since(begun); took > 7*time.Second { // newcomers wait 9 s longer than the time between two looks, and a look may take 2 s
			t.Errorf("%s: the former server was asked for %v", kind, took)
		}
	}
}

// As a service's name, a virtual address or a load balancer does: it leads new connections elsewhere, and
// existing ones stay.
func TestAStoreFollowsAnAddressThatLeadsToAnotherServer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, demoted := range []bool{false, true} {
		a, replicas := withReplicas(t, 1)
		b := replicas[0]
		proxy := servers.NewProxy(t, a.Addr(), nil)
		s := open(t, "redis://"+proxy.Addr())
		confirmed(t, s, "before")
		if err := raw(t, b.Addr()).ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
			t.Fatal(err)
		}
		if err := open(t, "redis://"+b.Addr()).SetReplicas(ctx, 0); err != nil {
			t.Fatal(err)
		}
		proxy.Choose(func(int) string { return b.Addr() })
		if demoted {
			// It follows a server that does not answer, and serves old data.
			if err := raw(t, a.Addr()).ReplicaOf(ctx, "127.0.0.1", "1").Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(ctx, "before"); !errors.Is(err, store.ErrRefused) || !contains(err.Error(), "it is a replica") {
				t.Errorf("a read from the former primary: %v", err)
			}
			if _, err := s.Get(ctx, "before"); err != nil {
				t.Errorf("the next read: %v", err)
			}
		} else {
			unconfirmed(t, s, "on the former primary", "0 of 1")
		}
		confirmed(t, s, "on the present primary")
	}
}

// A Sentinel that is cut off answers, and names the former primary for as long as that lasts.
func TestASentinelThatKnowsNoFailoverIsNotFollowed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, _ := withReplicas(t, 1)
	watchers, url := sentinels(t, p.Addr(), 3, 2, 1)
	confirmed(t, open(t, url), "together")
	p.Kill()
	for _, w := range watchers[1:] {
		watcher := redis.NewSentinelClient(&redis.Options{Addr: w.Addr()})
		defer watcher.Close()
		await(t, "the failover", func() bool {
			at, err := watcher.GetMasterAddrByName(ctx, "main").Result()
			return err == nil && at[1] != strconv.Itoa(p.Port())
		})
	}
	behind := raw(t, watchers[0].Addr())
	for _, command := range [][]any{{"sentinel", "remove", "main"}, {"sentinel", "monitor", "main", "127.0.0.1", p.Port(), 2}} {
		if err := behind.Do(ctx, command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		unconfirmed(t, open(t, url), "on the new primary", "0 of 1 replicas")
	}
}

// The client's map of the cluster is a minute old, and the server that has the set is lost.
func TestAClusterThatHasFailedOverIsFoundSoon(t *testing.T) {
	t.Parallel()
	addrs, all := cluster(t)
	s := open(t, "redis://"+addrs[0]+"?cluster=true")
	owner, other := raw(t, addrs[0]), raw(t, addrs[1])
	replica := joined(t, owner, other, 1)
	confirmed(t, s, "with a replica")
	all[0].Kill()
	if err := raw(t, replica.Addr()).Do(context.Background(), "cluster", "failover", "takeover").Err(); err != nil {
		t.Fatal(err)
	}
	lost := time.Now()
	await(t, "the new primary", func() bool {
		_, err := s.Get(context.Background(), "with a replica")
		return err == nil || errors.Is(err, store.ErrNotFound)
	})
	if took := time.Since(lost); took > 10*time.Second {
		t.Errorf("after %v: newcomers wait 12s for holders", took)
	}
}
