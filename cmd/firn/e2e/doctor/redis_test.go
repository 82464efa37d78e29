package doctor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store/storetest/servers"
)

func init() {
	cases["redis settings"] = func(d *doctor) {
		server := servers.Redis(d)
		at := d.redis(server.Addr())
		url := "redis://" + server.Addr()
		d.finds("good", "persistence", "it has no configuration file", "--store", url)
		d.finds("good", "eviction", "is never evicted", "--store", url)
		d.finds("good", "replicas", "no replicas", "--store", url)
		d.finds("good", "write", "is confirmed", "--store", url)
		d.finds("good", "clock", "the store's, give or take", "--store", url)
		for _, set := range []struct{ name, value, back, subject, verdict, words string }{
			{"appendfsync", "everysec", "always", "persistence", "doubtful", "set appendfsync always"},
			{"no-appendfsync-on-rewrite", "yes", "no", "persistence", "doubtful", "set no-appendfsync-on-rewrite no"},
			{"maxmemory", "1", "0", "write", "bad", "raise maxmemory"},
			{"min-replicas-to-write", "1", "0", "write", "bad", "fewer replicas than min-replicas-to-write"},
		} {
			d.must(at.ConfigSet(context.Background(), set.name, set.value).Err())
			d.finds(set.verdict, set.subject, set.words, "--store", url)
			d.must(at.ConfigSet(context.Background(), set.name, set.back).Err())
		}
		d.do(at, "ZADD", "firn", 0, "firn/default/poolx")
		d.finds("bad", "pool", "was not written by Firn", "--store", url)
		d.do(at, "ZREM", "firn", "firn/default/poolx")
		d.do(at, "EXPIRE", "firn", 3600)
		d.finds("bad", "eviction", "PERSIST firn", "--store", url)
		d.do(at, "PERSIST", "firn")
		d.do(at, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
		d.refuses("may be evicted", "--store", url)
	}
	cases["redis that hides settings"] = func(d *doctor) {
		// A Redis shows it in INFO since 2.8.13. In front of managed ones stands a program of the provider.
		server := servers.Redis(d)
		front := servers.Accept(d, func(client net.Conn) {
			behind, err := net.Dial("tcp", server.Addr())
			if err != nil {
				_ = client.Close() // the case is over
				return
			}
			go func() { _, _ = io.Copy(behind, client); _ = behind.Close() }()
			go func() {
				for b := make([]byte, 64<<10); ; {
					n, err := behind.Read(b)
					if _, failed := client.Write(bytes.ReplaceAll(b[:n], []byte("maxmemory_policy:"), []byte("maxmemory_hidden:"))); failed != nil || err != nil {
						_ = client.Close() // the client may have closed it
						return
					}
				}
			}()
		})
		d.finds("doubtful", "eviction", "INFO does not show maxmemory-policy → make sure that it is noeviction or a volatile one", "--store", "redis://"+front)
	}
	cases["redis without persistence"] = func(d *doctor) {
		server := servers.Redis(d, "--appendonly", "no", "--save", "60 1000")
		at, url := d.redis(server.Addr()), "redis://"+server.Addr()
		d.finds("bad", "persistence", "a restart forgets", "--store", url)
		file := filepath.Join(d.TempDir(), "redis.conf")
		d.must(os.WriteFile(file, nil, 0o600))
		configured := servers.Redis(d, file, "--appendonly", "no")
		d.finds("bad", "persistence", "4. CONFIG REWRITE; its command line", "--store", "redis://"+configured.Addr())
		d.do(at, "CONFIG", "SET", "rdb-key-save-delay", 10_000_000) // a rewrite takes ten seconds for each key
		d.do(at, "CONFIG", "SET", "appendfsync", "always", "appendonly", "yes")
		d.finds("doubtful", "persistence", "its file is being rewritten", "--store", url)
	}
	cases["redis permissions"] = func(d *doctor) {
		server := servers.Redis(d)
		at := d.redis(server.Addr())
		every := []string{"+zrangebylex", "+zcount", "+zadd", "+zrem", "+eval", "+evalsha", "+time", "+info", "+wait", "+config|get", "+ttl", "+pubsub|numsub"}
		for i, without := range every {
			d.do(at, "SCRIPT", "FLUSH")
			args := []any{"ACL", "SETUSER", fmt.Sprint("user", i), "on", ">" + password, "~firn"}
			for _, p := range every {
				if p != without {
					args = append(args, p)
				}
			}
			d.do(at, args...)
			url := fmt.Sprintf("redis://user%d:%s@%s", i, password, server.Addr())
			switch without {
			case "+zadd", "+zrem", "+zcount", "+wait":
				d.finds("bad", "write", without, "--store", url)
			case "+time":
				d.finds("bad", "clock", without, "--store", url)
			case "+config|get":
				d.finds("doubtful", "persistence", "grant the user +config|get", "--store", url)
			case "+ttl":
				d.finds("doubtful", "eviction", "grant the user +ttl", "--store", url)
			case "+pubsub|numsub":
				d.finds("doubtful", "replicas", "grant the user +pubsub|numsub", "--store", url)
			default: // a process cannot even open the store
				d.refuses(without, "--store", url)
			}
		}
	}
	cases["redis replicas"] = func(d *doctor) {
		primary := servers.Redis(d, "--repl-diskless-sync-delay", "0")
		at, url := d.redis(primary.Addr()), "redis://"+primary.Addr()
		first, second := servers.Replica(d, primary.Addr()), servers.Replica(d, primary.Addr())
		d.online(at, 2)
		d.finds("good", "replicas", "2 caught up", "--store", url)
		d.finds("bad", "replicas", "leave out ?replicas", "--store", url+"?replicas=0")
		d.finds("doubtful", "replicas", "if another replica is promoted, ", "--store", url+"?replicas=1")
		d.do(at, "ACL", "SETUSER", "blind", "on", ">"+password, "~firn", "+@all", "-config")
		d.finds("doubtful", "replicas", "grant the user +config|get", "--store", "redis://blind:"+password+"@"+primary.Addr())
		for _, setting := range []string{"replica-ignore-maxmemory", "replica-read-only"} {
			d.do(at, "CONFIG", "SET", setting, "no")
			d.finds("doubtful", "replicas", "set "+setting+" yes on all servers", "--store", url)
			d.do(at, "CONFIG", "SET", setting, "yes")
		}
		d.finds("bad", "replicas", "it is a replica, which refuses writes", "--store", "redis://"+first.Addr())
		d.finds("bad", "latency", "name the primary", "--store", "redis://"+first.Addr())
		d.do(at, "CONFIG", "SET", "min-replicas-to-write", 3)
		d.finds("doubtful", "replicas", "cannot find out which have caught up", "--store", url)
		d.do(at, "CONFIG", "SET", "min-replicas-to-write", 0)
		second.Pause()
		d.finds("doubtful", "replicas", "promote none before it has caught up", "--store", url)
		second.Resume()
		second.Kill()
		d.finds("bad", "replicas", "start the missing ones, or lower the number: firn store replicas 1", "--store", url)
		d.finds("bad", "replicas", "start the missing ones, or leave out ?replicas", "--store", url+"?replicas=2")
		d.finds("bad", "write", "not confirmed", "--store", url)
	}
	cases["redis of two servers"] = func(d *doctor) {
		addrs := []string{servers.Redis(d).Addr(), servers.Redis(d).Addr()}
		balancer := servers.NewProxy(d, "", nil)
		balancer.Choose(func(n int) string { return addrs[n%2] })
		d.finds("bad", "replicas", "lead to 2 servers", "--store", "redis://"+balancer.Addr())
	}
	cases["redis promoted"] = func(d *doctor) {
		primary := servers.Redis(d, "--repl-diskless-sync-delay", "0")
		replica := servers.Replica(d, primary.Addr())
		d.online(d.redis(primary.Addr()), 1)
		d.do(d.redis(replica.Addr()), "REPLICAOF", "NO", "ONE")
		d.finds("bad", "replicas", "it was promoted while no replicas were recorded", "--store", "redis://"+replica.Addr())
	}
	cases["redis sentinels"] = func(d *doctor) {
		primary, other := servers.Redis(d, "--repl-diskless-sync-delay", "0"), servers.Redis(d)
		at := d.redis(primary.Addr())
		replica := servers.Replica(d, primary.Addr())
		d.online(at, 1)
		sentinel := servers.Sentinel(d, "main", primary.Addr(), 1)
		url := "redis://" + sentinel.Addr() + "?master=main"
		d.until("the Sentinel to know the replica", func() bool {
			return strings.Contains(d.redis(sentinel.Addr()).Info(context.Background(), "sentinel").Val(), "slaves=1")
		})
		replica.Kill()
		d.until("the replica to be gone", func() bool { return !strings.Contains(at.Info(context.Background(), "replication").Val(), "slave0:") })
		d.finds("doubtful", "replicas", "have all replicas online before Firn writes again", "--store", url)
		d.finds("doubtful", "replicas", "name them, with ?master=NAME", "--store", "redis://"+primary.Addr())
		of := servers.Sentinel(d, "main", other.Addr(), 1)
		d.finds("bad", "replicas", "do not agree on the primary", "--store", "redis://"+sentinel.Addr()+","+of.Addr()+"?master=main")
	}
	cases["redis sentinels with a replica that was recorded"] = func(d *doctor) {
		primary := servers.Redis(d, "--repl-diskless-sync-delay", "0")
		at := d.redis(primary.Addr())
		replica := servers.Replica(d, primary.Addr())
		d.online(at, 1)
		sentinel := servers.Sentinel(d, "main", primary.Addr(), 1)
		url := "redis://" + sentinel.Addr() + "?master=main"
		d.until("the Sentinel to know the replica", func() bool {
			return strings.Contains(d.redis(sentinel.Addr()).Info(context.Background(), "sentinel").Val(), "slaves=1")
		})
		d.finds("good", "replicas", "1 caught up", "--store", url)
		replica.Kill()
		d.until("the replica to be gone", func() bool { return !strings.Contains(at.Info(context.Background(), "replication").Val(), "slave0:") })
		d.finds("bad", "replicas", "Sentinels must forget the missing ones first", "--store", url)
	}
	cases["redis cluster"] = func(d *doctor) {
		ctx := context.Background()
		node := servers.Redis(d, "--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0", "--cluster-node-timeout", "15000")
		at, url := d.redis(node.Addr()), "redis://"+node.Addr()+"?cluster=true"
		d.finds("bad", "server", "CLUSTERDOWN", "--store", url)
		d.must(at.ClusterAddSlotsRange(ctx, 0, 16383).Err())
		replica := servers.Redis(d, "--cluster-enabled", "yes", "--cluster-node-timeout", "15000")
		follower := d.redis(replica.Addr())
		d.must(follower.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(node.Port())).Err())
		id := at.Do(ctx, "CLUSTER", "MYID").Val().(string)
		d.until("them to meet", func() bool { return follower.Do(ctx, "CLUSTER", "REPLICATE", id).Err() == nil })
		d.online(at, 1)
		d.finds("doubtful", "replicas", "set cluster-allow-replica-migration no", "--store", url)
		replica.Pause()
		d.finds("doubtful", "replicas", "cluster-replica-no-failover yes", "--store", url)
		replica.Resume()
		d.do(at, "CONFIG", "SET", "cluster-allow-replica-migration", "no")
		d.finds("good", "replicas", "1 caught up", "--store", url)
	}
}

// redis is a client for an operator's commands.
func (d *doctor) redis(addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	d.Cleanup(func() { _ = c.Close() }) // its server may be gone
	return c
}

func (d *doctor) do(at *redis.Client, args ...any) {
	d.Helper()
	if err := at.Do(context.Background(), args...).Err(); err != nil {
		d.Fatalf("%v: %v", args, err)
	}
}

// online waits until a primary has n replicas that have acknowledged data.
func (d *doctor) online(at *redis.Client, n int) {
	d.Helper()
	d.until(strconv.Itoa(n)+" replicas", func() bool {
		info := at.Info(context.Background(), "replication").Val()
		return strings.Count(info, "state=online") == n && !strings.Contains(info, "offset=0,")
	})
}
