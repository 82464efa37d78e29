package sql

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/cli"
)

// formulaLayouts differ in widths, unit, epoch and order.
var formulaLayouts = []string{
	"firn", "twitter", "discord", "sonyflake", "uid-generator", "mastodon", "js53",
	"36/3/7/11,unit=10ms,epoch=2020-02-29T12:34:56.789Z,order=sequence-worker", "61/0/1/1,unit=1us,epoch=1969-07-20", "63/0/0/0",
}

// TestTheFormulaOfALayoutDecodesItsIds runs what firn layout --formula prints, in sessions with another time zone.
func TestTheFormulaOfALayoutDecodesItsIds(t *testing.T) {
	both(t, func(t *testing.T, e engine) {
		name, zone := "mysql", "time_zone=%27%2B08%3A00%27"
		if e.driver == "pgx" {
			name, zone = "postgres", "timezone=Asia/Shanghai"
		}
		db := e.connect(t, e.source(e.admin(), e.fresh(t, "formula"), zone))
		exec := func(statement string, args ...any) {
			t.Helper()
			if _, err := db.Exec(statement, args...); err != nil {
				t.Fatal(err)
			}
		}
		exec("CREATE TABLE orders (id BIGINT)")
		random := rand.New(rand.NewPCG(7, 22))
		for _, text := range formulaLayouts {
			t.Run(text, func(t *testing.T) {
				l, err := firn.ParseLayout(text)
				if err != nil {
					t.Fatal(err)
				}
				exec("DELETE FROM orders")
				ids := someIDs(l, random)
				for _, id := range ids {
					exec("INSERT INTO orders VALUES (" + id.String() + ")")
				}
				decoding, _, found := strings.Cut(formula(t, text, name), ";")
				if !found {
					t.Fatal(decoding)
				}
				if got := decoded(t, db, l, decoding); got != len(ids) {
					t.Errorf("%d rows, want %d", got, len(ids))
				}
				for _, id := range ids {
					at := l.Time(tickOf(t, l, id)).Add(time.Duration(random.Int64N(int64(l.Unit()))).Truncate(time.Microsecond))
					_, span, _ := strings.Cut(formula(t, text, name, "--at", at.Format(time.RFC3339Nano)), ";")
					lo, hi, err := l.Span(l.Time(tickOf(t, l, id)), l.Time(tickOf(t, l, id)+1))
					if err != nil {
						t.Fatal(err)
					}
					var smallest, largest firn.ID
					if err := db.QueryRow(strings.TrimSuffix(strings.TrimSpace(span), ";")).Scan(&smallest, &largest); err != nil {
						t.Fatalf("%v: %s", err, span)
					}
					if smallest != lo || largest != hi {
						t.Errorf("ids of %v: %d to %d, want %d to %d: %s", at, smallest, largest, lo, hi, span)
					}
				}
			})
		}
	})
}

// formula returns what firn layout prints.
func formula(t *testing.T, layout, name string, args ...string) string {
	t.Helper()
	var out, mistakes bytes.Buffer
	if status := cli.Main(append([]string{"layout", layout, "--formula", name}, args...), strings.NewReader(""), &out, &mistakes); status != 0 {
		t.Fatalf("firn layout %s: %s", layout, mistakes.String())
	}
	return out.String()
}

// someIDs returns the least id, and some of the first 230 years: PostgreSQL multiplies intervals in floating point, which
// is exact for 285 years of microseconds.
func someIDs(l firn.Layout, random *rand.Rand) []firn.ID {
	const most = 230 * 365 * 24 * time.Hour
	ids := []firn.ID{0}
	_, hi, err := l.Span(l.Epoch(), l.Epoch().Add(most))
	if err != nil {
		panic(err)
	}
	for range 20 {
		ids = append(ids, firn.ID(random.Int64N(int64(hi))))
	}
	return ids
}

func tickOf(t *testing.T, l firn.Layout, id firn.ID) firn.Tick {
	t.Helper()
	p, err := l.Decompose(id)
	if err != nil {
		t.Fatal(err)
	}
	return p.Tick
}

// decoded runs a statement, compares each row with the library, and returns how many there are.
func decoded(t *testing.T, db *sql.DB, l firn.Layout, statement string) (n int) {
	t.Helper()
	rows, err := db.Query(statement)
	if err != nil {
		t.Fatalf("%v: %s", err, statement)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		n++
		got := map[string]string{}
		for i, column := range columns {
			got[column] = values[i]
		}
		id, err := strconv.ParseInt(got["id"], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Decompose(firn.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse("2006-01-02 15:04:05", got["time"]) // MySQL
		if err != nil {
			at, err = time.Parse(time.RFC3339, got["time"]) // PostgreSQL's driver
		}
		if err != nil || !at.Equal(l.Time(p.Tick)) {
			t.Errorf("%d: time %s, want %v: %v: %s", id, got["time"], l.Time(p.Tick), err, statement)
		}
		want := map[string]int64{"tick": int64(p.Tick), "datacenter": p.Datacenter, "worker": p.Worker, "sequence": p.Sequence}
		for field, value := range want {
			if text, ok := got[field]; ok && text != fmt.Sprint(value) || !ok && value != 0 {
				t.Errorf("%d: %s %q, want %d: %s", id, field, text, value, statement)
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}
