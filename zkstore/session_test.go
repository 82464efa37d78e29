package zkstore

import (
	"context"
	"testing"

	"github.com/firn-id/firn/store/storetest/servers"
)

// A session that was replaced between the sync and the read may be on a server that is behind.
func TestAReadOverAnotherConnectionThanWasSyncedIsMadeAgain(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), "zookeeper://"+servers.ZooKeeper(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	read := 0
	got, err := synced(s, func(context.Context) (int, error) {
		if read++; read == 1 {
			fresh, err := connect(s.servers, s.dialer)
			if err != nil {
				return 0, err
			}
			s.conn.Swap(fresh).Close()
		}
		return read, nil
	})(t.Context())
	if err != nil || got != 2 {
		t.Errorf("it was read %d times, %v", got, err)
	}
}
