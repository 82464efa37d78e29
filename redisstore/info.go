package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
)

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

// info asks the server of the set for INFO, as a map.
func (s *Store) info(ctx context.Context) (map[string]string, error) {
	text, err := await(ctx, s, func() (string, error) {
		node, err := s.node(ctx)
		if err != nil {
			return "", err
		}
		return node.Info(ctx).Result()
	})
	return parseInfo(text), err
}

func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// replication is what a server says of its replicas.
type replication struct {
	role, id string
	attached int
	// online counts the replicas that have acknowledged something since they were
	// attached. Others only load, and may for long, or are programs that read the
	// stream and never acknowledge (redis-cli --replica). The scripts count likewise.
	online int
}

func replicationOf(info map[string]string) replication {
	r := replication{role: info["role"], id: info["master_replid"]}
	for name, value := range info {
		number, ok := strings.CutPrefix(name, "slave")
		if _, err := strconv.Atoi(number); !ok || err != nil {
			continue
		}
		r.attached++
		if strings.Contains(value, "state=online") && !strings.Contains(value, "offset=0,") {
			r.online++
		}
	}
	return r
}
