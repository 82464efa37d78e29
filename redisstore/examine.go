package redisstore

import (
	"context"
	"fmt"
	"strings"

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
		return []store.Finding{s.persists(ctx, info), s.evicts(info), s.replicates(info, there)}, nil
	})
}

func (s *Store) persists(ctx context.Context, info map[string]string) store.Finding {
	f := store.Finding{Subject: "persistence", Advice: "set appendonly yes and appendfsync always, or use a strict pool"}
	switch sync := s.setting(ctx, "appendfsync"); {
	case info["aof_enabled"] != "1":
		f.Verdict = store.Bad
		f.Says = fmt.Sprintf("appendonly no, save %q: a restart forgets the workers taken since the last snapshot", s.setting(ctx, "save"))
	case sync != "always":
		f.Verdict, f.Says = store.Doubtful, "appendonly yes, appendfsync "+sync+": a loss of power loses the last moments"
	default:
		f.Says, f.Advice = "appendonly yes, appendfsync always: nothing acknowledged is lost", ""
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
	switch policy := info["maxmemory_policy"]; {
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
func (s *Store) replicates(info map[string]string, r Replicas) store.Finding {
	all := max(r.Recorded, r.Online)
	need := s.wanted(all)
	counts := fmt.Sprintf("%d recorded, %d attached, %d of them online; a write waits for %d", r.Recorded, r.Attached, r.Online, need)
	f := store.Finding{Subject: "replicas", Says: counts}
	switch {
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
	case all == 0 && r.Attached == 0:
		f.Says = "none: there is nothing to fail over to"
	}
	return f
}
