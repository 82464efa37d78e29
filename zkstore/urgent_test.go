package zkstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A server answers the requests of one session in order.
func TestAnUrgentCallDoesNotWaitBehindOtherWrites(t *testing.T) {
	t.Parallel()
	between := newProxy(t, servers.ZooKeeper(t).Addr())
	s := open(t, "zookeeper://"+between.Addr())
	if _, err := s.CompareAndSwap(t.Context(), "k", 0, []byte("v")); err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(begun) })
	between.setHold(func(op int32) {
		if op == multi {
			once()
			<-release
		}
	})
	var group sync.WaitGroup
	group.Go(func() { _, _ = s.CompareAndSwap(t.Context(), "slow", 0, nil) }) // it may lose its connection
	<-begun
	ctx, cancel := context.WithTimeout(store.Urgent(t.Context()), time.Second)
	defer cancel()
	if e, err := s.Get(ctx, "k"); err != nil || string(e.Value) != "v" {
		t.Errorf("%q, %v", e.Value, err)
	}
	close(release)
	group.Wait()
}
