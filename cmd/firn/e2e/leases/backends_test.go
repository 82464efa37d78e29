package leases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A backend is a real store, with operations that an operator or an accident may cause, and that its
// users do not notice at once.
type backend struct {
	name  string
	url   string
	few   string // suffix that limits the URL to few connections
	clock bool   // the store has a clock

	// kill ends the server, restart starts it again; pause stops it from answering, resume resumes
	// it. Nil without a server.
	kill, restart, pause, resume func()

	// wipe empties the store, remove removes one key, restore puts earlier content back.
	wipe    func(t *testing.T)
	remove  func(t *testing.T, key string)
	restore func(t *testing.T, entries []store.Entry)
}

var makers = []struct {
	name string
	make func(t testing.TB) *backend
}{
	{"SQLite", onSQLite}, {"Redis", onRedis}, {"MariaDB", onMariaDB}, {"PostgreSQL", onPostgres}, {"etcd", onEtcd}, {"ZooKeeper", onZooKeeper},
}

func (b *backend) serve(s *servers.Server) {
	b.kill, b.restart, b.pause, b.resume = s.Kill, s.Restart, s.Pause, s.Resume
}

// open returns a handle of its own, like a separate process.
func (b *backend) open(t *testing.T) store.Store {
	t.Helper()
	s, err := storeurl.Open(context.Background(), b.url)
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

// dump returns the whole content of the store.
func (b *backend) dump(t *testing.T) []store.Entry {
	t.Helper()
	list, err := b.open(t).List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// stored encodes an entry in the format of Redis, etcd and ZooKeeper.
func stored(e store.Entry) string { return fmt.Sprintf("%016x\n%s", uint64(e.Revision), e.Value) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func onSQL(b *backend, db *sql.DB, placeholders string) {
	exec := func(t *testing.T, statement string, args ...any) {
		t.Helper()
		_, err := db.Exec(statement, args...)
		check(t, err)
	}
	one := "?"
	if placeholders == "$1, $2, $3" {
		one = "$1"
	}
	b.wipe = func(t *testing.T) { exec(t, "DROP TABLE firn_registers") }
	b.remove = func(t *testing.T, key string) { exec(t, "DELETE FROM firn_registers WHERE k = "+one, key) }
	b.restore = func(t *testing.T, entries []store.Entry) {
		tx, err := db.Begin()
		check(t, err)
		_, err = tx.Exec("DELETE FROM firn_registers")
		check(t, err)
		for _, e := range entries {
			_, err = tx.Exec("INSERT INTO firn_registers (k, v, rev) VALUES ("+placeholders+")", e.Key, e.Value, int64(e.Revision))
			check(t, err)
		}
		check(t, tx.Commit())
	}
}

func connect(t testing.TB, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	check(t, err)
	t.Cleanup(func() { _ = db.Close() }) // the server may have been killed under it
	return db
}

func onSQLite(t testing.TB) *backend {
	file := filepath.Join(t.TempDir(), "firn.db")
	b := &backend{url: "sqlite:" + file}
	s, err := storeurl.Create(t.Context(), b.url)
	check(t, err)
	check(t, s.Close())
	onSQL(b, connect(t, "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)"), "?, ?, ?")
	b.wipe = func(t *testing.T) { b.restore(t, nil) } // without its table it is refused to newcomers
	return b
}

func onMariaDB(t testing.TB) *backend {
	s := servers.MariaDB(t)
	_, err := connect(t, "mysql", "root@tcp("+s.Addr()+")/").Exec("CREATE DATABASE firn")
	check(t, err)
	b := &backend{url: "mysql://root:@" + s.Addr() + "/firn", few: "?connections=2", clock: true}
	b.serve(s)
	onSQL(b, connect(t, "mysql", "root@tcp("+s.Addr()+")/firn"), "?, ?, ?")
	return b
}

func onPostgres(t testing.TB) *backend {
	s := servers.Postgres(t)
	b := &backend{url: "postgres://postgres:@" + s.Addr() + "/postgres", few: "?connections=2", clock: true}
	b.serve(s)
	onSQL(b, connect(t, "pgx", b.url), "$1, $2, $3")
	return b
}

func onRedis(t testing.TB) *backend {
	ctx := context.Background()
	s := servers.Redis(t)
	b := &backend{url: "redis://" + s.Addr(), clock: true}
	b.serve(s)
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	t.Cleanup(func() { check(t, c.Close()) })
	b.wipe = func(t *testing.T) { check(t, c.FlushAll(ctx).Err()) }
	b.remove = func(t *testing.T, key string) {
		check(t, c.ZRemRangeByLex(ctx, "firn", "["+key+"\x00", "("+key+"\x01").Err())
	}
	b.restore = func(t *testing.T, entries []store.Entry) {
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, "firn")
			for _, e := range entries {
				p.ZAdd(ctx, "firn", redis.Z{Member: e.Key + "\x00" + stored(e)})
			}
			return nil
		})
		check(t, err)
	}
	return b
}

func onEtcd(t testing.TB) *backend {
	ctx := context.Background()
	s := servers.Etcd(t)
	b := &backend{url: "etcd://" + s.Addr()}
	b.serve(s)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Addr()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	b.wipe = func(t *testing.T) {
		_, err := c.Delete(ctx, "\x00", clientv3.WithFromKey())
		check(t, err)
	}
	b.remove = func(t *testing.T, key string) {
		_, err := c.Delete(ctx, key)
		check(t, err)
	}
	b.restore = func(t *testing.T, entries []store.Entry) {
		b.wipe(t)
		for _, e := range entries {
			_, err := c.Put(ctx, e.Key, stored(e))
			check(t, err)
		}
	}
	return b
}

func onZooKeeper(t testing.TB) *backend {
	s := servers.ZooKeeper(t)
	b := &backend{url: "zookeeper://" + s.Addr() + "/test"}
	b.serve(s)
	c, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	check(t, err)
	t.Cleanup(c.Close)
	var remove func(t *testing.T, name string)
	remove = func(t *testing.T, name string) {
		names, _, err := c.Children(name)
		for tries := 0; errors.Is(err, zk.ErrNoServer) && tries < 30; tries++ { // the last fault killed it: a second each
			names, _, err = c.Children(name)
		}
		if errors.Is(err, zk.ErrNoNode) {
			return
		}
		check(t, err)
		for _, child := range names {
			remove(t, path.Join(name, child))
		}
		if err := c.Delete(name, -1); errors.Is(err, zk.ErrNotEmpty) { // a holder was faster
			remove(t, name)
		} else if !errors.Is(err, zk.ErrNoNode) {
			check(t, err)
		}
	}
	b.wipe = func(t *testing.T) { remove(t, "/test") }
	b.remove = func(t *testing.T, key string) { remove(t, "/test/"+key) }
	b.restore = func(t *testing.T, entries []store.Entry) {
		b.wipe(t)
		for _, e := range entries {
			name := "/test/" + e.Key
			for i := 1; i < len(name); i++ {
				if name[i] == '/' {
					if _, err := c.Create(name[:i], nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrNodeExists) {
						check(t, err)
					}
				}
			}
			if _, err := c.Create(name, []byte(stored(e)), 0, zk.WorldACL(zk.PermAll)); errors.Is(err, zk.ErrNodeExists) {
				_, err = c.Set(name, []byte(stored(e)), -1)
				check(t, err)
			} else {
				check(t, err)
			}
		}
	}
	return b
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
