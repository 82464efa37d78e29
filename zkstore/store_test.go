package zkstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
	"github.com/firn-id/firn/store/storetest/servers"
	"github.com/firn-id/firn/zkstore"
)

func open(t *testing.T, url string) *zkstore.Store {
	t.Helper()
	s, err := zkstore.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// raw is a client for an operator's commands.
func raw(t *testing.T, server *servers.Server) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{server.Addr()}, 5*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for e := range events { // calls before the session may fail
		if e.State == zk.StateHasSession {
			break
		}
	}
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	made, paths := 0, map[store.Store]string{}
	another := func(t *testing.T, path string) store.Store {
		s := open(t, "zookeeper://"+server.Addr()+path)
		paths[s] = path
		return s
	}
	storetest.Run(t, storetest.Factory{
		Open: func(t *testing.T) store.Store {
			made++
			return another(t, fmt.Sprintf("/test/%d", made))
		},
		Another: func(t *testing.T, s store.Store) store.Store { return another(t, paths[s]) },
		Delete: func(t *testing.T, s store.Store, key string) {
			deleteAll(t, raw(t, server), paths[s]+"/"+key) // an earlier client may still look for a restarted server
		},
		Restart: func(*testing.T, store.Store) {
			server.Kill()
			server.Restart()
		},
		Pause: func(*testing.T, store.Store) func() {
			server.Pause()
			return server.Resume
		},
	})
}

func TestALevelIsNoRegisterUntilItIsWritten(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servers.ZooKeeper(t)
	s := open(t, "zookeeper://"+server.Addr())
	write := func(key string, old store.Revision) store.Revision {
		t.Helper()
		e, err := s.CompareAndSwap(ctx, key, old, []byte("of "+key))
		if err != nil {
			t.Fatal(err)
		}
		return e.Revision
	}
	keys := func(prefix string) (keys []string) {
		t.Helper()
		list, err := s.List(ctx, prefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			keys = append(keys, e.Key)
		}
		return keys
	}
	write("a/b/c", 0)
	if _, err := s.Get(ctx, "a/b"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a level: %v", err)
	}
	if _, err := s.CompareAndSwap(ctx, "a/b", 5, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a level written over: %v", err)
	}
	first := write("a/b", 0)
	if _, err := s.CompareAndSwap(ctx, "a/b", 0, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a level created twice: %v", err)
	}
	write("a/b", first)
	if got := keys(""); !slices.Equal(got, []string{"a/b", "a/b/c"}) {
		t.Errorf("%q", got)
	}
	// Names of other programs, and ZooKeeper's own at the top, are skipped.
	operator := raw(t, server)
	for _, path := range []string{"/a/%zz", "/a/%41"} {
		if _, err := operator.Create(path, []byte("x"), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	if got := keys("a/"); !slices.Equal(got, []string{"a/b", "a/b/c"}) {
		t.Errorf("%q", got)
	}
	// An operator empties one: it is gone, and can be created again.
	if _, err := operator.Set("/a/b", nil, -1); err != nil {
		t.Fatal(err)
	}
	write("a/b", 0)
	write("zookeeper", 0)
	write("zookeeper/quota", 0)
	if got := keys("zoo"); !slices.Equal(got, []string{"zookeeper", "zookeeper/quota"}) {
		t.Errorf("%q", got)
	}
}

func TestAUsersZnodesAreTheirs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addr := servers.ZooKeeper(t).Addr()
	mine := open(t, "zookeeper://me:geheim@"+addr+"/shop")
	if _, err := mine.CompareAndSwap(ctx, "k", 0, []byte("v")); err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{"", "me:geheimer@", "you:geheim@"} {
		s := open(t, "zookeeper://"+login+addr+"/shop")
		_, get := s.Get(ctx, "k")
		_, list := s.List(ctx, "")
		_, create := s.CompareAndSwap(ctx, "other", 0, nil)
		for _, err := range []error{get, list, create} {
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "another user") || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%s: %v", login, err)
			}
		}
	}
}

func TestBadServersAndURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]struct {
		kind error
		word string
	}{
		"zookeeper://u:geheim@" + servers.Nowhere(t): {store.ErrUnavailable, "could not connect to a server"},
		"zookeeper://no..host":                       {store.ErrUnavailable, "zkstore: open \"no..host:2181\""},
		"http://h":                                   {store.ErrRefused, "begins with zookeeper://"},
		"h:2181":                                     {store.ErrRefused, `"h:2181": a URL begins with zookeeper://, as in zookeeper://h:2181`},
		"zookeeper://":                               {store.ErrRefused, "names no host"},
		"zookeeper://h/a//b":                         {store.ErrRefused, "without a name"},
		"zookeeper://h/a/":                           {store.ErrRefused, "a slash too many"},
		"zookeeper://h?colour=red":                   {store.ErrRefused, "no setting colour"},
	} {
		_, err := zkstore.Open(context.Background(), url)
		if !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.word) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, want %q", url, err, want.word)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := zkstore.Open(ctx, "zookeeper://"+servers.Silent(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent server: %v", err)
	}
	server := servers.ZooKeeper(t)
	if _, err := raw(t, server).Create("/k", []byte("dear diary"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	s := open(t, "zookeeper://"+server.Addr())
	_, get := s.Get(context.Background(), "k")
	_, list := s.List(context.Background(), "k")
	for _, err := range []error{get, list} {
		if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), `"k" was not written by Firn`) {
			t.Errorf("a foreign znode: %v", err)
		}
	}
}

func TestExamine(t *testing.T) {
	t.Parallel()
	addr := servers.ZooKeeper(t).Addr()
	for _, test := range []struct {
		others, want string
		verdict      store.Verdict
	}{
		{"", "1 of the 1 servers named answer (standalone): with three", store.Doubtful},
		{"," + servers.Nowhere(t), "1 of the 2 servers named answer (standalone): start", store.Doubtful},
		{"," + servers.ZooKeeper(t).Addr(), "(standalone, standalone): they do not belong to one ensemble", store.Bad},
		{"," + servers.ZooKeeper(t, servers.Ensemble(t)...).Addr() + "," + servers.Nowhere(t), "they do not belong to one ensemble", store.Bad},
	} {
		findings, err := open(t, "zookeeper://"+addr+test.others).Traits().Examine(context.Background())
		if err != nil || findings[0].Verdict != test.verdict || !strings.Contains(findings[0].String(), test.want) {
			t.Errorf("%s: %v, %v", test.others, findings, err)
		}
	}
}

// Only one of them leads, or the URL does not name the leader.
func TestExamineFindsTwoEnsemblesByWhatTheyMade(t *testing.T) {
	t.Parallel()
	pair := append(servers.Ensemble(t), fmt.Sprintf("server.2=127.0.0.1:%d:%d:observer", servers.FreePort(t), servers.FreePort(t)))
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "myid"), []byte("2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	leader := servers.ZooKeeper(t, pair...).Addr()
	observer := servers.ZooKeeper(t, append(pair, "dataDir="+data, "peerType=observer")...).Addr()
	other := servers.ZooKeeper(t, servers.Ensemble(t)...).Addr()
	unused := servers.ZooKeeper(t, servers.Ensemble(t)...).Addr()
	for _, addr := range []string{leader, other} {
		if _, err := open(t, "zookeeper://"+addr).CompareAndSwap(context.Background(), "firn/k", 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	for named, want := range map[string]store.Verdict{
		leader: store.Doubtful, // there are only two servers
		other:  store.Bad,
		unused: store.Bad,
	} {
		findings, err := open(t, "zookeeper://"+named+","+observer).Traits().Examine(context.Background())
		if err != nil || findings[0].Verdict != want {
			t.Errorf("%v, %v, want %v", findings, err, want)
		}
	}
}

func TestAVersionThatForgetsIsBad(t *testing.T) {
	t.Parallel()
	says := map[string]string{
		"Zookeeper version: 3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee, built on 2024-10-17 23:21 UTC\n": "is a ZooKeeper 3.9.3: ",
		"Zookeeper version: 3.9.30-0123, built on 2030-01-01 00:00 UTC\n":                                    "",
	}
	for version, want := range says {
		other := servers.Accept(t, func(c net.Conn) {
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, len("srvr"))); err != nil {
				return // the client that wanted a session gave up
			}
			if _, err := io.WriteString(c, version+"Latency min/avg/max: 0/0.0/0\nMode: follower\n"); err != nil {
				t.Error(err)
			}
		})
		findings, err := open(t, "zookeeper://"+servers.ZooKeeper(t).Addr()+","+other).Traits().Examine(context.Background())
		if err != nil || len(findings) != 1 && want == "" || want != "" && (len(findings) != 2 || findings[1].Verdict != store.Bad || !strings.Contains(findings[1].String(), want)) {
			t.Errorf("%s: %v, %v", version, findings, err)
		}
	}
}
