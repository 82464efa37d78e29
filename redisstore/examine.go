package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/backend"
	"github.com/firn-id/firn/store"
)

// Examine implements [store.Examined]: persistence, eviction, replicas.
func (s *Store) Examine(ctx context.Context) ([]store.Finding, error) {
	return backend.Do(ctx, s.calls, "examine", s.cfg.Key, func(ctx context.Context) ([]store.Finding, error) {
		info, there, err := s.count(ctx)
		if err != nil {
			return nil, err
		}
		node, err := s.node(ctx)
		if err != nil {
			return nil, err
		}
		setting := func(name string) string { // which the account may not be allowed to see
			if value, told := node.ConfigGet(ctx, name).Val()[name]; told {
				return value
			}
			return "not told"
		}
		expiry := node.TTL(ctx, s.cfg.Key).Val()
		servers, err := serversBehind(ctx, node)
		if err != nil {
			return nil, err
		}
		return []store.Finding{persists(info, setting), s.evicts(info, expiry), s.replicates(info, there, servers, s.watched(ctx, node), setting)}, nil
	})
}

func persists(info map[string]string, setting func(string) string) store.Finding {
	f := store.Finding{Subject: "persistence", Verdict: store.Doubtful, Advice: "set appendfsync always, or use a strict pool"}
	rewrites := info["aof_rewrite_in_progress"] == "1" || info["aof_rewrite_scheduled"] == "1" || info["aof_last_bgrewrite_status"] != "ok"
	switch sync := setting("appendfsync"); {
	case info["aof_enabled"] != "1":
		f.Verdict = store.Bad
		f.Says = fmt.Sprintf("appendonly no, save %q: a restart forgets the workers taken since the last snapshot", setting("save"))
		// A restart with that setting would forget all: a snapshot is not loaded where that file is missing.
		f.Advice = "CONFIG SET appendonly yes, appendfsync always while it runs, and CONFIG REWRITE once INFO says aof_rewrite_in_progress:0; a restart with a changed file would begin empty. Or use a strict pool"
	case info["aof_base_size"] == "0" && rewrites: // it was turned on under a running server
		f.Says = "appendonly yes, and the first file is not written yet: a crash forgets everything"
		f.Advice = "wait until INFO says aof_rewrite_in_progress:0, or see its log"
	case sync != "always":
		f.Says = "appendonly yes, appendfsync " + sync + ": a loss of power loses the last moments"
	case setting("no-appendfsync-on-rewrite") == "yes":
		f.Says = "appendonly yes, appendfsync always, no-appendfsync-on-rewrite yes: a loss of power loses what was written while a snapshot or the file was rewritten"
		f.Advice = "set no-appendfsync-on-rewrite no"
	default:
		f = store.Finding{Subject: f.Subject, Says: "appendonly yes, appendfsync always: nothing acknowledged is lost"}
	}
	return f
}

// evicts says whether the set may go: a volatile policy may evict a key that has an expiry,
// and without eviction it goes when that ends.
func (s *Store) evicts(info map[string]string, expiry time.Duration) store.Finding {
	f := store.Finding{Subject: "eviction", Verdict: store.Bad}
	switch policy := info["maxmemory_policy"]; {
	case expiry > 0:
		f.Says = fmt.Sprintf("%s expires in %v, and with it who holds which worker", s.cfg.Key, expiry)
		f.Advice = "PERSIST " + s.cfg.Key + ", and find out who set the expiry"
	case policy == "":
		f.Verdict, f.Says, f.Advice = store.Doubtful, "maxmemory-policy is not told", "see that it is noeviction or a volatile one"
	case strings.HasPrefix(policy, "allkeys-"):
		f.Says = "maxmemory-policy " + policy + ": when memory is full, " + s.cfg.Key + " may go, and with it who holds which worker"
		f.Advice = "set maxmemory-policy noeviction or a volatile one; the key has no expiry, so those never evict it"
	default:
		f.Verdict, f.Says = store.Good, "maxmemory-policy "+policy+": "+s.cfg.Key+" is never evicted"
	}
	return f
}

