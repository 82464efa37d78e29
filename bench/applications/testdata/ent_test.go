// The test TestTheRecipeOfEntRuns generates the packages below ent, and runs these tests.

package applications_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/bench/applications/ent"
	"github.com/firn-id/firn/bench/applications/ent/invoice"
)

// newKeys is a hook of ent that fills the key of each new row that has none.
func newKeys(ids IDs) ent.Hook {
	return func(next ent.Mutator) ent.Mutator {
		return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
			row, ok := m.(interface {
				ID() (int64, bool)
				SetID(id int64)
			})
			if !ok || !m.Op().Is(ent.OpCreate) {
				return next.Mutate(ctx, m)
			}
			if _, filled := row.ID(); !filled {
				id, err := ids.Next(ctx)
				if err != nil {
					return nil, err
				}
				row.SetID(int64(id))
			}
			return next.Mutate(ctx, m)
		})
	}
}

// addInvoices inserts invoices in one statement of ent.
func addInvoices(ctx context.Context, client *ent.Client, what ...string) ([]*ent.Invoice, error) {
	return client.Invoice.MapCreateBulk(what, func(create *ent.InvoiceCreate, i int) {
		create.SetWhat(what[i])
	}).Save(ctx)
}

// entClient returns a client of ent, the source of whose keys is ids.
func entClient(t *testing.T, ids IDs) (*ent.Client, *sql.DB) {
	t.Helper()
	db := database(t)
	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.SQLite, db)))
	client.Use(newKeys(ids))
	if err := client.Schema.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client, db
}

func TestEntFillsKeys(t *testing.T) {
	client, db := entClient(t, generator(t))
	var statement string
	if err := db.QueryRowContext(t.Context(), `SELECT sql FROM sqlite_master WHERE name = 'invoices'`).Scan(&statement); err != nil ||
		strings.Contains(strings.ToUpper(statement), "AUTOINCREMENT") {
		t.Errorf("the table is declared as %s (%v)", statement, err)
	}
	one, err := client.Invoice.Create().SetWhat("one").Save(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := client.Tx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	more, err := addInvoices(t.Context(), tx.Client(), "two", "three")
	if err := errors.Join(err, tx.Commit()); err != nil {
		t.Fatal(err)
	}
	ids := stored(t, db, "invoices", 3)
	for i, made := range append([]*ent.Invoice{one}, more...) {
		found, err := client.Invoice.Query().Where(invoice.ID(int64(ids[i]))).Only(t.Context())
		if err != nil || found.ID != made.ID || found.What != made.What {
			t.Errorf("found %v (%v), want %v", found, err, made)
		}
	}
	text, err := json.Marshal(one)
	if want := `{"id":"` + ids[0].String() + `","what":"one"}`; err != nil || string(text) != want {
		t.Errorf("as JSON it is %s (%v), want %s", text, err, want)
	}
	chosen, err := client.Invoice.Create().SetID(int64(ids[2] + 1)).SetWhat("four").Save(t.Context())
	if err != nil || chosen.ID != int64(ids[2]+1) {
		t.Errorf("a key that was set became %v (%v)", chosen, err)
	}
	if err := chosen.Update().SetWhat("five").Exec(t.Context()); err != nil {
		t.Error(err)
	}
	stored(t, db, "invoices", 4)
}

func TestEntInsertsNoRowWithoutAnID(t *testing.T) {
	client, db := entClient(t, failing{})
	if err := client.Invoice.Create().SetWhat("x").Exec(t.Context()); !errors.Is(err, firn.ErrFence) {
		t.Errorf("error %v", err)
	}
	if _, err := addInvoices(t.Context(), client, "x", "y"); !errors.Is(err, firn.ErrFence) {
		t.Errorf("error %v", err)
	}
	if err := client.Invoice.Update().SetWhat("x").Exec(t.Context()); err != nil {
		t.Errorf("an update needs no id: %v", err)
	}
	stored(t, db, "invoices", 0)
}
