//go:build unix

package servers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Redis starts a Redis that keeps every write (append-only file, synced), with further args.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, kind{
		name: "redis", program: "redis-server",
		args: func(s *Server) []string {
			file, settings := args[:0], args
			if len(args) > 0 && filepath.IsAbs(args[0]) { // a configuration file comes first
				file, settings = args[:1], args[1:]
			}
			return slices.Concat(file, []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir,
				"--save", "", "--appendonly", "yes", "--appendfsync", "always"}, settings)
		},
		ready: func(s *Server) error {
			if slices.Contains(args, "--tls-port") || slices.Contains(args, "--requirepass") {
				return s.answers()
			}
			return s.says("PING\r\n", "+PONG")
		},
	})
}

// Replica starts a Redis that follows the one at addr, without the usual delay before Redis sends a
// replica its data.
func Replica(t testing.TB, addr string, args ...string) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return Redis(t, append([]string{"--replicaof", host + " " + port, "--repl-diskless-sync-delay", "0"}, args...)...)
}

// Sentinel starts a Redis Sentinel that watches the primary at addr under a name. A failover needs a
// quorum of Sentinels that find the primary down.
func Sentinel(t testing.TB, name, addr string, quorum int) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, kind{
		name: "redis-sentinel", program: "redis-server",
		prepare: func(s *Server) error {
			return os.WriteFile(s.Path("sentinel.conf"), fmt.Appendf(nil,
				// Less than a second is too short: on a busy machine a server may wait longer for a processor.
				"sentinel monitor %s %s %s %d\nsentinel down-after-milliseconds %s 3000\nsentinel failover-timeout %s 2000\n",
				name, host, port, quorum, name, name), 0o644)
		},
		args: func(s *Server) []string {
			return []string{s.Path("sentinel.conf"), "--sentinel", "--bind", "127.0.0.1", "--port", strconv.Itoa(s.port)}
		},
		ready: func(s *Server) error { return s.says("PING\r\n", "+PONG") },
	})
}

// MariaDB starts a MariaDB whose user root has no password.
func MariaDB(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, kind{
		name: "mariadb", program: firstOf("mariadbd", "/usr/sbin/mariadbd"), user: "mysql",
		prepare: func(s *Server) error {
			return s.run("mariadb-install-db", "--no-defaults", "--datadir="+s.Path("data"),
				"--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=8M", "--tmpdir="+s.dir)
		},
		args: func(s *Server) []string {
			return append([]string{"--no-defaults", "--datadir=" + s.Path("data"), "--bind-address=127.0.0.1",
				"--port=" + strconv.Itoa(s.port), "--socket=" + s.Path("s.sock"), "--pid-file=" + s.Path("m.pid"),
				"--tmpdir=" + s.dir, // at its start it removes files of other servers from a shared folder
				"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--max-connections=1200"}, args...)
		},
		ready: func(s *Server) error {
			return s.run("mariadb-admin", "--no-defaults", "--user=root", "--protocol=tcp", "--host=127.0.0.1", "--port="+strconv.Itoa(s.port), "ping")
		},
	})
}

// Postgres starts a PostgreSQL whose user postgres needs no password.
func Postgres(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, postgresKind(postgresBin(), args...))
}

func postgresKind(bin string, args ...string) kind {
	return kind{
		name: "postgres", program: filepath.Join(bin, "postgres"), user: "postgres",
		prepare: func(s *Server) error {
			return s.run(filepath.Join(bin, "initdb"), "-D", s.Path("data"), "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C")
		},
		args: func(s *Server) []string {
			return append([]string{"-D", s.Path("data"), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", s.dir,
				"-c", "max_connections=1200"}, args...)
		},
		ready: func(s *Server) error {
			return s.run(filepath.Join(bin, "pg_isready"), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port))
		},
	}
}

