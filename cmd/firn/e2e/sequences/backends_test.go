package sequences

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A backend is a real store, reached directly or at the address of a proxy.
type backend struct {
	server *servers.Server // nil: a file
	url    func(addr string) string
}

var makers = []struct {
	name string
	make func(t testing.TB) *backend
}{
	{"SQLite", onSQLite}, {"Redis", onRedis}, {"MariaDB", onMariaDB}, {"PostgreSQL", onPostgres}, {"etcd", onEtcd}, {"ZooKeeper", onZooKeeper},
}

func onSQLite(t testing.TB) *backend {
	url := "sqlite:" + filepath.Join(t.TempDir(), "firn.db")
	s, err := storeurl.Create(t.Context(), url)
	check(t, err)
	check(t, s.Close())
	return &backend{url: func(string) string { return url }}
}

func onRedis(t testing.TB) *backend {
	return &backend{servers.Redis(t), func(addr string) string { return "redis://" + addr }}
}

func onMariaDB(t testing.TB) *backend {
	s := servers.MariaDB(t)
	db, err := sql.Open("mysql", "root@tcp("+s.Addr()+")/")
	check(t, err)
	defer db.Close()
	_, err = db.Exec("CREATE DATABASE firn")
	check(t, err)
	return &backend{s, func(addr string) string { return "mysql://root:@" + addr + "/firn" }}
}

func onPostgres(t testing.TB) *backend {
	return &backend{servers.Postgres(t), func(addr string) string { return "postgres://postgres:@" + addr + "/postgres" }}
}

func onEtcd(t testing.TB) *backend {
	return &backend{servers.Etcd(t), func(addr string) string { return "etcd://" + addr }}
}

func onZooKeeper(t testing.TB) *backend {
	return &backend{servers.ZooKeeper(t), func(addr string) string { return "zookeeper://" + addr + "/test" }}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open returns a sequence over a handle of its own, like a separate process.
func open(t testing.TB, url string, cfg sequence.Config) *sequence.Namespace {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	cfg.Store, err = storeurl.Open(ctx, url)
	check(t, err)
	all, err := sequence.New(cfg)
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := all.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := cfg.Store.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := all.Namespace("txn")
	check(t, err)
	return s
}
