package doctor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/store/storetest/servers"
)

// folder has what scripts/need-versions installs: make doctor-versions names it.
var folder = flag.String("versions", "", "the folder with servers that Debian lacks, see scripts/need-versions")

func haveVersions() bool { return *folder != "" }

// versions are cases over servers in other versions. Each name is a folder of programs that are called like Debian's.
var versions = map[string]func(*doctor){
	"etcd-3.5.0": func(d *doctor) {
		d.finds("bad", "version", "n1 is an etcd 3.5.0 → it may lose confirmed writes when it is killed, or if it has users: upgrade to 3.4.22, 3.5.6 or later", "--store", "etcd://"+servers.Etcd(d).Addr())
	},
	"nfs": func(d *doctor) {
		itself, err := os.Executable()
		d.must(err)
		guest := &doctor{T: d.T, all: d.all, within: []string{filepath.Join(*folder, "nfs", "within"), itself}}
		guest.refuses("on NFS: its locks do not hold between machines, and ids can be issued twice: put it on a disk of the machine itself, or use Redis", "--store", "sqlite:/run/nfs/firn.db")
	},
	"postgres-10.6": func(d *doctor) {
		_, url := d.olderPostgres()
		d.finds("bad", "durability", "takes that for success: a crash forgets the workers taken last → update PostgreSQL to 10.7, 11.2 or later", "--store", url)
	},
	"postgres-14.3": func(d *doctor) {
		_, url := d.olderPostgres()
		d.finds("bad", "durability", "PostgreSQL 14.3: REINDEX and CREATE INDEX CONCURRENTLY make indexes without some rows: a crash forgets the workers taken last → update PostgreSQL to 14.4 or later, and then REINDEX TABLE firn_registers", "--store", url)
	},
	"postgres-15.4": func(d *doctor) {
		server, url := d.olderPostgres()
		servers.PostgresStandby(d, server, "-c", "cluster_name=a")
		d.set(server, "synchronous_standby_names", "a")
		d.finds("doubtful", "replicas", "but in this version not in the first moments after a restart → update PostgreSQL to 17.5, 16.9, 15.13, 14.18, 13.21 or later", "--store", url)
	},
	"mariadb-10.11.5": func(d *doctor) {
		server := servers.MariaDB(d, "--log-bin", "--server-id=1", "--sync-binlog=1", "--rpl-semi-sync-slave-enabled=1")
		d.mariadb(server, "CREATE DATABASE shop")
		d.finds("bad", "durability", "rpl_semi_sync_slave_enabled ON: a crash forgets the workers taken last → update MariaDB, or leave that off on the primary: at its start after a crash it would undo what it confirmed last",
			"--store", "mysql://root:@"+server.Addr()+"/shop")
	},
	"mysql": func(d *doctor) {
		server := servers.MariaDB(d, "--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
		url := "mysql://root:@" + server.Addr() + "/shop"
		d.mariadb(server, "CREATE DATABASE shop", "ALTER INSTANCE DISABLE INNODB REDO_LOG")
		d.finds("bad", "durability", "the redo log is disabled: a crash forgets the workers taken last → ALTER INSTANCE ENABLE INNODB REDO_LOG", "--store", url)
		d.mariadb(server, "ALTER INSTANCE ENABLE INNODB REDO_LOG", "CREATE USER firn@'%' IDENTIFIED BY '"+password+"'", "GRANT SELECT, INSERT, UPDATE ON shop.* TO firn@'%'")
		account := "mysql://firn:" + password + "@" + server.Addr() + "/shop"
		d.finds("doubtful", "replicas", "unknown → grant PROCESS to have them counted", "--store", account)
		d.mariadb(server, "GRANT PROCESS ON *.* TO firn@'%'")
		d.finds("good", "replicas", "none connected", "--store", account)

		replica := servers.MariaDB(d, "--server-id=2", "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
		d.mariadb(replica, fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='root', SOURCE_AUTO_POSITION=1", server.Port()), "START REPLICA")
		d.finds("bad", "replicas", "turn on semi-synchronous replication", "--store", account)
		follower := "mysql://root:@" + replica.Addr() + "/shop"
		d.finds("doubtful", "role", "two primaries that both answer", "--store", follower)
		d.finds("doubtful", "role", "grant SELECT on performance_schema", "--store", account)
		d.mariadb(server, "GRANT SELECT ON performance_schema.replication_connection_status TO firn@'%'")
		d.finds("good", "role", "a primary that takes writes", "--store", account)
		d.mariadb(server, "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'", "SET GLOBAL rpl_semi_sync_source_enabled = 1")
		d.mariadb(replica, "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'", "SET GLOBAL rpl_semi_sync_replica_enabled = 1", "STOP REPLICA", "START REPLICA")
		d.finds("good", "replicas", "1, which have a write before it is confirmed", "--store", account)
		d.refuses("name the primary", "--store", follower)
		d.mariadb(replica, "SET GLOBAL read_only = 1")
		d.finds("bad", "role", "it is a replica, or read-only", "--store", follower)
	},
}

// overVersions runs the cases of [versions] in turn: each changes where programs are looked up.
func overVersions(t *testing.T, all *transcript) {
	if !haveVersions() {
		return
	}
	for name, run := range versions {
		t.Run(name, func(t *testing.T) {
			programs := filepath.Join(*folder, name)
			t.Setenv("PATH", programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
			t.Setenv("FIRN_POSTGRES_BIN", programs)
			run(&doctor{T: t, all: all})
		})
	}
}

func (d *doctor) olderPostgres() (server *servers.Server, url string) {
	d.Helper()
	server = servers.Postgres(d)
	d.postgres(server, "postgres", "CREATE DATABASE shop")
	return server, "postgres://postgres@" + server.Addr() + "/shop?sslmode=disable"
}
