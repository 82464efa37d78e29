package servers

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
)

// MariaDBReplica starts a MariaDB that follows a primary, with semi-synchronous
// replication if the primary asks for it. The primary needs --log-bin and a
// --server-id, this one another.
func MariaDBReplica(t testing.TB, primary *Server, args ...string) *Server {
	t.Helper()
	s := MariaDB(t, append([]string{"--rpl-semi-sync-slave-enabled=1", "--slave-net-timeout=4", "--master-retry-count=0"}, args...)...)
	follow := fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='root', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos; START SLAVE",
		primary.port)
	if err := s.run("mariadb", "--no-defaults", "--user=root", "--protocol=tcp", "--host=127.0.0.1", "--port="+strconv.Itoa(s.port), "-e", follow); err != nil {
		t.Fatal(err)
	}
	return s
}

// PostgresStandby starts a PostgreSQL that follows a primary.
func PostgresStandby(t testing.TB, primary *Server) *Server {
	t.Helper()
	bin := postgresBin()
	k := postgresKind(bin)
	k.prepare = func(s *Server) error {
		return s.run(filepath.Join(bin, "pg_basebackup"), "-h", "127.0.0.1", "-p", strconv.Itoa(primary.port), "-U", "postgres",
			"-D", s.Path("data"), "-R", "-c", "fast")
	}
	return start(t, k)
}

// Promote makes a standby of PostgreSQL a primary, whatever its primary does.
func (s *Server) Promote() {
	s.t.Helper()
	if err := s.run(filepath.Join(postgresBin(), "pg_ctl"), "promote", "-D", s.Path("data")); err != nil {
		s.t.Fatal(err)
	}
}
