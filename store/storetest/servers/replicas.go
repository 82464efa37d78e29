//go:build unix

package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// MariaDBReplica starts a MariaDB that follows a primary, with semi-synchronous replication if the
// primary has it on. The primary needs --log-bin and a --server-id, this one a different --server-id.
func MariaDBReplica(t testing.TB, primary *Server, args ...string) *Server {
	t.Helper()
	s := MariaDB(t, append([]string{"--rpl-semi-sync-slave-enabled=1", "--slave-net-timeout=4"}, args...)...)
	follow := fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='root', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos; START SLAVE",
		primary.port)
	if err := s.run("mariadb", "--no-defaults", "--user=root", "--protocol=tcp", "--host=127.0.0.1", "--port="+strconv.Itoa(s.port), "-e", follow); err != nil {
		t.Fatal(err)
	}
	return s
}

// PostgresStandby starts a PostgreSQL that follows a primary.
func PostgresStandby(t testing.TB, primary *Server, args ...string) *Server {
	t.Helper()
	bin := postgresBin()
	k := postgresKind(bin, args...)
	k.prepare = func(s *Server) error {
		return s.run(filepath.Join(bin, "pg_basebackup"), "-h", "127.0.0.1", "-p", strconv.Itoa(primary.port), "-U", "postgres",
			"-D", s.Path("data"), "-R", "-c", "fast")
	}
	return start(t, k)
}

// Promote makes a PostgreSQL standby a primary, whatever its primary does.
func (s *Server) Promote() {
	s.t.Helper()
	if err := s.run(filepath.Join(postgresBin(), "pg_ctl"), "promote", "-D", s.Path("data")); err != nil {
		s.t.Fatal(err)
	}
}

// WearOut restarts a PostgreSQL with 20 million transactions left before it must be vacuumed; it then
// warns of that with each write. Hold a lock on a table, or autovacuum cleans up at once.
func (s *Server) WearOut() {
	s.t.Helper()
	s.signal(syscall.SIGINT) // unlike Kill: its files must be complete
	select {
	case <-s.exited:
	case <-time.After(startTimeout):
		s.t.Fatalf("%s does not shut down within %v", s.kind.name, startTimeout)
	}
	s.dismiss()
	const next, perFile, fileSize = 1<<31 - 20_000_000, 1 << 20, 256 << 10
	file := s.Path(fmt.Sprintf("data/pg_xact/%04X", next/perFile)) // the status of the transactions just before
	err := os.WriteFile(file, make([]byte, fileSize), 0o600)
	if err == nil {
		err = s.own(file)
	}
	if err == nil {
		err = s.run(filepath.Join(postgresBin(), "pg_resetwal"), "-x", strconv.Itoa(next), "-D", s.Path("data"))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.Restart()
}
