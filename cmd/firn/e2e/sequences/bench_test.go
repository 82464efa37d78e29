package sequences

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/firn-id/firn/sequence"
)

// An increment is a store's native counter.
type increment struct {
	name string
	do   func(ctx context.Context) error
}

// BenchmarkSequence measures ids per second with many callers in one process, with Firn and with the
// store's native counter.
func BenchmarkSequence(b *testing.B) {
	for _, m := range []struct {
		name   string
		make   func(t testing.TB) *backend
		native func(b *testing.B, t *backend, callers int) []increment
	}{
		{"Redis", onRedis, redisIncrements}, {"MariaDB", onMariaDB, mariadbIncrements},
		{"PostgreSQL", onPostgres, postgresIncrements}, {"etcd", onEtcd, etcdIncrements},
	} {
		b.Run(m.name, func(b *testing.B) {
			backend := m.make(b)
			for _, callers := range []int{1, 16, 256} {
				b.Run(fmt.Sprint(callers), func(b *testing.B) {
					s := open(b, backend.url(backend.server.Addr()), sequence.Config{})
					b.Run("Firn", func(b *testing.B) {
						before := s.State()
						measure(b, callers, func(ctx context.Context) error {
							_, err := s.Next(ctx)
							return err
						})
						after := s.State()
						b.ReportMetric(float64(after.Served-before.Served)/float64(after.Additions-before.Additions), "calls/addition")
					})
					for _, native := range m.native(b, backend, callers) {
						b.Run(native.name, func(b *testing.B) { measure(b, callers, native.do) })
					}
				})
			}
		})
	}
}

// measure lets this many callers share b.N calls.
func measure(b *testing.B, callers int, do func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	b.ResetTimer()
	began := time.Now()
	for range callers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(ctx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "ids/s")
}

func redisIncrements(b *testing.B, t *backend, callers int) []increment {
	c := redis.NewClient(&redis.Options{Addr: t.server.Addr(), PoolSize: callers})
	b.Cleanup(func() { check(b, c.Close()) })
	return []increment{{"INCR", func(ctx context.Context) error { return c.Incr(ctx, "native").Err() }}}
}

func mariadbIncrements(b *testing.B, t *backend, callers int) []increment {
	db := counter(b, "mysql", "root@tcp("+t.server.Addr()+")/firn", callers)
	return []increment{{"UPDATE", func(ctx context.Context) error {
		result, err := db.ExecContext(ctx, "UPDATE native SET n = LAST_INSERT_ID(n + 1)")
		if err == nil {
			_, err = result.LastInsertId()
		}
		return err
	}}}
}

func postgresIncrements(b *testing.B, t *backend, callers int) []increment {
	db := counter(b, "pgx", t.url(t.server.Addr()), callers)
	_, err := db.Exec("CREATE SEQUENCE IF NOT EXISTS native_sequence")
	check(b, err)
	ask := func(statement string) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			var n int64
			return db.QueryRowContext(ctx, statement).Scan(&n)
		}
	}
	return []increment{
		{"UPDATE", ask("UPDATE native SET n = n + 1 RETURNING n")},
		{"nextval", ask("SELECT nextval('native_sequence')")},
	}
}

// counter creates a table with a counter row.
func counter(b *testing.B, driver, source string, callers int) *sql.DB {
	db, err := sql.Open(driver, source)
	check(b, err)
	b.Cleanup(func() { check(b, db.Close()) })
	db.SetMaxOpenConns(callers)
	db.SetMaxIdleConns(callers)
	for _, statement := range []string{
		"DROP TABLE IF EXISTS native", "CREATE TABLE native (n BIGINT NOT NULL)", "INSERT INTO native VALUES (0)",
	} {
		_, err := db.Exec(statement)
		check(b, err)
	}
	return db
}

func etcdIncrements(b *testing.B, t *backend, _ int) []increment {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{t.server.Addr()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	check(b, err)
	b.Cleanup(func() { check(b, c.Close()) })
	return []increment{
		{"txn", func(ctx context.Context) error {
			for {
				got, err := c.Get(ctx, "native")
				if err != nil {
					return err
				}
				n, revision := 0, int64(0)
				if len(got.Kvs) > 0 {
					if _, err := fmt.Sscan(string(got.Kvs[0].Value), &n); err != nil {
						return err
					}
					revision = got.Kvs[0].ModRevision
				}
				answer, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision("native"), "=", revision)).
					Then(clientv3.OpPut("native", fmt.Sprint(n+1))).Commit()
				if err != nil || answer.Succeeded {
					return err
				}
			}
		}},
		{"revision", func(ctx context.Context) error { // uses etcd's global revision as the counter
			_, err := c.Put(ctx, "revision", "")
			return err
		}},
	}
}
