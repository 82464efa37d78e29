package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
)

// Examine implements [store.Examined]: persistence, eviction, replicas.
func (s *Store) Examine(ctx context.Context) ([]store.Finding, error) {
	return do(ctx, s, "examine", s.cfg.Key, func(ctx context.Context) ([]store.Finding, error) {
		info, err := s.info(ctx)
		if err != nil {
			return nil, err
		}
		r, err := s.recorded(ctx)
		if err != nil {
			return nil, err
		}
		return []store.Finding{s.persists(ctx, info), s.evicts(info), s.replicates(replicationOf(info), r)}, nil
	})
}

func (s *Store) persists(ctx context.Context, info map[string]string) store.Finding {
	f := store.Finding{Subject: "persistence", Advice: "set appendonly yes and appendfsync always, or use a strict pool"}
	if info["aof_enabled"] != "1" {
		f.Verdict = store.Bad
		f.Says = fmt.Sprintf("appendonly no, save %q: a restart forgets the workers taken since the last snapshot", s.setting(ctx, "save"))
		return f
	}
	sync := s.setting(ctx, "appendfsync")
	f.Says = "appendonly yes, appendfsync " + sync
	if sync == "always" {
		f.Says += ": nothing acknowledged is lost"
		f.Advice = ""
	} else {
		f.Verdict = store.Doubtful
		f.Says += ": a loss of power loses the last moments"
	}
	return f
}

// setting asks for a setting, which a server may not tell.
func (s *Store) setting(ctx context.Context, name string) string {
	if node, err := s.node(ctx); err == nil {
		if values, err := node.ConfigGet(ctx, name).Result(); err == nil {
			if value, told := values[name]; told {
				return value
			}
		}
	}
	return "not told"
}

func (s *Store) evicts(info map[string]string) store.Finding {
	f := store.Finding{Subject: "eviction"}
	policy := info["maxmemory_policy"]
	switch {
	case policy == "":
		f.Verdict, f.Says, f.Advice = store.Doubtful, "maxmemory-policy is not told", "see that it is noeviction or a volatile one"
	case strings.HasPrefix(policy, "allkeys-"):
		f.Verdict, f.Says = store.Bad, "maxmemory-policy "+policy+": when memory is full, "+s.cfg.Key+" may go, and with it who holds which worker"
		f.Advice = "set maxmemory-policy noeviction or a volatile one; the key has no expiry, so those never evict it"
	default:
		f.Says = "maxmemory-policy " + policy + ": " + s.cfg.Key + " is never evicted"
	}
	return f
}

// forgets is what a failover to a replica that need not have a write does.
const forgets = "a failover may forget who holds a worker and which ids were given, and ids repeat"

// replicates says who waits for what, as the record and the URL have it. The record
// is the same for all processes, so another's examination is as good as one's own.
func (s *Store) replicates(there replication, r record) store.Finding {
	f := store.Finding{Subject: "replicas"}
	all := max(r.n, there.online)
	need := s.wanted(record{n: all})
	attached := fmt.Sprintf("%d recorded, %d attached, %d of them online; a write waits for %d", r.n, there.attached, there.online, need)
	switch {
	case there.role == "slave":
		f.Verdict, f.Says, f.Advice = store.Bad, "it is a replica, which refuses writes", "name the primary, or Sentinels and ?master=NAME"
	case need > there.online:
		f.Verdict, f.Says = store.Bad, attached+": no write is confirmed, so newcomers and sequences wait, and holders go on to their fence"
		f.Advice = fmt.Sprintf("start the missing ones, or lower the number: firn store replicas %d", there.online)
		if s.cfg.Replicas > 0 {
			f.Advice = "start the missing ones, or leave out ?replicas"
		}
	case need == 0 && all > 0:
		f.Verdict, f.Says, f.Advice = store.Bad, attached+": "+forgets, "leave out ?replicas"
	case need < all:
		f.Verdict, f.Says, f.Advice = store.Doubtful, attached+": where another replica is promoted, "+forgets, "leave out ?replicas"
	case all == 0 && there.attached == 0:
		f.Says = "none: there is nothing to fail over to"
	default:
		f.Says = attached
	}
	return f
}
