package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/etcdstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
	"github.com/firn-id/firn/store/storetest/servers"
)

func open(t *testing.T, url string) *etcdstore.Store {
	t.Helper()
	s, err := etcdstore.Open(context.Background(), url)
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
func raw(t *testing.T, server *servers.Server, user, password string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Username: user, Password: password, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	operator := raw(t, server, "", "")
	made, prefixes := 0, map[store.Store]string{}
	another := func(t *testing.T, prefix string) store.Store {
		s := open(t, "etcd://"+server.Addr()+"/"+prefix)
		prefixes[s] = prefix
		return s
	}
	storetest.Run(t, storetest.Factory{
		Open: func(t *testing.T) store.Store {
			made++
			return another(t, fmt.Sprint("test/", made))
		},
		Another: func(t *testing.T, s store.Store) store.Store { return another(t, prefixes[s]) },
		Delete: func(t *testing.T, s store.Store, key string) {
			answer, err := operator.Delete(context.Background(), prefixes[s]+"/"+key)
			if err != nil || answer.Deleted != 1 {
				t.Fatalf("deleted %v, %v", answer, err)
			}
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

func TestWithoutAPrefixTheStoreIsAllOfEtcd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := open(t, "etcd://"+servers.Etcd(t).Addr())
	if _, err := s.CompareAndSwap(ctx, "firn/k", 0, []byte("v")); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"", "firn/", "firn/k"} {
		if list, err := s.List(ctx, prefix); err != nil || len(list) != 1 || list[0].Key != "firn/k" {
			t.Errorf("list %q: %v, %v", prefix, list, err)
		}
	}
}

func try(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	s, err := etcdstore.Open(ctx, url)
	if err != nil {
		return err
	}
	_, err = s.CompareAndSwap(ctx, "k", 0, []byte("v"))
	return errors.Join(err, s.Close())
}

// expect wants an error of a kind that contains all words and no password.
func expect(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %q does not say %q", what, err, word)
		}
	}
	if strings.Contains(err.Error(), "geheim") {
		t.Errorf("%s: %q has the password", what, err)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestUsersAndPrivileges(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servers.Etcd(t)
	url := func(login string) string { return "etcd://" + login + server.Addr() + "/shop" }
	c := raw(t, server, "", "")
	must[*clientv3.AuthRoleAddResponse](t)(c.RoleAdd(ctx, "root"))
	must[*clientv3.AuthRoleAddResponse](t)(c.RoleAdd(ctx, "shop"))
	must[*clientv3.AuthRoleGrantPermissionResponse](t)(c.RoleGrantPermission(ctx, "shop", "shop/", "shop0", clientv3.PermissionType(clientv3.PermReadWrite)))
	must[*clientv3.AuthRoleAddResponse](t)(c.RoleAdd(ctx, "reader"))
	must[*clientv3.AuthRoleGrantPermissionResponse](t)(c.RoleGrantPermission(ctx, "reader", "shop/", "shop0", clientv3.PermissionType(clientv3.PermRead)))
	for user, role := range map[string]string{"root": "root", "shop": "shop", "reader": "reader"} {
		must[*clientv3.AuthUserAddResponse](t)(c.UserAdd(ctx, user, "geheim"))
		must[*clientv3.AuthUserGrantRoleResponse](t)(c.UserGrantRole(ctx, user, role))
	}
	must[*clientv3.AuthEnableResponse](t)(c.AuthEnable(ctx))
	if err := try(url("shop:geheim@")); err != nil {
		t.Errorf("a user with what is needed: %v", err)
	}
	expect(t, "no user", try(url("")), store.ErrRefused, "requires a user")
	expect(t, "a wrong password", try(url("shop:geheimer@")), store.ErrRefused, "check user and password")
	expect(t, "a reader", try(url("reader:geheim@")), store.ErrRefused, "grant")
	expect(t, "another prefix", try("etcd://shop:geheim@"+server.Addr()+"/other"), store.ErrRefused, "grant")
}

// requireUser makes a server answer only the user root, whose password is geheim.
func requireUser(t *testing.T, server *servers.Server) {
	t.Helper()
	ctx, c := t.Context(), raw(t, server, "", "")
	must[*clientv3.AuthRoleAddResponse](t)(c.RoleAdd(ctx, "root"))
	must[*clientv3.AuthUserAddResponse](t)(c.UserAdd(ctx, "root", "geheim"))
	must[*clientv3.AuthUserGrantRoleResponse](t)(c.UserGrantRole(ctx, "root", "root"))
	must[*clientv3.AuthEnableResponse](t)(c.AuthEnable(ctx))
}

// The tokens of an etcd end with it, and 3.4 refuses a login that shows one.
func TestAUserLogsInAgainOnceEtcdWasRestarted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := servers.Etcd(t)
	requireUser(t, server)
	s := open(t, "etcd://root:geheim@"+server.Addr())
	e, err := s.CompareAndSwap(ctx, "k", 0, []byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	root := raw(t, server, "root", "geheim")
	must[*clientv3.DefragmentResponse](t)(root.Defragment(ctx, server.Addr())) // otherwise its log would bring the latest logins back
	server.Kill()
	server.Restart()
	var calls sync.WaitGroup
	for range 8 { // one login is for all
		calls.Go(func() {
			if found, err := s.Get(ctx, "k"); err != nil || found.Revision != e.Revision {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
	calls.Wait()
	if _, err := s.CompareAndSwap(ctx, "k", e.Revision, []byte("after")); err != nil {
		t.Error(err)
	}
}

func TestBadServersAreNamedWithAWayOut(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	expect(t, "no server", try("etcd://u:geheim@"+servers.Nowhere(t)), store.ErrUnavailable, "connection refused")
	expect(t, "no server, no user", try("etcd://"+servers.Nowhere(t)), store.ErrUnavailable, "connection refused")
	expect(t, "a server of something else", try("etcd://"+servers.Redis(t).Addr()), store.ErrUnavailable)
	expect(t, "TLS to a server without", try("etcd://"+server.Addr()+"?tls=true"), store.ErrUnavailable, "leave out tls=true")
	if _, err := raw(t, server, "", "").Put(context.Background(), "diary/k", "dear diary"); err != nil {
		t.Fatal(err)
	}
	s := open(t, "etcd://"+server.Addr()+"/diary")
	_, err := s.Get(context.Background(), "k")
	expect(t, "a foreign value", err, store.ErrRefused, `"diary/k" was not written by Firn`)
	_, err = s.List(context.Background(), "")
	expect(t, "a foreign value listed", err, store.ErrRefused, "another prefix")
	if _, err := s.CompareAndSwap(context.Background(), "k", 0, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a foreign value is written over: %v", err)
	}
	for url, word := range map[string]string{
		"http://h":             "begins with etcd://",
		"h:2379":               `"h:2379": a URL begins with etcd://, as in etcd://h:2379`,
		"etcd://":              "names no host",
		"etcd://h?tls=perhaps": "neither true nor false",
		"etcd://h?tls_ca=x":    "tls=true",
		"etcd://h?colour=red":  "no setting colour",
		"etcd://h/a%00b":       "unprintable",
		"etcd://h/shop/":       "a slash too many",
	} {
		expect(t, url, try(url), store.ErrRefused, word)
	}
}

func TestAServerWithoutSpaceRefuses(t *testing.T) {
	t.Parallel()
	s := open(t, "etcd://"+servers.Etcd(t, "--quota-backend-bytes", "200000").Addr())
	// etcd updates its size at each commit to its file, every tenth of a second, so a fast machine
	// writes far more than the quota before it is refused.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	for i := 0; err == nil && ctx.Err() == nil; i++ {
		_, err = s.CompareAndSwap(ctx, fmt.Sprint("k", i), 0, make([]byte, store.MaxValueBytes))
	}
	expect(t, "a full server", err, store.ErrUnavailable, "quota")
	findings, err := s.Traits().Examine(context.Background())
	if err != nil || len(findings) != 2 || findings[1].Verdict != store.Bad || !strings.Contains(findings[1].Says, "NOSPACE") {
		t.Errorf("%v, %v", findings, err)
	}
}

func TestExamineReportsASingleMember(t *testing.T) {
	t.Parallel()
	findings, err := open(t, "etcd://"+servers.Etcd(t).Addr()).Traits().Examine(context.Background())
	if err != nil || len(findings) != 2 || findings[0].Verdict != store.Doubtful || findings[1].Verdict != store.Good ||
		!strings.Contains(findings[0].String(), "1 of 1 members answer") {
		t.Errorf("%v, %v", findings, err)
	}
}

func TestALifeIsATermOfACluster(t *testing.T) {
	t.Parallel()
	life := func(server *servers.Server, key string) string {
		t.Helper()
		e, err := open(t, "etcd://"+server.Addr()).CompareAndSwap(context.Background(), key, 0, nil)
		if err != nil || e.Life == "" {
			t.Fatalf("life %q, %v", e.Life, err)
		}
		return e.Life
	}
	first := servers.Etcd(t)
	before := life(first, "a")
	if again := life(first, "b"); again != before {
		t.Errorf("two writes in a row are of the lives %q and %q", before, again)
	}
	if other := life(servers.Etcd(t, "--initial-cluster-token=other"), "a"); other == before {
		t.Errorf("two clusters have the life %q", other)
	}
	first.Kill()
	if err := os.CopyFS(first.Path("copy"), os.DirFS(first.Path("data"))); err != nil {
		t.Fatal(err)
	}
	first.Restart()
	life(first, "c")
	first.Kill()
	if err := os.RemoveAll(first.Path("data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(first.Path("copy"), first.Path("data")); err != nil {
		t.Fatal(err)
	}
	first.Restart()
	if restored := life(first, "c"); restored == before {
		t.Errorf("an older copy that was put back is in the life %q, as it was before", restored)
	}
}

// A firewall forgets a connection. By gRPC's defaults it would be noticed after a quarter of an hour.
func TestASilentConnectionIsReplacedBeforeNewcomersStopWaiting(t *testing.T) {
	t.Parallel()
	between := servers.NewProxy(t, servers.Etcd(t).Addr(), nil)
	s := open(t, "etcd://"+between.Addr())
	if _, err := s.CompareAndSwap(context.Background(), "k", 0, nil); err != nil {
		t.Fatal(err)
	}
	between.Silence()
	for began := time.Now(); ; {
		look, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := s.Get(look, "k")
		cancel()
		took := time.Since(began)
		if err == nil {
			t.Logf("it was replaced after %v", took)
			return
		}
		if took > 12*time.Second { // see package lease
			t.Fatalf("after %v: %v", took, err)
		}
	}
}
