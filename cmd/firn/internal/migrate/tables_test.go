package migrate_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/firn-id/firn/store/storetest/servers"
)

// The tables as the projects create them.
const (
	leafDDL = `CREATE TABLE leaf_alloc (
		biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint(20) NOT NULL DEFAULT '1', step int(11) NOT NULL,
		description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
		PRIMARY KEY (biz_tag)) ENGINE=InnoDB`
	infoDDL = `CREATE TABLE tiny_id_info (
		id bigint(20) unsigned NOT NULL AUTO_INCREMENT, biz_type varchar(63) NOT NULL DEFAULT '', begin_id bigint(20) NOT NULL DEFAULT '0',
		max_id bigint(20) NOT NULL DEFAULT '0', step int(11) DEFAULT '0', delta int(11) NOT NULL DEFAULT '1', remainder int(11) NOT NULL DEFAULT '0',
		create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
		version bigint(20) NOT NULL DEFAULT '0', PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type)) ENGINE=InnoDB`
	tokenDDL = `CREATE TABLE tiny_id_token (
		id int(11) unsigned NOT NULL AUTO_INCREMENT, token varchar(255) NOT NULL DEFAULT '', biz_type varchar(63) NOT NULL DEFAULT '',
		remark varchar(255) NOT NULL DEFAULT '', create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
		update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', PRIMARY KEY (id)) ENGINE=InnoDB`

	leafRow  = `INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('leaf-segment-test', 1, 2000, 'Test leaf Segment Mode Get Id')`
	infoRows = `INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, create_time, update_time, version) VALUES
		('test', 1, 1, 100000, 1, 0, now(), now(), 1), ('test_odd', 1, 1, 100000, 2, 1, now(), now(), 3)`
	tokenRows = `INSERT INTO tiny_id_token (token, biz_type, remark) VALUES
		('0f673adf80504e2eaa552f5d791b644c', 'test', '1'), ('0f673adf80504e2eaa552f5d791b644c', 'test_odd', '1')`
)

// tables starts a server and returns a function that creates a database in it and runs
// statements there.
func tables(t *testing.T) func(t *testing.T, statements ...string) *sql.DB {
	t.Helper()
	server := servers.MariaDB(t)
	admin := openDatabase(t, server, "")
	made := 0
	return func(t *testing.T, statements ...string) *sql.DB {
		t.Helper()
		made++
		name := fmt.Sprintf("db%d", made)
		run(t, admin, "CREATE DATABASE "+name)
		db := openDatabase(t, server, name)
		run(t, db, statements...)
		return db
	}
}

func openDatabase(t *testing.T, server *servers.Server, name string, settings ...string) *sql.DB {
	t.Helper()
	cfg := mysql.NewConfig()
	cfg.Logger = &mysql.NopLogger{} // the driver would log cut connections, which tests cause themselves
	cfg.Params = map[string]string{}
	for _, setting := range settings {
		before, after, _ := strings.Cut(setting, "=")
		cfg.Params[before] = after
	}
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName = "root", "tcp", server.Addr(), name
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func run(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// says checks that an error contains all words.
func says(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v does not say %q", what, err, word)
		}
	}
}
