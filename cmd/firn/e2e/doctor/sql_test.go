package doctor

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn/cmd/firn/internal/cli"
	"github.com/firn-id/firn/store/storetest/servers"
)

func init() {
	cases["mariadb"] = func(d *doctor) {
		server := servers.MariaDB(d, "--log-bin", "--server-id=1", "--sync-binlog=1")
		url := "mysql://root:@" + server.Addr() + "/shop"
		d.mariadb(server, "CREATE DATABASE shop")
		d.finds("good", "durability", "innodb_flush_log_at_trx_commit 1, sync_binlog 1", "--store", url)
		d.finds("good", "privileges", "may read and write", "--store", url)
		d.finds("good", "role", "a primary", "--store", url)
		d.finds("good", "replicas", "none connected", "--store", url)
		d.finds("good", "write", "is confirmed", "--store", url)
		for _, set := range []struct{ on, off, subject, words string }{
			{"SET GLOBAL innodb_flush_log_at_trx_commit = 2", "SET GLOBAL innodb_flush_log_at_trx_commit = 1", "durability", "set engine InnoDB"},
			{"SET GLOBAL sync_binlog = 0", "SET GLOBAL sync_binlog = 1", "durability", "sync_binlog 0: a crash forgets"},
			{"ALTER TABLE shop.firn_registers ENGINE = Aria", "ALTER TABLE shop.firn_registers ENGINE = InnoDB", "durability", "engine Aria"},
			{"SET GLOBAL tx_read_only = 1", "SET GLOBAL tx_read_only = 0", "write", "tx_read_only"},
			{"SET GLOBAL tx_read_only = 1", "SET GLOBAL tx_read_only = 0", "role", "turn off what makes it read-only"},
			{"SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", "role", "it is a replica, or read-only"},
			{"SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", "write", "name the primary"},
			{"SET GLOBAL rpl_semi_sync_master_enabled = 1", "SET GLOBAL rpl_semi_sync_master_enabled = 0", "replicas", "none connected, and writes wait for 1"},
		} {
			d.mariadb(server, set.on)
			d.finds("bad", set.subject, set.words, "--store", url)
			d.mariadb(server, set.off)
		}
		d.mariadb(server, "CREATE USER reader@'%' IDENTIFIED BY '"+password+"'", "GRANT SELECT ON shop.* TO reader@'%'")
		reader := "mysql://reader:" + password + "@" + server.Addr() + "/shop"
		d.finds("bad", "privileges", "grant it SELECT, INSERT and UPDATE", "--store", reader)
		d.finds("bad", "write", "needs SELECT, INSERT and UPDATE", "--store", reader)

		// By a role, and on columns.
		d.mariadb(server, "CREATE ROLE firn", "GRANT SELECT, INSERT, UPDATE ON shop.firn_registers TO firn", "CREATE USER member@'%' IDENTIFIED BY '"+password+"'",
			"GRANT firn TO member", "SET DEFAULT ROLE firn FOR member@'%'", "CREATE USER columns@'%' IDENTIFIED BY '"+password+"'",
			"GRANT SELECT, INSERT (k, v, rev), UPDATE (v, rev) ON shop.firn_registers TO columns@'%'")
		for _, user := range []string{"member", "columns"} {
			d.finds("good", "privileges", "may read and write", "--store", "mysql://"+user+":"+password+"@"+server.Addr()+"/shop")
			d.finds("good", "write", "is confirmed", "--store", "mysql://"+user+":"+password+"@"+server.Addr()+"/shop")
		}

		// The clock of a session, which accounts without privileges have from the server.
		d.mariadb(server, "GRANT INSERT, UPDATE ON shop.* TO reader@'%'", "SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 5'")
		d.finds("doubtful", "clock", "see that the clock is kept right", "--store", reader)
		d.mariadb(server, "SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 60'")
		d.finds("bad", "clock", "correct the one that is wrong", "--store", reader)
	}
	cases["mariadb replicas"] = func(d *doctor) {
		server := servers.MariaDB(d, "--log-bin", "--server-id=1", "--sync-binlog=1")
		url := "mysql://root:@" + server.Addr() + "/shop"
		d.mariadb(server, "CREATE DATABASE shop")
		plain := servers.MariaDBReplica(d, server, "--server-id=3", "--rpl-semi-sync-slave-enabled=0")
		d.finds("doubtful", "role", "two primaries that both answer", "--store", "mysql://root:@"+plain.Addr()+"/shop")
		plain.Kill()
		replica := servers.MariaDBReplica(d, server, "--server-id=2")
		d.finds("bad", "replicas", "turn on semi-synchronous replication", "--store", url)
		d.mariadb(server, "SET GLOBAL rpl_semi_sync_master_enabled = 1")
		d.mariadb(replica, "STOP SLAVE", "START SLAVE") // it asks for it when it connects
		d.finds("good", "replicas", "which have a write before it is confirmed", "--store", url)
		d.refuses("name the primary", "--store", "mysql://root:@"+replica.Addr()+"/shop")
	}
	cases["mariadb at its start"] = func(d *doctor) {
		for _, start := range []struct {
			args  []string
			words string
		}{
			{[]string{"--skip-innodb-doublewrite"}, "innodb_doublewrite OFF: a crash forgets"},
			{[]string{"--innodb-flush-method=nosync"}, "leave innodb_flush_method as it is"},
			{[]string{"--log-bin", "--server-id=1", "--sync-binlog=1", "--init-rpl-role=SLAVE"}, "start the primary with init_rpl_role MASTER"},
		} {
			server := servers.MariaDB(d, start.args...)
			d.mariadb(server, "CREATE DATABASE shop")
			d.finds("bad", "durability", start.words, "--store", "mysql://root:@"+server.Addr()+"/shop")
		}
	}
	cases["sql of two servers"] = func(d *doctor) {
		addrs := []string{servers.MariaDB(d).Addr(), ""}
		second := servers.MariaDB(d)
		addrs[1] = second.Addr()
		for _, addr := range addrs {
			d.sql("mysql", "root@tcp("+addr+")/", "CREATE DATABASE shop")
		}
		balancer := servers.NewProxy(d, "", nil)
		balancer.Choose(func(n int) string { return addrs[n%2] })
		d.finds("bad", "role", "lead to 2 servers", "--store", "mysql://root:@"+balancer.Addr()+"/shop")
	}
	cases["galera"] = func(d *doctor) {
		base := servers.FreePort(d)
		server := servers.MariaDB(d, "--wsrep-on=1", "--wsrep-provider=/usr/lib/galera/libgalera_smm.so", "--wsrep-cluster-address=gcomm://",
			"--wsrep-new-cluster", "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-node-address=127.0.0.1",
			fmt.Sprintf("--wsrep-provider-options=base_port=%d;gmcast.listen_addr=tcp://127.0.0.1:%d", base, base))
		db := d.database("mysql", "root@tcp("+server.Addr()+")/")
		d.until("the cluster to be ready", func() bool {
			_, err := db.Exec("CREATE DATABASE IF NOT EXISTS shop")
			return err == nil
		})
		d.finds("doubtful", "role", "without its recovered position", "--store", "mysql://root:@"+server.Addr()+"/shop")
		d.mariadb(server, "SET GLOBAL wsrep_provider_options = 'pc.ignore_sb=YES'")
		d.finds("bad", "role", "its cluster goes on as two stores", "--store", "mysql://root:@"+server.Addr()+"/shop")
	}
	cases["postgres"] = func(d *doctor) {
		server := servers.Postgres(d, "-c", "wal_level=logical")
		url := "postgres://postgres@" + server.Addr() + "/shop?sslmode=disable"
		d.postgres(server, "postgres", "CREATE DATABASE shop", "CREATE DATABASE other")
		d.finds("good", "durability", "fsync on, full_page_writes on", "--store", url)
		d.finds("good", "replicas", "none connected", "--store", url)
		d.finds("good", "write", "is confirmed", "--store", url)
		d.set(server, "zero_damaged_pages", "on")
		d.finds("bad", "durability", "zero_damaged_pages on", "--store", url)
		d.set(server, "zero_damaged_pages", "off")
		d.postgres(server, "shop", "ALTER TABLE firn_registers SET UNLOGGED")
		d.finds("bad", "durability", "have an ordinary table", "--store", url)
		d.finds("bad", "write", "UNLOGGED", "--store", url)
		d.postgres(server, "shop", "ALTER TABLE firn_registers SET LOGGED", "CREATE USER reader PASSWORD '"+password+"'", "GRANT SELECT ON firn_registers TO reader")
		reader := "postgres://reader:" + password + "@" + server.Addr() + "/shop?sslmode=disable"
		d.finds("bad", "privileges", "grant it SELECT, INSERT and UPDATE", "--store", reader)
		d.finds("bad", "write", "needs SELECT, INSERT and UPDATE", "--store", reader)
		d.postgres(server, "shop", "GRANT INSERT (k, v, rev), UPDATE (v, rev) ON firn_registers TO reader")
		d.finds("good", "privileges", "may read and write", "--store", reader)
		d.set(server, "default_transaction_read_only", "on")
		d.finds("bad", "write", "default_transaction_read_only", "--store", url)
		d.set(server, "default_transaction_read_only", "off")

		d.postgres(server, "postgres", "CREATE DATABASE views")
		d.postgres(server, "views", `CREATE TABLE behind (k TEXT COLLATE "C" PRIMARY KEY, v BYTEA NOT NULL, rev BIGINT NOT NULL)`, "CREATE VIEW firn_registers AS SELECT * FROM behind")
		d.finds("bad", "durability", "no table but stands for one: a crash forgets the workers taken last → name another database", "--store",
			"postgres://postgres@"+server.Addr()+"/views?sslmode=disable")

		// Only the server knows its settings. Its driver says what each address answers on a line of its own.
		var said strings.Builder
		args := []string{"doctor", "--store", "postgres://postgres@" + server.Addr() + "/shop?colour=red"}
		if status := cli.Main(args, strings.NewReader(""), &said, &said); status != 2 || strings.Contains(said.String(), `\t`) ||
			!strings.Contains(said.String(), "does not know a setting of the URL") {
			d.Errorf("firn %q exits with %d: %s", args, status, said.String())
		}

		d.postgres(server, "shop", "CREATE SCHEMA second", "CREATE TABLE second.firn_registers (k TEXT PRIMARY KEY)")
		d.finds("doubtful", "role", "another store in schema second", "--store", url)
		d.postgres(server, "shop", "DROP SCHEMA second CASCADE", "SELECT pg_replication_origin_create('elsewhere')")
		d.finds("doubtful", "role", "replays another server's writes", "--store", url)
		d.postgres(server, "shop", "SELECT pg_replication_origin_drop('elsewhere')")

		// A server that applies another server's writes.
		d.postgres(server, "other", "CREATE TABLE firn_registers (k TEXT PRIMARY KEY, v BYTEA, rev BIGINT)", "CREATE PUBLICATION p FOR TABLE firn_registers",
			"SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
		d.postgres(server, "shop", "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port="+strconv.Itoa(server.Port())+
			" user=postgres dbname=other' PUBLICATION p WITH (create_slot = false)")
		d.finds("bad", "role", "drop the subscription", "--store", url)
	}
	cases["postgres standbys"] = func(d *doctor) {
		server := servers.Postgres(d)
		url := "postgres://postgres@" + server.Addr() + "/shop?sslmode=disable"
		d.postgres(server, "postgres", "CREATE DATABASE shop")
		d.finds("good", "write", "is confirmed", "--store", url) // makes the table
		first := servers.PostgresStandby(d, server, "-c", "cluster_name=a")
		d.finds("bad", "replicas", "brought up to date afterwards", "--store", url)
		d.finds("bad", "role", "it is a replica, or read-only", "--store", "postgres://postgres@"+first.Addr()+"/shop?sslmode=disable")
		d.postgres(server, "shop", "CREATE USER firn PASSWORD '"+password+"'", "GRANT SELECT, INSERT, UPDATE ON firn_registers TO firn")
		d.finds("doubtful", "replicas", "grant it pg_monitor", "--store", "postgres://firn:"+password+"@"+server.Addr()+"/shop?sslmode=disable")
		d.set(server, "synchronous_standby_names", "*")
		d.finds("doubtful", "replicas", "acknowledges in the place of one", "--store", url)

		// A write waits for the standby whatever synchronous_commit says.
		d.set(server, "synchronous_commit", "local")
		d.set(server, "synchronous_standby_names", "a")
		d.finds("good", "replicas", "which have a write before it is confirmed", "--store", url)
		first.Pause()
		d.finds("bad", "write", "no answer within 8s → see whether the standbys or replicas", "--store", url)
		first.Resume()
		second := servers.PostgresStandby(d, server, "-c", "cluster_name=b")
		d.set(server, "synchronous_standby_names", "a, b")
		d.finds("doubtful", "replicas", "promote none but the one that has most", "--store", url)
		d.set(server, "synchronous_standby_names", `a, "b 2 (backup)", b`) // of which a write waits for one
		d.finds("doubtful", "replicas", "promote none but the one that has most", "--store", url)
		second.Kill()
		first.Kill()
		d.finds("bad", "replicas", "start them, or turn the setting off", "--store", url)
		d.finds("bad", "write", "no answer within 8s → see whether the standbys or replicas", "--store", url)
	}
}

// database opens a database with the driver alone.
func (d *doctor) database(driver, source string) *sql.DB {
	d.Helper()
	db, err := sql.Open(driver, source)
	d.must(err)
	d.Cleanup(func() { _ = db.Close() }) // its server may be gone
	return db
}

func (d *doctor) sql(driver, source string, statements ...string) {
	d.Helper()
	db := d.database(driver, source)
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			d.Fatalf("%s: %v", statement, err)
		}
	}
}

func (d *doctor) mariadb(server *servers.Server, statements ...string) {
	d.Helper()
	d.sql("mysql", "root@tcp("+server.Addr()+")/", statements...)
}

func (d *doctor) postgres(server *servers.Server, database string, statements ...string) {
	d.Helper()
	d.sql("pgx", "postgres://postgres@"+server.Addr()+"/"+database+"?sslmode=disable", statements...)
}

// set changes a setting of a PostgreSQL while it runs.
func (d *doctor) set(server *servers.Server, setting, value string) {
	d.Helper()
	d.sql("pgx", "postgres://postgres@"+server.Addr()+"/postgres?sslmode=disable&default_transaction_read_only=off",
		"ALTER SYSTEM SET "+setting+" = '"+value+"'", "SELECT pg_reload_conf()")
}
