package etcdstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/firn-id/firn/store"
)

// askTimeout bounds how long members are waited for that are asked for their cluster.
const askTimeout = time.Second

// agree is nil for an answer of the cluster that all others were of. One of another cluster
// counts if all members named that answer are of that: it took the place of the other. Else
// nothing counts until they agree, since members of two clusters are two stores, between
// which calls would alternate.
func (s *Store) agree(ctx context.Context, header *pb.ResponseHeader) error {
	id := header.GetClusterId()
	named := s.client.Endpoints()
	if s.cluster.Load() == id || len(named) == 1 {
		return nil
	}
	s.cluster.Store(0)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	of := make([]uint64, len(named))
	var group sync.WaitGroup
	for i, member := range named {
		group.Go(func() {
			if status, err := s.client.Status(ctx, member); err == nil {
				of[i] = status.Header.GetClusterId()
			}
		})
	}
	group.Wait()
	for i, other := range of {
		if other != 0 && other != id {
			return fmt.Errorf("%w: %s is of the cluster %x, and another that is named of %x: name members of one", store.ErrUnavailable, named[i], other, id)
		}
	}
	s.cluster.Store(id)
	return nil
}
