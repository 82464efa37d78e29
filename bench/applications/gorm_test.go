package applications_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/libtnb/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/firn-id/firn"
)

// Item is a model of gorm.
type Item struct {
	ID   Key `gorm:"primaryKey"`
	Name string
}

// FillKeys makes db fill the keys of type Key that are empty, of single rows and of batches.
func FillKeys(db *gorm.DB, ids IDs) error {
	return db.Callback().Create().Before("gorm:before_create").Register("firn:keys", func(tx *gorm.DB) {
		if tx.Error != nil || tx.Statement.Schema == nil {
			return
		}
		field := tx.Statement.Schema.PrioritizedPrimaryField
		if field == nil || field.FieldType != reflect.TypeFor[Key]() {
			return
		}
		fill := func(row reflect.Value) {
			if _, empty := field.ValueOf(tx.Statement.Context, row); !empty {
				return
			}
			id, err := ids.Next(tx.Statement.Context)
			if err == nil {
				err = field.Set(tx.Statement.Context, row, Key{id})
			}
			tx.AddError(err)
		}
		switch rows := tx.Statement.ReflectValue; rows.Kind() {
		case reflect.Slice, reflect.Array:
			for i := 0; i < rows.Len() && tx.Error == nil; i++ {
				fill(reflect.Indirect(rows.Index(i)))
			}
		case reflect.Struct:
			fill(rows)
		}
	})
}

// open returns a connection of gorm to a database.
func open(t *testing.T) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: database(t)}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// declared returns the statement that created a table.
func declared(t *testing.T, db *gorm.DB, table string) (statement string) {
	t.Helper()
	if err := db.Raw(`SELECT sql FROM sqlite_master WHERE name = ?`, table).Scan(&statement).Error; err != nil {
		t.Fatal(err)
	}
	return statement
}

func TestGormFillsKeys(t *testing.T) {
	db := open(t)
	if err := FillKeys(db, generator(t)); err != nil {
		t.Fatal(err)
	}
	if err := db.AutoMigrate(&Item{}); err != nil {
		t.Fatal(err)
	}
	if s := declared(t, db, "items"); strings.Contains(s, "AUTOINCREMENT") || !strings.Contains(s, "`id` bigint") {
		t.Errorf("the table is declared as %s", s)
	}
	one := Item{Name: "one"}
	batch := []Item{{Name: "two"}, {Name: "three"}}
	pointers := []*Item{{Name: "four"}, {Name: "five"}}
	for _, rows := range []any{&one, &batch, &pointers} {
		if err := db.Create(rows).Error; err != nil {
			t.Fatal(err)
		}
	}
	conn, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	ids := stored(t, conn, "items", 5)
	for i, item := range []Item{one, batch[0], batch[1], *pointers[0], *pointers[1]} {
		if item.ID.ID != ids[i] {
			t.Errorf("%s has the id %v in memory, and %v in the table", item.Name, item.ID, ids[i])
		}
	}
	var found Item
	if err := db.First(&found, ids[1]).Error; err != nil || found.Name != "two" {
		t.Errorf("found %v (%v)", found, err)
	}
	chosen := Item{ID: Key{ids[4] + 1}, Name: "six"}
	if err := db.Create(&chosen).Error; err != nil || chosen.ID.ID != ids[4]+1 {
		t.Errorf("a key that was set became %v (%v)", chosen.ID, err)
	}
}

func TestGormInsertsNoRowWithoutAnID(t *testing.T) {
	db := open(t)
	if err := db.AutoMigrate(&Item{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Create(&Item{Name: "x"}).Error; err == nil || !strings.Contains(err.Error(), "primary key is empty") {
		t.Errorf("without FillKeys: %v", err)
	}
	if err := FillKeys(db, failing{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Create(&[]Item{{Name: "x"}, {Name: "y"}}).Error; !errors.Is(err, firn.ErrFence) {
		t.Errorf("without ids: %v", err)
	}
	conn, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	stored(t, conn, "items", 0)
}

// TestGormDeclaresIntegersAutoincrement shows what the type Key prevents.
func TestGormDeclaresIntegersAutoincrement(t *testing.T) {
	type Plain struct{ ID int64 }
	type Bare struct{ ID firn.ID }
	type Tagged struct {
		ID firn.ID `gorm:"primaryKey;autoIncrement:false"`
	}
	db := open(t)
	for _, test := range []struct {
		table         string
		model         func() any
		autoincrement bool
	}{
		{"plains", func() any { return &Plain{} }, true},
		{"bares", func() any { return &Bare{} }, true},
		{"taggeds", func() any { return &Tagged{} }, false},
	} {
		if err := db.AutoMigrate(test.model()); err != nil {
			t.Fatal(err)
		}
		if s := declared(t, db, test.table); strings.Contains(s, "AUTOINCREMENT") != test.autoincrement {
			t.Errorf("%s is declared as %s", test.table, s)
		}
		// An empty key is inserted in silence: as 1 with AUTOINCREMENT, without it as 0.
		if err := db.Create(test.model()).Error; err != nil {
			t.Fatal(err)
		}
		var ids []int64
		if err := db.Table(test.table).Pluck("id", &ids).Error; err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int64{true: 1, false: 0}[test.autoincrement]; !slices.Equal(ids, []int64{want}) {
			t.Errorf("%s has the ids %v, want %d", test.table, ids, want)
		}
		if err := db.Create(test.model()).Error; (err == nil) != test.autoincrement {
			t.Errorf("%s: a second empty key: %v", test.table, err)
		}
	}
}
