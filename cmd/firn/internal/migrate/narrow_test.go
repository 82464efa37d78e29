package migrate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/segment/leaf"
	"github.com/firn-id/firn/segment/tinyid"
	"github.com/firn-id/firn/store/storetest/servers"
)

// Without strict mode, MariaDB stores the greatest value of a column instead of a greater one,
// and reports success.
func TestARangeThatItsColumnCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	server := servers.MariaDB(t)
	for i, kind := range []string{"int", "int unsigned", "mediumint", "decimal(10)"} {
		most := []int64{1<<31 - 1, 1<<32 - 1, 1<<23 - 1, 9_999_999_999}[i]
		t.Run(kind, func(t *testing.T) {
			name := fmt.Sprintf("narrow%d", i)
			run(t, openDatabase(t, server, ""), "CREATE DATABASE "+name)
			db := openDatabase(t, server, name, "sql_mode=''")
			run(t, db, leafDDL, infoDDL, leafRow, infoRows, "ALTER TABLE leaf_alloc MODIFY max_id "+kind, "ALTER TABLE tiny_id_info MODIFY max_id "+kind)
			run(t, db, fmt.Sprintf("UPDATE leaf_alloc SET max_id = %d", most-150), fmt.Sprintf("UPDATE tiny_id_info SET max_id = %d", most-150))
			for what, s := range map[string]func(*sql.DB) segment.Source{
				"leaf-segment-test": func(db *sql.DB) segment.Source { return &leaf.Source{DB: db} },
				"test":              func(db *sql.DB) segment.Source { return &tinyid.Source{DB: db} },
			} {
				seen := map[firn.ID]bool{}
				for range 5 {
					r, err := s(db).Fetch(t.Context(), what, segment.Ask{Step: 100, Above: -1}) // as a new process
					if err != nil {
						says(t, what, err, "max_id", "BIGINT")
						continue
					}
					for id := range r.All() {
						if seen[id] || id <= firn.ID(most-151) {
							t.Fatalf("%s: %d was issued twice", what, id)
						}
						seen[id] = true
					}
				}
				if len(seen) != 100 {
					t.Errorf("%s: %d ids, want 100", what, len(seen))
				}
			}
		})
	}
}

func TestLeafIssuesItsLastIDsAndThenIsExhausted(t *testing.T) {
	t.Parallel()
	db := tables(t)(t, leafDDL, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('last', 9223372036854775800, 1)")
	s := &leaf.Source{DB: db}
	want(t, s, "last", segment.Ask{Step: 100, Above: -1}, "9223372036854775800 to 9223372036854775806")
	if _, err := s.Fetch(t.Context(), "last", segment.Ask{Step: 100, Above: -1}); !errors.Is(err, segment.ErrExhausted) {
		t.Errorf("beyond the last id: %v", err)
	}
	run(t, db, "UPDATE leaf_alloc SET max_id = 5")
	want(t, &leaf.Source{DB: db}, "last", segment.Ask{Step: 100, Above: firn.MaxID - 3}, "9223372036854775805 to 9223372036854775806")
}
