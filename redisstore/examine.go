package redisstore

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// examine looks at persistence, eviction, replicas.
func (s *Store) examine(ctx context.Context) ([]store.Finding, error) {
	return backend.Do(ctx, s.calls, "examine", s.cfg.Key, func(ctx context.Context) ([]store.Finding, error) {
		node, info, err := s.info(ctx)
		if err != nil {
			return nil, err
		}
		there, err := s.count(ctx)
		if err != nil {
			return nil, err
		}
		set, hidden := settings(ctx, node)
		expiry := node.TTL(ctx, s.cfg.Key)
		servers, err := serversBehind(ctx, node)
		if err != nil {
			return nil, err
		}
		asked := answers{another: s.askNamed(ctx, node), more: s.knowMore(ctx, node, s.wanted(max(there.Recorded, there.Online)))}
		asked.watched, asked.blind = s.watched(ctx, node)
		there.CaughtUp, asked.behind = s.caughtUp(ctx, there)
		return []store.Finding{persists(info, set, hidden), s.evicts(info, expiry), s.replicates(info, there, servers, asked, set, hidden)}, nil
	})
}

// settings reads the settings that an examination needs. Those of newer versions may be missing. Hidden is the error of a
// server that does not show them, such as to an account without the privilege for CONFIG: then they are all unknown.
func settings(ctx context.Context, node *redis.Client) (set map[string]string, hidden error) {
	set = map[string]string{}
	for _, name := range []string{"save", "appendfsync", "no-appendfsync-on-rewrite", "replica-ignore-maxmemory", "replica-read-only", "cluster-allow-replica-migration"} {
		value, err := node.ConfigGet(ctx, name).Result()
		if err != nil {
			return map[string]string{"save": "unknown"}, err
		}
		maps.Copy(set, value)
	}
	return set, nil
}

const unhide = "grant the user +config|get; a server without CONFIG shows its settings elsewhere"

func persists(info, set map[string]string, hidden error) store.Finding {
	sync := set["appendfsync"]
	rewrites := info["aof_rewrite_in_progress"] == "1" || info["aof_rewrite_scheduled"] == "1" || info["aof_last_bgrewrite_status"] != "ok"
	forgetful, keep := "", "CONFIG REWRITE; its command line, and an include further down in its file, override that file: correct them too"
	if file, shown := info["config_file"]; shown && file == "" {
		// Nothing shows what its command line has.
		const both = "--appendonly yes --appendfsync always"
		forgetful = "; it has no configuration file: keep " + both + " on its command line, or its next start ignores what it wrote"
		keep = "put " + both + " on the command line of its next start: it has no configuration file"
	}
	var major, minor int
	_, unknown := fmt.Sscanf(info["redis_version"], "%d.%d", &major, &minor) // a proxy may hide it
	return backend.Judge("persistence").
		When(info["aof_enabled"] != "1", store.Bad, fmt.Sprintf("appendonly no, save %q: a restart forgets the workers acquired since the last snapshot", set["save"]),
			// A restart with that setting would lose everything: it loads no snapshot if that file is missing. And
			// CONFIG SET replaces the file of a server that had the setting before, and lost it by a restart.
			"if it had appendonly yes before it started, stop it, and start it with that: it reads its file again. "+
				"Otherwise do this while it runs, since a restart with that setting would begin empty. "+
				"1. CONFIG SET appendonly yes. 2. CONFIG SET appendfsync always. 3. Wait until INFO persistence shows aof_rewrite_in_progress:0. "+
				"4. "+keep+". Or use a strict pool").
		When(unknown == nil && (major < 6 || major == 6 && minor < 2), store.Bad, "Redis "+info["redis_version"]+": it goes on when its file cannot be synced, so a loss of power loses what it acknowledged since", "update to Redis 6.2 or later").
		// INFO shows a rewrite next to a complete file in the same way.
		When(rewrites, store.Doubtful, "appendonly yes, and its file is being rewritten, or the rewrite failed: until the first rewrite since it was turned on, or since the server was a replica, a crash falls back to an older file or to no data",
			"wait until INFO says aof_rewrite_in_progress:0, or see its log").
		When(hidden != nil, store.Doubtful, fmt.Sprintf("appendonly yes; whether a loss of power loses the last moments is unknown: %v", hidden), unhide).
		When(sync != "always", store.Doubtful, "appendonly yes, appendfsync "+sync+": a loss of power loses the last moments", "set appendfsync always, or use a strict pool").
		When(set["no-appendfsync-on-rewrite"] == "yes", store.Doubtful,
			"appendonly yes, appendfsync always, no-appendfsync-on-rewrite yes: a loss of power loses what was written while a snapshot or the file was rewritten", "set no-appendfsync-on-rewrite no").
		Else("appendonly yes, appendfsync always: nothing acknowledged is lost" + forgetful)
}

// evicts judges whether the server may remove the set: a key with an expiry is removed when it expires,
// and a volatile policy may evict it before.
func (s *Store) evicts(info map[string]string, expires *redis.DurationCmd) store.Finding {
	policy, key, expiry := info["maxmemory_policy"], s.cfg.Key, expires.Val()
	return backend.Judge("eviction").
		When(expiry > 0, store.Bad, fmt.Sprintf("%s expires in %v, and the record of who holds which worker with it", key, expiry), "PERSIST "+key+", and find out who set the expiry").
		When(policy == "", store.Doubtful, "INFO does not show maxmemory-policy", "make sure that it is noeviction or a volatile one").
		When(strings.HasPrefix(policy, "allkeys-"), store.Bad, "maxmemory-policy "+policy+": when memory is full, "+key+" may be evicted, and the record of who holds which worker with it",
			"set maxmemory-policy noeviction or a volatile one; the key has no expiry, so those never evict it").
		When(expires.Err() != nil, store.Doubtful, fmt.Sprintf("whether %s expires is unknown: %v", key, expires.Err()), "grant the user +ttl").
		Else("maxmemory-policy " + policy + ": " + key + " is never evicted")
}

