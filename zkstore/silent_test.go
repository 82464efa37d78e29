package zkstore_test

import (
	"testing"

	"github.com/firn-id/firn/store/storetest"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A server may raise the session time-out that a client asks for, and with it the time after which the client
// notices a lost connection: here 27 s.
func TestAHolderIsHeardAfterFewLooksWhenItsConnectionFallsSilent(t *testing.T) {
	t.Parallel()
	proxy := servers.NewProxy(t, servers.ZooKeeper(t, "minSessionTimeout=40000", "maxSessionTimeout=40000").Addr(), nil)
	storetest.FallSilent(t, open(t, "zookeeper://"+proxy.Addr()), proxy.Silence)
}

// As that of a pod that is not ready.
func TestAServerWhoseNameHasNoAddressIsLeftOut(t *testing.T) {
	t.Parallel()
	s := open(t, "zookeeper://gone.invalid:2181,"+servers.ZooKeeper(t).Addr())
	if _, err := s.CompareAndSwap(t.Context(), "k", 0, nil); err != nil {
		t.Error(err)
	}
}
