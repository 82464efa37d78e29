package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
	"github.com/firn-id/firn/store/storetest/servers"
)

func open(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, s)
	return s
}

func closeLater(t testing.TB, s *redisstore.Store) {
	t.Helper()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// raw is a client for an operator's commands.
func raw(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// factory makes stores at a URL without settings, each under its own key.
func factory(url string, operator redis.Cmdable, all ...*servers.Server) storetest.Factory {
	var (
		mu   sync.Mutex
		made int
		keys = map[store.Store]string{}
	)
	another := func(t *testing.T, key string) store.Store {
		s, err := redisstore.OpenPatient(context.Background(), url+"?key="+key)
		if err != nil {
			t.Fatal(err)
		}
		closeLater(t, s)
		mu.Lock()
		defer mu.Unlock()
		keys[s] = key
		return s
	}
	return storetest.Factory{
		Open: func(t *testing.T) store.Store {
			made++
			return another(t, fmt.Sprint("set", made))
		},
		Another: func(t *testing.T, s store.Store) store.Store { return another(t, keys[s]) },
		Delete: func(t *testing.T, s store.Store, key string) {
			n, err := operator.ZRemRangeByLex(context.Background(), keys[s], "["+key+"\x00", "("+key+"\x01").Result()
			if err != nil || n != 1 {
				t.Fatalf("deleted %d registers %q, %v", n, key, err)
			}
		},
		Restart: func(*testing.T, store.Store) {
			for _, server := range all {
				server.Kill()
			}
			for _, server := range all {
				server.Restart()
			}
		},
		Pause: func(*testing.T, store.Store) func() {
			for _, server := range all {
				server.Pause()
			}
			return func() {
				for _, server := range all {
					server.Resume()
				}
			}
		},
	}
}

func TestConformanceOnOneServer(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	operator := redis.NewClient(&redis.Options{Addr: server.Addr(), DB: 3})
	t.Cleanup(func() { operator.Close() })
	storetest.Run(t, factory("redis://"+server.Addr()+"/3", operator, server))
}

func TestConformanceWithReplicas(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 2; n++ {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			p, replicas := withReplicas(t, n)
			storetest.Run(t, factory("redis://"+p.Addr(), raw(t, p.Addr()), append(replicas, p)...))
		})
	}
}

// cluster starts a cluster of two servers, with half of the keys each.
func cluster(t *testing.T) (addrs [2]string, all []*servers.Server) {
	t.Helper()
	ctx := context.Background()
	for i := range addrs {
		s := servers.Redis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "15000") // longer than any pause of a busy machine
		addrs[i] = s.Addr()
		all = append(all, s)
		c := raw(t, addrs[i])
		if err := c.ClusterAddSlotsRange(ctx, i*8192, i*8192+8191).Err(); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			_, port, _ := strings.Cut(addrs[0], ":")
			if err := c.ClusterMeet(ctx, "127.0.0.1", port).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	agreed(t, 2, addrs[:]...)
	return addrs, all
}

// agreed waits until all servers of a cluster of this size serve. A restarted server does so after two
// seconds, and another one later.
func agreed(t *testing.T, nodes int, addrs ...string) {
	t.Helper()
	for _, addr := range addrs {
		c := raw(t, addr)
		await(t, "the cluster to agree", func() bool {
			info, err := c.ClusterInfo(context.Background()).Result()
			return err == nil && contains(info, "cluster_state:ok") && contains(info, "cluster_known_nodes:"+strconv.Itoa(nodes))
		})
	}
}

func TestConformanceOnACluster(t *testing.T) {
	t.Parallel()
	addrs, all := cluster(t)
	operator := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs[:]})
	t.Cleanup(func() { operator.Close() })
	f := factory("redis://"+addrs[0]+","+addrs[1], operator, all...)
	restart := f.Restart
	f.Restart = func(t *testing.T, s store.Store) {
		restart(t, s)
		agreed(t, 2, addrs[:]...)
	}
	storetest.Run(t, f)
	s := open(t, "redis://"+addrs[1]+"?cluster=true&key=alone")
	if _, err := s.CompareAndSwap(context.Background(), "k", 0, nil); err != nil {
		t.Errorf("one host of a cluster: %v", err)
	}
	// It would write while its key is being moved, and create a set although another server has it.
	for _, addr := range addrs {
		_, err := redisstore.Open(context.Background(), "redis://"+addr)
		expect(t, "a client of a single server in a cluster", err, store.ErrRefused, "?cluster=true")
	}
}

func TestAWriteRepeatedOnTheWayIsOneWrite(t *testing.T) {
	t.Parallel()
	// The same command a second time, as a client or a proxy might send it.
	server := servers.Redis(t)
	ctx := context.Background()
	s := open(t, "redis://"+server.Addr())
	written, err := s.CompareAndSwap(ctx, "k", 0, []byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	revision := written.Revision
	operator := raw(t, server.Addr())
	again, err := redisstore.Script.Run(ctx, operator, []string{"firn"}, 0, 0, "-", "single", "k", "", fmt.Sprintf("%016x", uint64(revision)), "v").Slice()
	if err != nil || len(again) != 8 {
		t.Errorf("repeated: %v, %v", again, err)
	}
	if n, err := operator.ZCard(ctx, "firn").Result(); err != nil || n != 1 {
		t.Errorf("%d registers, %v", n, err)
	}
}

func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Each connection that a network has silently forgotten costs a holder one look, and newcomers wait
// for few of these.
func TestAHolderIsHeardAfterFewLooksWhenAllConnectionsFallSilent(t *testing.T) {
	t.Parallel()
	proxy := servers.NewProxy(t, servers.Redis(t).Addr(), nil)
	storetest.FallSilent(t, open(t, "redis://"+proxy.Addr()), proxy.Silence)
}
