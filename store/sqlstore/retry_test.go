package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/sqlstore"
)

// Some drivers report a bad connection when it ended while they waited for an answer (lib/pq, on EOF).
// The write was made, and the answer to the second try says nothing about the first.
func TestABadConnectionMakesLaterRefusalsUncertain(t *testing.T) {
	for _, test := range []struct {
		what string
		then error
	}{{"a conflict", nil}, {"a server that is read-only by now", state("25006")}} {
		tries := 0
		s, err := sqlstore.Open(context.Background(), sql.OpenDB(scripted{one, func(statement string) (oneRow, error) {
			if !strings.HasPrefix(statement, "UPDATE") {
				return nil, nil
			}
			if tries++; tries == 1 {
				return nil, driver.ErrBadConn
			}
			return nil, test.then
		}}), sqlstore.Postgres)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CompareAndSwap(context.Background(), "k", 1, nil)
		if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || tries != 2 {
			t.Errorf("%s after a bad connection: %v after %d tries, want it to be left open", test.what, err, tries)
		}
	}
}

// A proxy may send each statement to another session, or to one that was reset.
func TestAWriteDoesNotLookForASessionForEver(t *testing.T) {
	tries := 0
	s, err := sqlstore.Open(context.Background(), sql.OpenDB(scripted{func(context.Context, string) (int64, error) {
		if tries++; tries > 100 {
			return 0, errors.New("for ever")
		}
		return 0, nil
	}, func(statement string) (oneRow, error) {
		if strings.Contains(statement, "@firn_life :=") {
			return oneRow{int64(0), "fit", "", "life", false, false, int64(0), int64(0), int64(0), false}, nil
		}
		return nil, nil
	}}), sqlstore.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CompareAndSwap(context.Background(), "k", 1, nil)
	if tries > 100 || !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || !strings.Contains(err.Error(), "session") {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// moved is a database whose name leads to another server at each connection.
type moved struct {
	driver.Connector
	servers *[]driver.Connector
}

func (m moved) Connect(ctx context.Context) (driver.Conn, error) {
	next := (*m.servers)[0]
	*m.servers = (*m.servers)[1:]
	return next.Connect(ctx)
}

// A replaced, now read-only primary keeps its sessions: a pool that does not end them by itself would
// use them for ever.
func TestASessionOnAServerThatTakesNoWritesIsNotUsedAgain(t *testing.T) {
	written := oneRow{true, "000000010000", "start", "", "on", "warning"}
	for _, test := range []struct {
		dialect sqlstore.Dialect
		says    error
	}{{sqlstore.MySQL, numbered(1290)}, {sqlstore.MySQL, numbered(1836)}, {sqlstore.Postgres, state("25006")}} {
		replaced := func(statement string) (oneRow, error) {
			switch {
			case strings.HasPrefix(statement, "UPDATE"):
				return nil, test.says
			case strings.Contains(statement, "@firn_life :="):
				return oneRow{int64(0), "fit", "life", "life", false, false, int64(0), int64(0), int64(0), false}, nil
			}
			return nil, nil
		}
		primary := func(statement string) (oneRow, error) {
			switch {
			case strings.HasPrefix(statement, "UPDATE"):
				return append(oneRow{}, written...), nil
			case strings.Contains(statement, "txid_current"):
				return oneRow{true}, nil
			}
			return nil, nil
		}
		left := []driver.Connector{
			scripted{func(context.Context, string) (int64, error) { return 0, test.says }, replaced}, scripted{one, primary},
		}
		s, err := sqlstore.Open(context.Background(), sql.OpenDB(moved{scripted{}, &left}), test.dialect)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CompareAndSwap(context.Background(), "k", 1, nil); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "name the primary") {
			t.Errorf("%v, on a server that takes no writes: %v", test.says, err)
		}
		if _, err := s.CompareAndSwap(context.Background(), "k", 1, nil); err != nil || len(left) > 0 {
			t.Errorf("%v, once the name leads to the primary: %v", test.says, err)
		}
	}
}

// slow is a database whose connections take until something comes over its channel.
type slow struct {
	driver.Connector
	connects chan struct{}
}

func (s slow) Connect(ctx context.Context) (driver.Conn, error) {
	select {
	case <-s.connects:
		return s.Connector.Connect(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// disconnected returns a store whose next call must connect.
func disconnected(t *testing.T, database driver.Connector) *sqlstore.Store {
	t.Helper()
	db := sql.OpenDB(database)
	s, err := sqlstore.Open(t.Context(), db, sqlstore.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(0) // closes the one there is
	db.SetMaxIdleConns(3)
	return s
}

// Otherwise a holder whose looks end sooner than that would never reach its store again.
func TestAConnectionThatTakesLongerThanACallServesALaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		database := slow{scripted{one, func(string) (oneRow, error) { return nil, nil }}, make(chan struct{}, 1)}
		database.connects <- struct{}{}
		s := disconnected(t, database)
		look := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := s.Get(ctx, "k")
			return err
		}
		if err := look(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a call whose connection takes longer: %v", err)
		}
		time.Sleep(3 * time.Second)
		database.connects <- struct{}{} // 5 s after it began
		synctest.Wait()
		if err := look(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the next call: %v", err)
		}
		if err := look(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the one after that: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Otherwise looks that fail while a server hangs would use up all connections, and none would be left when
// its name leads to another.
func TestOneAttemptToConnectOutlivesItsCall(t *testing.T) {
	for most, want := range map[int]int{1: 1, 2: 1, 4: 1, 0: 1} {
		synctest.Test(t, func(t *testing.T) {
			database := slow{scripted{one, func(string) (oneRow, error) { return nil, nil }}, make(chan struct{}, 2)}
			database.connects <- struct{}{}
			db := sql.OpenDB(database)
			db.SetMaxOpenConns(most)
			s, err := sqlstore.Open(t.Context(), db, sqlstore.Postgres)
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxIdleConns(0) // closes the one there is
			var calls sync.WaitGroup
			for i := range 8 {
				calls.Go(func() {
					ctx, cancel := context.WithTimeout(store.Urgent(t.Context()), 2*time.Second)
					defer cancel()
					if _, err := s.Get(ctx, fmt.Sprint("k", i)); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("call %d: %v", i, err)
					}
				})
			}
			calls.Wait()
			synctest.Wait()
			if is := db.Stats().OpenConnections; is != want {
				t.Errorf("with %d connections, %d attempts outlive their calls, want %d", most, is, want)
			}
			database.connects <- struct{}{}
			synctest.Wait()
			database.connects <- struct{}{} // for another one, if that one was closed
			if _, err := s.Get(store.Urgent(t.Context()), "k"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("with %d connections, once the server answers: %v", most, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// stubborn is a driver whose calls do not heed their context, as those of lib/pq to a silent server.
type stubborn struct {
	scripted
	answers chan struct{}
}

func (s stubborn) Connect(context.Context) (driver.Conn, error) { return s, nil }

func (s stubborn) QueryContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	<-s.answers
	return s.scripted.QueryContext(context.Background(), statement, args)
}

// openStubborn opens a store, whose database answers nothing more.
func openStubborn(t *testing.T) (*sqlstore.Store, stubborn) {
	t.Helper()
	database := stubborn{scripted{one, func(string) (oneRow, error) { return nil, nil }}, make(chan struct{}, 9)}
	for range 9 {
		database.answers <- struct{}{}
	}
	s, err := sqlstore.Open(t.Context(), sql.OpenDB(database), sqlstore.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	for len(database.answers) > 0 {
		<-database.answers
	}
	return s, database
}

func TestACallEndsWithItsContextWhateverTheDriverDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, database := openStubborn(t)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := s.Get(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 3*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		close(database.answers)
		if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("once the server answers: %v", err)
		}
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// deaf is a driver that does not heed the context of an attempt to connect, as lib/pq's, which has none.
type deaf struct{ slow }

func (d deaf) Connect(context.Context) (driver.Conn, error) {
	return d.slow.Connect(context.Background())
}

func TestACallEndsWithItsContextThoughADriverGoesOnConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		database := deaf{slow{scripted{one, func(string) (oneRow, error) { return nil, nil }}, make(chan struct{}, 9)}}
		database.connects <- struct{}{}
		s := disconnected(t, database)
		for i := range 20 { // the first is the attempt that outlives its call
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := s.Get(ctx, "k")
			cancel()
			if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 2200*time.Millisecond {
				t.Fatalf("call %d: %v after %v", i, err, took)
			}
		}
		close(database.connects)
		if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("once a server answers: %v", err)
		}
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// lost is a driver whose attempts to connect, begun while the server is lost, hang for a quarter of an hour.
type lost struct {
	scripted
	server *atomic.Bool
}

func (l lost) Connect(context.Context) (driver.Conn, error) {
	if l.server.Load() {
		time.Sleep(15 * time.Minute)
		return nil, errors.New("timed out")
	}
	return l.scripted, nil
}

// Ordinary calls leave connections for those of holders, also while their attempts to connect hang.
func TestAbandonedAttemptsLeaveConnectionsForHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lost{scripted{one, func(string) (oneRow, error) { return nil, nil }}, new(atomic.Bool)}
		db := sql.OpenDB(l)
		db.SetMaxOpenConns(8)
		s, err := sqlstore.Open(t.Context(), db, sqlstore.Postgres)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxIdleConns(0)
		db.SetMaxIdleConns(8)
		l.server.Store(true)
		for range 24 {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				if _, err := s.Get(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}()
			time.Sleep(time.Second / 2)
		}
		l.server.Store(false)
		look, cancel := context.WithTimeout(store.Urgent(t.Context()), 2*time.Second)
		defer cancel()
		if _, err := s.Get(look, "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("once the server is back: %v", err)
		}
		time.Sleep(20 * time.Minute)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAListingWaitsForOthersNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, database := openStubborn(t)
		const waited = "it waited for other listings"
		list := func(limit time.Duration, waits bool) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := s.List(ctx, "k")
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > limit+200*time.Millisecond || strings.Contains(err.Error(), waited) != waits {
				t.Errorf("after %v of %v: %v", took, limit, err)
			}
		}
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() { list(5*time.Second, false) })
		}
		synctest.Wait()
		list(2*time.Second, true)
		group.Wait()
		list(time.Second, false) // the driver still sends the first requests, whose callers have left
		close(database.answers)
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// PostgreSQL commits a table before it tells other sessions, which then cannot make it, and do not find it yet.
func TestATableThatIsMadeAtThisMomentIsWaitedFor(t *testing.T) {
	for _, test := range []struct {
		what, making string
		tries        int
	}{
		{"made by another", "23505", 4},
		{"not allowed", "42501", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			db := sql.OpenDB(scripted{func(context.Context, string) (int64, error) {
				tries++
				return 0, state(test.making)
			}, func(statement string) (oneRow, error) {
				if strings.HasSuffix(statement, " LIMIT 0") && tries < 4 {
					return nil, state("42P01")
				}
				return nil, nil
			}})
			_, err := sqlstore.Open(context.Background(), db, sqlstore.Postgres)
			if wanted := test.tries > 1; wanted != (err == nil) || tries != test.tries {
				t.Errorf("%s: %v after %d tries", test.what, err, tries)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
