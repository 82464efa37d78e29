package applications_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jmoiron/sqlx"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/sqlstore"
)

// run is the program: it opens the database, leases a worker in it, and serves until ctx ends.
func run(ctx context.Context, path string, listener net.Listener) (err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	store, err := sqlstore.Create(ctx, db, sqlstore.SQLite)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	defer func() { err = errors.Join(err, store.Close()) }() // closes db too
	ids, err := lease.Open(ctx, lease.Config{Store: store, Log: slog.Default()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ids.Close(context.WithoutCancel(ctx))) }() // before the store
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, what TEXT NOT NULL)`); err != nil {
		return err
	}
	server := &http.Server{Handler: Handler(NewOrders(db, ids))}
	context.AfterFunc(ctx, func() { server.Shutdown(context.WithoutCancel(ctx)) })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler serves orders with net/http. In JSON an id is a string, which JavaScript does not round.
func Handler(orders *Orders) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		order, err := orders.Add(r.Context(), r.FormValue("what"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		json.NewEncoder(w).Encode(order)
	})
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := firn.ParseID(r.PathValue("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		order, err := orders.Find(r.Context(), id)
		if err != nil {
			http.Error(w, "no such order", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(order)
	})
	return mux
}

// Engine serves orders with gin.
func Engine(orders *Orders) *gin.Engine {
	e := gin.New()
	e.POST("/orders", func(c *gin.Context) {
		order, err := orders.Add(c.Request.Context(), c.PostForm("what"))
		if err != nil {
			c.String(http.StatusServiceUnavailable, err.Error())
			return
		}
		c.JSON(http.StatusCreated, order)
	})
	e.GET("/orders/:id", func(c *gin.Context) {
		id, err := firn.ParseID(c.Param("id"))
		if err != nil {
			c.String(http.StatusBadRequest, err.Error())
			return
		}
		order, err := orders.Find(c.Request.Context(), id)
		if err != nil {
			c.String(http.StatusNotFound, "no such order")
			return
		}
		c.JSON(http.StatusOK, order)
	})
	return e
}

func TestAnIDIsAStringForBrowsers(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	for name, make := range map[string]func(*Orders) http.Handler{
		"net/http": Handler,
		"gin":      func(o *Orders) http.Handler { return Engine(o) },
	} {
		t.Run(name, func(t *testing.T) {
			db := database(t)
			h := make(NewOrders(db, generator(t)))
			ask := func(method, path string) (int, string) {
				r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("what=tea"))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Code, strings.TrimSpace(w.Body.String())
			}
			status, answer := ask(http.MethodPost, "/orders")
			id := stored(t, db, "orders", 1)[0].String()
			want := `{"id":"` + id + `","what":"tea"}`
			if status != http.StatusCreated || answer != want {
				t.Errorf("POST: %d %s, want %s", status, answer, want)
			}
			if status, answer := ask(http.MethodGet, "/orders/"+id); status != http.StatusOK || answer != want {
				t.Errorf("GET: %d %s, want %s", status, answer, want)
			}
			if status, answer := ask(http.MethodGet, "/orders/2e9"); status != http.StatusBadRequest || !strings.Contains(answer, `"2e9"`) {
				t.Errorf("a wrong id: %d %s", status, answer)
			}
			if status, _ := ask(http.MethodGet, "/orders/5"); status != http.StatusNotFound {
				t.Errorf("an unknown id: %d", status)
			}
			if status, answer := func() (int, string) { h = make(NewOrders(db, failing{})); return ask(http.MethodPost, "/orders") }(); status != http.StatusServiceUnavailable {
				t.Errorf("without ids: %d %s", status, answer)
			}
		})
	}
}

// held returns the slots of the default pool that were not returned.
func held(t *testing.T, path string) (slots []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = sqlx.NewDb(db, "sqlite").SelectContext(t.Context(), &slots,
		`SELECT CAST(v AS TEXT) FROM firn_registers WHERE k LIKE 'firn/default/slot/%' AND CAST(v AS TEXT) NOT LIKE '%"free":true%'`)
	if err != nil {
		t.Fatal(err)
	}
	return slots
}

func TestTheProgramLeasesItsWorkerAndReturnsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	caller := http.Client{Timeout: time.Minute} // so that a program that fails to start ends the test
	had := map[firn.ID]bool{}
	for range 2 {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, path, listener) }()
		answer, err := caller.PostForm("http://"+listener.Addr().String()+"/orders", map[string][]string{"what": {"tea"}})
		if err != nil {
			t.Fatal(err)
		}
		if slots := held(t, path); len(slots) != 1 {
			t.Errorf("while it runs these workers are held: %s", slots)
		}
		var order Order
		err = errors.Join(json.NewDecoder(answer.Body).Decode(&order), answer.Body.Close())
		if err != nil || order.ID == 0 || had[order.ID] || order.What != "tea" {
			t.Errorf("order %v (%v)", order, err)
		}
		had[order.ID] = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if slots := held(t, path); len(slots) > 0 {
			t.Errorf("these workers were not returned: %s", slots)
		}
	}
}