// PgBouncer starts a pooler of a PostgreSQL, in a pool mode such as transaction. Every client is its user postgres.
func PgBouncer(t testing.TB, database *Server, mode string) *Server {
	t.Helper()
	return start(t, kind{
		name: "pgbouncer", program: firstOf("pgbouncer", "/usr/sbin/pgbouncer"), user: "postgres",
		args: func(s *Server) []string {
			config := s.Path("pgbouncer.ini")
			text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n"+
				"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = %s\nmax_client_conn = 1000\ndefault_pool_size = 200\n", database.port, s.port, mode)
			if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
				s.t.Error(err)
			}
			return []string{config}
		},
		ready: func(s *Server) error {
			return s.run(filepath.Join(postgresBin(), "pg_isready"), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port))
		},
	})
}

// postgresBin is the folder that FIRN_POSTGRES_BIN names, or the one with the programs of Debian's newest version.
func postgresBin() string {
	if named := os.Getenv("FIRN_POSTGRES_BIN"); named != "" {
		return named
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		return "" // then they are in PATH, or missing
	}
	return found[len(found)-1]
}

// Etcd starts an etcd of one member. Its clients speak TLS if args have --cert-file.
func Etcd(t testing.TB, args ...string) *Server {
	t.Helper()
	peer, scheme, secured := FreePort(t), "http://", "--insecure-transport=true"
	if slices.Contains(args, "--cert-file") {
		scheme, secured = "https://", "--insecure-transport=false"
	}
	return start(t, kind{
		name: "etcd", program: "etcd",
		args: func(s *Server) []string {
			client := scheme + s.Addr()
			peers := "http://127.0.0.1:" + strconv.Itoa(peer)
			return append([]string{"--name", "n1", "--data-dir", s.Path("data"), "--log-level", "error",
				"--listen-client-urls", client, "--advertise-client-urls", client,
				"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "n1=" + peers}, args...)
		},
		ready: func(s *Server) error {
			err := s.run("etcdctl", "--endpoints", scheme+s.Addr(), secured, "--insecure-skip-tls-verify", "endpoint", "health")
			if err != nil && strings.Contains(err.Error(), "user name is empty") { // a leader says so, of an etcd with users
				return nil
			}
			return err
		},
	})
}

// Ensemble are the settings that make a ZooKeeper an ensemble of one server, which elects itself.
func Ensemble(t testing.TB) []string {
	t.Helper()
	return []string{"standaloneEnabled=false", "initLimit=10", "syncLimit=5", "electionPortBindRetry=10",
		fmt.Sprintf("server.1=127.0.0.1:%d:%d", FreePort(t), FreePort(t))}
}

// ZooKeeper starts a ZooKeeper of one server, with settings added to its file.
func ZooKeeper(t testing.TB, settings ...string) *Server {
	t.Helper()
	return start(t, kind{
		name: "zookeeper", program: "java",
		prepare: func(s *Server) error {
			if _, err := os.Stat("/usr/share/java/zookeeper.jar"); err != nil {
				return fmt.Errorf("%w: run scripts/need-servers", err)
			}
			if err := os.Mkdir(s.Path("data"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(s.Path("data/myid"), []byte("1\n"), 0o644)
		},
		args: func(s *Server) []string {
			config := s.Path("zoo.cfg")
			text := strings.Join(append([]string{
				"tickTime=500", "dataDir=" + s.Path("data"), "clientPort=" + strconv.Itoa(s.port),
				"clientPortAddress=127.0.0.1", "4lw.commands.whitelist=*", "admin.enableServer=false", "maxClientCnxns=0",
			}, settings...), "\n")
			if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
				s.t.Error(err)
			}
			return []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", "/etc/zookeeper/conf:/usr/share/java/*", "-Dzookeeper.log.dir=" + s.dir,
				"org.apache.zookeeper.server.quorum.QuorumPeerMain", config}
		},
		ready: func(s *Server) error { return s.says("srvr", "Zookeeper version") },
	})
}

func firstOf(name, path string) string {
	if _, err := exec.LookPath(name); err != nil {
		return path
	}
	return name
}

// Nowhere is an address on loopback without a listener.
func Nowhere(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort(t)))
}

// Silent is an address on loopback that accepts connections and never answers.
func Silent(t testing.TB) string {
	t.Helper()
	return Accept(t, func(c net.Conn) { t.Cleanup(func() { _ = c.Close() }) })
}

// Accept calls serve for each connection, one after another, until the test ends. It returns the address on loopback.
func Accept(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			serve(c)
		}
	}()
	return l.Addr().String()
}
