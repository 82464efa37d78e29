package migrate_test

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/leaf"
	"github.com/firn-id/firn/segment/tinyid"
)

func TestReadingTables(t *testing.T) {
	t.Parallel()
	fresh := tables(t)

	t.Run("as their projects fill them", func(t *testing.T) {
		db := fresh(t, leafDDL, leafRow, infoDDL, infoRows, tokenDDL, tokenRows)
		rows, err := leaf.Read(t.Context(), db)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%+v, %v", rows, err)
		}
		if want := (leaf.Row{Tag: "leaf-segment-test", MaxID: 1, Step: 2000}); rows[0] != want {
			t.Errorf("%+v, want %+v", rows[0], want)
		}
		infos, err := tinyid.Read(t.Context(), db)
		if err != nil || len(infos) != 2 {
			t.Fatalf("%+v, %v", infos, err)
		}
		if want := (tinyid.Row{ID: 2, Type: "test_odd", MaxID: 1, Step: 100000, Delta: 2, Remainder: 1, Version: 3}); infos[1] != want {
			t.Errorf("%+v, want %+v", infos[1], want)
		}
		run(t, db, `INSERT INTO tiny_id_token (token, biz_type) VALUES ('', 'test')`)
		tokens, err := tinyid.ReadTokens(t.Context(), db)
		if err != nil || len(tokens) != 2 || tokens[0].SHA256 != tokens[1].SHA256 || tokens[1].Type != "test_odd" {
			t.Errorf("%+v, %v", tokens, err)
		}
	})

	// A row that is left out would begin at 1 again.
	t.Run("all rows, in spite of the session's sql_select_limit", func(t *testing.T) {
		db := fresh(t, leafDDL, `INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 1, 1), ('b', 1, 1), ('c', 1, 1)`)
		db.SetMaxOpenConns(1)
		run(t, db, "SET sql_select_limit = 1")
		rows, err := leaf.Read(t.Context(), db)
		if err != nil || len(rows) != 3 {
			t.Errorf("%+v, %v", rows, err)
		}
		run(t, db, "ALTER TABLE leaf_alloc DROP PRIMARY KEY", "UPDATE leaf_alloc SET biz_tag = 'a'")
		_, err = (&leaf.Source{DB: db}).Fetch(t.Context(), "a", segment.Ask{Step: 1})
		says(t, "one tag", err, "3 rows with that biz_tag")
	})

	t.Run("missing tables and columns", func(t *testing.T) {
		db := fresh(t, `CREATE TABLE leaf_alloc (biz_tag varchar(9), max_id bigint)`, `CREATE TABLE tiny_id_info (id bigint)`)
		_, err := leaf.Read(t.Context(), db)
		says(t, "columns", err, "table leaf_alloc of database", "no column step: it is")
		_, err = tinyid.Read(t.Context(), db)
		says(t, "columns", err, "no column biz_type, max_id")
		_, err = tinyid.ReadTokens(t.Context(), db)
		says(t, "table", err, "has no table tiny_id_token", "name the database")
	})

	t.Run("every bad row is named", func(t *testing.T) {
		db := fresh(t, `CREATE TABLE leaf_alloc (biz_tag varchar(200), max_id decimal(30,1), step varchar(20), description text, update_time datetime)`,
			`INSERT INTO leaf_alloc VALUES ('null', NULL, '1', NULL, NULL), ('negative', -5, '1', NULL, NULL), ('huge', 99999999999999999999, 'x', NULL, NULL),
				('zero', 1, '0', NULL, NULL), (NULL, 1, '1', NULL, NULL)`,
			`ALTER TABLE leaf_alloc MODIFY max_id decimal(30,0)`)
		_, err := leaf.Read(t.Context(), db)
		says(t, "leaf", err, `row "null": max_id is NULL`, `row "negative": max_id -5 is out of range: 0 to 9223372036854775807`,
			`row "huge": max_id 99999999999999999999 is out of range`, `row "huge": "x" is not a valid whole number: step must be a whole number`,
			`row "zero": step 0 is out of range: 1 to 2147483647`, `row 1: biz_tag is NULL`)
		db = fresh(t, infoDDL, `INSERT INTO tiny_id_info (biz_type, max_id, step, delta, remainder) VALUES ('a', 1, NULL, 1, 0), ('b', -1, 5, 0, 0),
			('c', 1, 5, 2, 2), ('d', 1, 5, 2, -1), ('e', 1, 5, 1048577, 0)`, tokenDDL, `ALTER TABLE tiny_id_token MODIFY token varchar(9)`,
			`INSERT INTO tiny_id_token (token, biz_type) VALUES (NULL, 'test')`)
		_, err = tinyid.Read(t.Context(), db)
		says(t, "tinyid", err, `row "a": step is NULL`, `row "b": max_id -1`, `row "b": delta 0 is out of range: 1 to 1048576`,
			`row "c": remainder 2 is out of range: 0 to 1`, `row "d": remainder -1`, `row "e": delta 1048577`)
		_, err = tinyid.ReadTokens(t.Context(), db)
		says(t, "tokens", err, `row "1": token is NULL`)
		for range 50 {
			run(t, db, `INSERT INTO tiny_id_token (token, biz_type) VALUES (NULL, 'test')`)
		}
		_, err = tinyid.ReadTokens(t.Context(), db)
		says(t, "many", err, "and 31 more")
		if lines := strings.Count(err.Error(), "\n"); lines != 20 {
			t.Errorf("%d lines", lines)
		}
	})
}
