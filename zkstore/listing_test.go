package zkstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// The connection of another store is lost within a listing of 2.4 MB. A lease looks at its slot while listings are made.
func TestALeaseLooksWhileListingsAreCutOff(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	proxy := servers.NewProxy(t, server.Addr(), nil)
	other, s := open(t, "zookeeper://"+proxy.Addr()), open(t, "zookeeper://"+server.Addr())
	const registers = 40
	for i := range registers {
		if _, err := s.CompareAndSwap(t.Context(), fmt.Sprint("big/", i), 0, make([]byte, 60<<10)); err != nil {
			t.Fatal(err)
		}
	}
	proxy.After(3<<19, proxy.Cut)
	cut, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if list, err := other.List(cut, "big/"); err == nil && len(list) != registers { // it may be made again meanwhile
		t.Errorf("%d registers through a connection that ended", len(list))
	}
	listed := make(chan error, 1)
	go func() {
		list, err := s.List(t.Context(), "big/")
		if err == nil && len(list) != registers {
			err = fmt.Errorf("%d registers", len(list))
		}
		listed <- err
	}()
	for {
		ctx, cancel := context.WithTimeout(store.Urgent(t.Context()), 2*time.Second)
		_, err := s.Get(ctx, "slot")
		cancel()
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a look: %v", err)
		}
		select {
		case err := <-listed:
			if err != nil {
				t.Errorf("a listing: %v", err)
			}
			return
		default:
		}
	}
}
