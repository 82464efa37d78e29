package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// A server that describes half of a namespace, and gives no ids, does not change what another says of it.
func TestTheKindIsThatOfOneAnswer(t *testing.T) {
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/namespaces/") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"name":"x","prefix":"ord","veil":{"bits":63}}`)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer half.Close()
	var last atomic.Int64
	whole := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/namespaces/") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"snowflake"}`)
			return
		}
		var count int
		if _, err := fmt.Sscan(r.URL.Query().Get("count"), &count); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Firn-Once", r.URL.Query().Get("once"))
		for range count {
			fmt.Fprintln(w, last.Add(1))
		}
	}))
	defer whole.Close()
	for i := range 8 { // a client begins with one of them at random
		c, err := client.New(client.Config{Servers: []string{half.URL, whole.URL}})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := c.IDs("x")
		if err != nil {
			t.Fatal(err)
		}
		if id, err := ids.Next(t.Context()); err != nil {
			t.Errorf("client %d: %d, %v", i, id, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A caller's cause may be an error that the client has a meaning for.
func TestACallersCauseIsNotTheClientsEnd(t *testing.T) {
	asked := make(chan struct{}, 100)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer silent.Close()
	c, err := client.New(client.Config{Servers: []string{silent.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	texts, err := c.Texts("x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(firn.ErrClosed)
	}()
	if _, err := texts.Fetch(ctx, 1); !errors.Is(err, context.Canceled) || !errors.Is(err, firn.ErrClosed) {
		t.Error(err)
	}
}