// maxProbes bounds how many connections serversBehind opens.
const maxProbes = 8

// serversBehind returns to how many servers connections lead: a name may have several addresses,
// and a balancer may stand between.
func serversBehind(ctx context.Context, node *redis.Client) (int, error) {
	runs := map[string]bool{}
	for range max(min(maxProbes, node.Options().PoolSize/2), 1) { // others need some too
		conn := node.Conn()
		defer func() { _ = conn.Close() }() // all at once, so that each is another
		text, err := conn.Info(ctx, "server").Result()
		if err != nil {
			return 0, err
		}
		runs[parseInfo(text)["run_id"]] = true
	}
	return len(runs), nil
}

// replicates says who waits for what, by the record and the URL. All processes share the
// record, so one may examine it for the others.
func (s *Store) replicates(info map[string]string, r Replicas, servers int, watched bool, setting func(string) string) store.Finding {
	const forgets = "a failover may forget who holds a worker and which ids were given, and ids repeat"
	all := max(r.Recorded, r.Online)
	need := s.wanted(all)
	counts := fmt.Sprintf("%d recorded, %d attached, %d of them online; a write waits for %d", r.Recorded, r.Attached, r.Online, need)
	f := store.Finding{Subject: "replicas", Says: counts}
	switch {
	case servers > 1:
		f.Verdict, f.Says = store.Bad, fmt.Sprintf("connections to its address lead to %d servers: each is a store of its own, and ids repeat", servers)
		f.Advice = "name one primary, or Sentinels and ?master=NAME: no balancer, and no name with several addresses"
	case info["role"] == "slave":
		f.Verdict, f.Says, f.Advice = store.Bad, "it is a replica, which refuses writes", "name the primary, or Sentinels and ?master=NAME"
	case need > r.Online:
		f.Verdict, f.Says = store.Bad, counts+": no write is confirmed, so newcomers and sequences wait, and holders go on to their fence"
		f.Advice = fmt.Sprintf("start the missing ones, or lower the number: firn store replicas %d", r.Online)
		if s.cfg.Replicas > 0 {
			f.Advice = "start the missing ones, or leave out ?replicas"
		}
	case need == 0 && all > 0:
		f.Verdict, f.Says, f.Advice = store.Bad, counts+": "+forgets, "leave out ?replicas"
	case need < all:
		f.Verdict, f.Says, f.Advice = store.Doubtful, counts+": where another replica is promoted, "+forgets, "leave out ?replicas"
	case watched:
		f.Verdict, f.Says = store.Doubtful, counts+"; Sentinels watch over it that the URL does not name: they may promote another server, which nobody would notice"
		f.Advice = "name them, with ?master=NAME"
	case r.Attached > r.Online:
		f.Verdict, f.Says = store.Doubtful, counts+": where one that is not online is promoted, "+forgets
		f.Advice = "promote none before it is online: replica-priority 0 until then"
	case all == 0:
		f.Says = "none: there is nothing to fail over to"
	case setting("replica-ignore-maxmemory") == "no":
		f.Verdict, f.Says = store.Doubtful, counts+"; replica-ignore-maxmemory is no: a replica whose memory is full acknowledges what it drops, and once it is promoted, ids repeat"
		f.Advice = "set replica-ignore-maxmemory yes on all servers"
	case setting("replica-read-only") == "no":
		f.Verdict, f.Says = store.Doubtful, counts+"; replica-read-only is no: who writes to a replica may have it drop what it acknowledges"
		f.Advice = "set replica-read-only yes on all servers"
	case s.cluster != nil && setting("cluster-allow-replica-migration") == "yes":
		f.Verdict, f.Says = store.Doubtful, counts+"; the cluster may move one away, and no write is confirmed then, or one here in the place of one that is away: if that is promoted later, "+forgets
		f.Advice = "set cluster-allow-replica-migration no on all its nodes"
	}
	return f
}