// maxProbes bounds how many connections serversBehind opens.
const maxProbes = 8

// serversBehind returns how many servers connections lead to, through a name or a balancer.
func serversBehind(ctx context.Context, node *redis.Client) (int, error) {
	runs := map[string]bool{}
	for range max(min(maxProbes, node.Options().PoolSize/2), 1) { // leave some for other callers
		conn := node.Conn()
		defer func() { _ = conn.Close() }() // keep all open, so that each is a new connection
		text, err := conn.Info(ctx, "server").Result()
		if err != nil {
			return 0, err
		}
		runs[parseInfo(text)["run_id"]] = true
	}
	return len(runs), nil
}

// Answers hold what Sentinels, the cluster and the replicas say about the server.
type answers struct {
	another error  // one of them names another primary
	more    string // that they know more replicas than a write waits for
	behind  error  // why it is unknown which replicas have caught up
	watched bool   // Sentinels that the URL does not name watch it
	blind   error  // why it is unknown whether they do
}

// replicates reports which writers wait for how many replicas, by the record and the URL.
func (s *Store) replicates(info map[string]string, r Replicas, servers int, asked answers, set map[string]string, hidden error) store.Finding {
	const forgets = "a failover may lose the record of who holds a worker and which ids were issued, and ids repeat"
	all := max(r.Recorded, r.Online)
	need := s.wanted(all)
	counts := fmt.Sprintf("%d recorded, %d attached, %d of them online, %d caught up; a write waits for %d", r.Recorded, r.Attached, r.Online, r.CaughtUp, need)
	never := "replica-priority 0"
	if s.cluster != nil { // priorities are for Sentinels
		never = "cluster-replica-no-failover yes"
	}
	fewer := fmt.Sprintf("start the missing ones, or lower the number: firn store replicas %d", r.Online)
	if s.sentinels != nil {
		fewer += " (Sentinels must forget the missing ones first: SENTINEL RESET NAME on each)"
	}
	if s.cfg.Replicas > 0 {
		fewer = "start the missing ones, or leave out ?replicas"
	}
	j := backend.Judge("replicas").
		When(servers > 1, store.Bad, fmt.Sprintf("connections to its address lead to %d servers: each is a separate store, and ids repeat", servers),
			"name one primary, or Sentinels and ?master=NAME: no balancer, and no name with several addresses").
		When(asked.another != nil, store.Bad, fmt.Sprintf("the servers in the URL do not agree on the primary: %v", asked.another),
			"name Sentinels or servers of one setup only: each process asks whichever answers first, so ids repeat; during a failover, check again later").
		When(info["role"] == "slave", store.Bad, "it is a replica, which refuses writes", "name the primary, or Sentinels and ?master=NAME").
		When(r.promoted && need > r.Online, store.Bad, counts+": it was promoted while no replicas were recorded, and its former primary may be alive: no write is confirmed",
			fmt.Sprintf("make sure that the former primary has ended, or is a replica, and then run firn store replicas %d", r.Online)).
		When(need > r.Online, store.Bad, counts+": no write is confirmed, so new processes and sequences wait, and holders continue until their fence", fewer).
		When(need == 0 && all > 0, store.Bad, counts+": "+forgets, "leave out ?replicas").
		When(need < all, store.Doubtful, counts+": if another replica is promoted, "+forgets, "leave out ?replicas").
		When(asked.watched, store.Doubtful, counts+"; Sentinels that the URL does not name monitor it: they may promote another server unnoticed", "name them, with ?master=NAME").
		When(asked.behind != nil, store.Doubtful, fmt.Sprintf("%s: cannot find out which have caught up: %v", counts, asked.behind), "see what the server refuses: a replica that is behind must not be promoted").
		When(r.Attached > r.CaughtUp, store.Doubtful, counts+": if one that has not caught up is promoted, "+forgets, "promote none before it has caught up, as firn store replicas shows: "+never+" until then").
		When(asked.more != "", store.Doubtful, counts+": "+asked.more, "have all replicas online before Firn writes again, or have those that left for good forgotten")
	j.When(asked.blind != nil, store.Doubtful, fmt.Sprintf("%s; whether Sentinels that the URL does not name monitor it is unknown: %v", counts, asked.blind), "grant the user +pubsub|numsub")
	if all == 0 {
		return j.Else("no replicas: no failover can lose writes")
	}
	return j.
		When(hidden != nil, store.Doubtful, fmt.Sprintf("%s; whether replicas may drop what they acknowledged is unknown: %v", counts, hidden), unhide).
		When(set["replica-ignore-maxmemory"] == "no", store.Doubtful, counts+"; replica-ignore-maxmemory is no: a replica whose memory is full acknowledges what it drops, and once it is promoted, ids repeat",
			"set replica-ignore-maxmemory yes on all servers").
		When(set["replica-read-only"] == "no", store.Doubtful, counts+"; replica-read-only is no: a program that writes to a replica may make it drop what it acknowledged", "set replica-read-only yes on all servers").
		When(s.cluster != nil && set["cluster-allow-replica-migration"] == "yes", store.Doubtful,
			counts+"; the cluster may move a replica away, and then no write is confirmed, or move one here to replace a missing one: if the missing one is promoted later, "+forgets,
			"set cluster-allow-replica-migration no on all its nodes").
		Else(counts)
}
