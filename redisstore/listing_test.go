package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/dial"
	"github.com/firn-id/firn/store/storetest/servers"
)

// long writes a listing of 2.4 MB.
func long(t *testing.T, s *redisstore.Store) (registers int) {
	t.Helper()
	for registers < 40 {
		if _, err := s.CompareAndSwap(t.Context(), fmt.Sprint("big/", registers), 0, make([]byte, 60<<10)); err != nil {
			t.Fatal(err)
		}
		registers++
	}
	return registers
}

func TestAListingThatIsCutOffStopsNoOther(t *testing.T) {
	t.Parallel()
	proxy := servers.NewProxy(t, servers.Redis(t).Addr(), nil)
	cut, other := open(t, "redis://"+proxy.Addr()), open(t, "redis://"+servers.Redis(t).Addr())
	want := long(t, cut)
	long(t, other)
	proxy.After(3<<19, proxy.Cut)
	if list, err := cut.List(t.Context(), "big/"); err == nil {
		t.Errorf("%d registers through a connection that ended", len(list))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	var group sync.WaitGroup
	for _, s := range []*redisstore.Store{cut, cut, other, other} {
		group.Go(func() {
			if list, err := s.List(ctx, "big/"); err != nil || len(list) != want {
				t.Errorf("afterwards: %d registers, %v", len(list), err)
			}
		})
	}
	group.Wait()
}

// A register has one member. A server that sends 20 for one is not believed, and not read to the end.
func TestOnlyAListingIsReadPastAMegabyte(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	s := open(t, "redis://"+server.Addr())
	op := raw(t, server.Addr())
	for i := range 20 {
		member := fmt.Sprintf("k\x00%016x\n%s", i+1, strings.Repeat("x", 60<<10))
		if err := op.ZAdd(t.Context(), "firn", redis.Z{Member: member}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, dial.ErrMalformed) || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Errorf("a register: %v", err)
	}
	if _, err := s.List(t.Context(), "k"); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a listing: %v", err)
	}
}
