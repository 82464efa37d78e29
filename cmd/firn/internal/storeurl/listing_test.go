package storeurl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// at is the URL of a database at an address.
var at = map[string]func(addr string) string{
	"postgres": func(addr string) string { return "postgres://postgres:@" + addr + "/postgres?sslmode=disable" },
	"mysql":    func(addr string) string { return "mysql://root:@" + addr + "/shop" },
}

// database starts a server.
func database(t *testing.T, kind string) (addr string) {
	t.Helper()
	if kind == "postgres" {
		return servers.Postgres(t).Addr()
	}
	server := servers.MariaDB(t)
	op, err := storeurl.OpenMySQL("mysql://root:@" + server.Addr() + "/mysql")
	if err == nil {
		_, err = op.Exec("CREATE DATABASE shop")
		err = errors.Join(err, op.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return server.Addr()
}

func TestAListingThatStallsStopsNoOther(t *testing.T) {
	t.Parallel()
	for kind, url := range at {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			addr := database(t, kind)
			proxy := servers.NewProxy(t, addr, nil)
			open := func(addr string) store.Store {
				s, err := storeurl.Open(t.Context(), url(addr))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
				return s
			}
			far, near := open(proxy.Addr()), open(addr)
			const registers = 50 // 3 MB
			for i := range registers {
				if _, err := near.CompareAndSwap(t.Context(), fmt.Sprint("big/", i), 0, make([]byte, 60<<10)); err != nil {
					t.Fatal(err)
				}
			}
			stalls, goOn := make(chan struct{}), make(chan struct{})
			proxy.After(3<<19, func() {
				close(stalls)
				<-goOn
			})
			waits, end := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() {
				if list, err := far.List(waits, "big/"); !errors.Is(err, context.Canceled) {
					t.Errorf("given up: %d registers, %v", len(list), err)
				}
			})
			<-stalls
			complete := func(when string, s store.Store) {
				ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
				defer cancel()
				if list, err := s.List(ctx, "big/"); err != nil || len(list) != registers {
					t.Errorf("%s: %d registers, %v", when, len(list), err)
				}
			}
			complete("from another store meanwhile", near)
			end()
			group.Wait()
			complete("afterwards", far)
			close(goOn)
		})
	}
}
