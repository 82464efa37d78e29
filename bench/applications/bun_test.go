package applications_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
)

// Parcel is a model of bun.
type Parcel struct {
	ID   Key `bun:",pk,type:bigint"`
	Name string
}

// addParcels inserts parcels in one statement of bun.
func addParcels(ctx context.Context, db *bun.DB, ids IDs, parcels []Parcel) error {
	for i := range parcels {
		id, err := ids.Next(ctx)
		if err != nil {
			return err
		}
		parcels[i].ID = Key{id}
	}
	_, err := db.NewInsert().Model(&parcels).Exec(ctx)
	return err
}

func TestBunInsertsABatch(t *testing.T) {
	db := bun.NewDB(database(t), sqlitedialect.New())
	if _, err := db.NewCreateTable().Model((*Parcel)(nil)).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	var statement string
	if err := db.NewRaw(`SELECT sql FROM sqlite_master WHERE name = 'parcels'`).Scan(t.Context(), &statement); err != nil ||
		strings.Contains(statement, "AUTOINCREMENT") || !strings.Contains(statement, `"id" bigint NOT NULL`) {
		t.Errorf("the table is declared as %s (%v)", statement, err)
	}
	parcels := []Parcel{{Name: "first"}, {Name: "second"}}
	if err := addParcels(t.Context(), db, generator(t), parcels); err != nil {
		t.Fatal(err)
	}
	var found []Parcel
	if err := db.NewSelect().Model(&found).Order("id").Scan(t.Context()); err != nil || !slices.Equal(found, parcels) {
		t.Errorf("found %v (%v), want %v", found, err, parcels)
	}
	if _, err := db.NewInsert().Model(&Parcel{Name: "x"}).Exec(t.Context()); err == nil {
		t.Error("a row without a key was inserted")
	}
	stored(t, db.DB, "parcels", 2)
}
