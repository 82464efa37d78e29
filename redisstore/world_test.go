package redisstore_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// primary starts a server that sends a replica its data without delay.
func primary(t testing.TB, args ...string) *servers.Server {
	t.Helper()
	return servers.Redis(t, append([]string{"--repl-diskless-sync-delay", "0"}, args...)...)
}

// withReplicas starts a primary with n replicas that are online.
func withReplicas(t testing.TB, n int) (*servers.Server, []*servers.Server) {
	t.Helper()
	p := primary(t)
	var replicas []*servers.Server
	for range n {
		replicas = append(replicas, servers.Replica(t, p.Addr()))
	}
	online(t, p.Addr(), n)
	return p, replicas
}

// online waits until a primary has n replicas that have acknowledged data.
func online(t testing.TB, addr string, n int) {
	t.Helper()
	c := raw(t, addr)
	await(t, strconv.Itoa(n)+" replicas", func() bool {
		lines := replicaLines(c)
		return strings.Count(lines, "state=online") == n && !contains(lines, "offset=0,")
	})
}

func replicaLines(c *redis.Client) (lines string) {
	info, err := c.Info(context.Background(), "replication").Result()
	if err != nil {
		return "" // it may be starting
	}
	for line := range strings.Lines(info) {
		if strings.HasPrefix(line, "slave") && contains(line, "state=") {
			lines += line
		}
	}
	return lines
}

// write overwrites a key of its own, whatever its value, and returns the life.
func write(s *redisstore.Store, key string) (life string, err error) {
	ctx := context.Background()
	e, err := s.Get(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	e, err = s.CompareAndSwap(ctx, key, e.Revision, []byte("v"))
	return e.Life, err
}

// confirmed expects a confirmed write.
func confirmed(t testing.TB, s *redisstore.Store, what string) (life string) {
	t.Helper()
	life, err := write(s, what)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return life
}

// unconfirmed expects a write that is applied but not confirmed, with an error that contains words.
func unconfirmed(t testing.TB, s *redisstore.Store, what string, words ...string) {
	t.Helper()
	_, err := write(s, what)
	if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) {
		t.Errorf("%s: %v, want it to be unavailable and left open", what, err)
		return
	}
	for _, word := range append(words, "not confirmed") {
		if !contains(err.Error(), word) {
			t.Errorf("%s: %q does not say %q", what, err, word)
		}
	}
}

// settles waits until writes are confirmed.
func settles(t testing.TB, s *redisstore.Store, what string) {
	t.Helper()
	var last error
	await(t, what+" to be confirmed", func() bool {
		_, last = write(s, "settles")
		return last == nil || errors.Is(last, store.ErrRefused) && !contains(last.Error(), "it is a replica")
	})
	if last != nil {
		t.Errorf("%s: %v", what, last)
	}
}

// recorded returns the members that record the replicas.
func recorded(t testing.TB, addr string) []string {
	t.Helper()
	list, err := raw(t, addr).ZRangeArgs(context.Background(), redis.ZRangeArgs{Key: "firn", Start: "-", Stop: "[ ", ByLex: true}).Result()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func verdict(t testing.TB, s *redisstore.Store) store.Finding {
	t.Helper()
	findings, err := s.Traits().Examine(context.Background())
	if err != nil || len(findings) != 3 || findings[2].Subject != "replicas" {
		t.Fatalf("%v, %v", findings, err)
	}
	f := findings[2]
	if (f.Verdict == store.Good) != (f.Advice == "") {
		t.Errorf("%v is %v", f, f.Verdict)
	}
	return f
}
