package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
)

// Settle implements [store.Settler]: it waits until the replicas that
// [Config.Replicas] asks for have all that the primary had written when this was
// asked. Without replicas it does nothing.
func (s *Store) Settle(ctx context.Context) error {
	if s.cfg.Replicas <= 0 {
		return nil
	}
	have, err := await(ctx, s, func() (int64, error) {
		node, err := s.node(ctx)
		if err != nil {
			return 0, err
		}
		// WAIT waits for what the server had written when this connection's last
		// command ended, whoever wrote it; so a command comes before it.
		pipe := node.Pipeline()
		pipe.Exists(ctx, s.cfg.Key)
		wait := pipe.Do(ctx, "wait", s.cfg.Replicas, s.cfg.SettleTimeout.Milliseconds())
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, err
		}
		return wait.Int64()
	})
	if err != nil {
		return s.wrap("wait for replicas of", s.cfg.Key, err)
	}
	if have < int64(s.cfg.Replicas) {
		return fmt.Errorf("redisstore: %w: %d of the %d replicas asked for confirmed within %v: start them, or ask for fewer with ?replicas=N",
			store.ErrUnavailable, have, s.cfg.Replicas, s.cfg.SettleTimeout)
	}
	return nil
}

// node returns a client of the one server that has the set.
func (s *Store) node(ctx context.Context) (*redis.Client, error) {
	switch c := s.client.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, s.cfg.Key)
	default:
		return nil, fmt.Errorf("%w: a client of type %T", store.ErrRefused, s.client)
	}
}

type replication struct {
	role     string
	replicas int
}

func (s *Store) replication(ctx context.Context) (replication, error) {
	info, err := s.info(ctx, "replication")
	if err != nil {
		return replication{}, s.wrap("open", s.cfg.Key, err)
	}
	n, err := strconv.Atoi(info["connected_slaves"])
	if err != nil {
		n = 0 // a server that does not say has none to wait for
	}
	return replication{role: info["role"], replicas: n}, nil
}

// info asks for a section of INFO, as a map.
func (s *Store) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := await(ctx, s, func() (string, error) {
		node, err := s.node(ctx)
		if err != nil {
			return "", err
		}
		return node.Info(ctx, section).Result()
	})
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// setting asks for a setting; ok is false where the server does not tell.
func (s *Store) setting(ctx context.Context, name string) (value string, ok bool) {
	values, err := await(ctx, s, func() (map[string]string, error) {
		node, err := s.node(ctx)
		if err != nil {
			return nil, err
		}
		return node.ConfigGet(ctx, name).Result()
	})
	value, ok = values[name]
	return value, ok && err == nil
}

// Examine implements [store.Examined]: persistence, eviction, replicas.
func (s *Store) Examine(ctx context.Context) ([]store.Finding, error) {
	there, err := s.replication(ctx)
	if err != nil {
		return nil, err
	}
	persistence, err := s.info(ctx, "persistence")
	if err != nil {
		return nil, s.wrap("examine", s.cfg.Key, err)
	}
	return []store.Finding{s.persists(ctx, persistence), s.evicts(ctx), s.replicates(there)}, nil
}

func (s *Store) persists(ctx context.Context, info map[string]string) store.Finding {
	f := store.Finding{Subject: "persistence"}
	if info["aof_enabled"] == "1" {
		switch sync, ok := s.setting(ctx, "appendfsync"); {
		case !ok:
			f.Verdict, f.Says, f.Advice = store.Doubtful, "appendonly yes; appendfsync is not told", "see that it is always, or use a strict pool"
		case sync == "always":
			f.Says = "appendonly yes, appendfsync always: nothing acknowledged is lost"
		default:
			f.Verdict, f.Says = store.Doubtful, "appendonly yes, appendfsync "+sync+": a loss of power loses the last moments"
			f.Advice = "set appendfsync always, or use a strict pool"
		}
		return f
	}
	save, ok := s.setting(ctx, "save")
	switch {
	case !ok:
		f.Verdict, f.Says, f.Advice = store.Doubtful, "appendonly no; whether snapshots are saved is not told", "set appendonly yes"
	case save == "":
		f.Verdict, f.Says = store.Bad, "appendonly no, no snapshots: a restart forgets which workers are held"
		f.Advice = "set appendonly yes and appendfsync always, or use a strict pool"
	default:
		f.Verdict, f.Says = store.Bad, "appendonly no, snapshots ("+save+"): a restart forgets the workers taken since the last one"
		f.Advice = "set appendonly yes and appendfsync always, or use a strict pool"
	}
	return f
}

func (s *Store) evicts(ctx context.Context) store.Finding {
	f := store.Finding{Subject: "eviction"}
	policy, ok := s.setting(ctx, "maxmemory-policy")
	switch {
	case !ok:
		f.Verdict, f.Says, f.Advice = store.Doubtful, "maxmemory-policy is not told", "see that it is noeviction or a volatile one"
	case strings.HasPrefix(policy, "allkeys-"):
		f.Verdict, f.Says = store.Bad, "maxmemory-policy "+policy+": when memory is full, "+s.cfg.Key+" may go, and with it who holds which worker"
		f.Advice = "set noeviction or a volatile policy, as the key has no expiry"
	default:
		f.Says = "maxmemory-policy " + policy + ": " + s.cfg.Key + " is never evicted"
	}
	return f
}

func (s *Store) replicates(there replication) store.Finding {
	f := store.Finding{Subject: "replicas"}
	switch {
	case there.role == "slave":
		f.Verdict, f.Says, f.Advice = store.Bad, "it is a replica, which refuses writes", "name the primary, or Sentinels and ?master=NAME"
	case there.replicas == 0:
		f.Says = "none: there is nothing to fail over to"
	case s.cfg.Replicas <= 0:
		f.Verdict = store.Doubtful
		f.Says = fmt.Sprintf("%d, and a claim waits for none: a failover may forget who took a worker", there.replicas)
		f.Advice = "open the store while they are connected, or with ?replicas=N"
	default:
		f.Says = fmt.Sprintf("%d; a claim waits for %d of them (WAIT)", there.replicas, s.cfg.Replicas)
		if there.replicas < s.cfg.Replicas {
			f.Verdict, f.Advice = store.Bad, "start the missing ones, or ask for fewer with ?replicas=N: no worker can be claimed"
		}
	}
	return f
}
