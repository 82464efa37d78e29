package etcdstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/servers"
	"github.com/firn-id/firn/store"
)

// Calls go to the members named in turn: a read to one cluster, the write over it to the other.
func TestMembersOfTwoClustersAreNotOneStore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, other := servers.Etcd(t), servers.Etcd(t, "--initial-cluster-token=other")
	url := "etcd://" + first.Addr() + "," + other.Addr()
	expect(t, "both are there", try(url), store.ErrUnavailable, "of the cluster", "name members of one")

	other.Kill()
	s := open(t, url)
	e, err := s.CompareAndSwap(ctx, "k", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	other.Restart()
	for ; err == nil; _, err = s.Get(ctx, "k") {
	}
	expect(t, "the other came later", err, store.ErrUnavailable, "name members of one")

	first.Kill()
	for !errors.Is(err, store.ErrNotFound) { // it took the place of the first
		if _, err = s.Get(ctx, "k"); err == nil || ctx.Err() != nil {
			t.Fatalf("the other is alone: %v", err)
		}
	}
	made, err := s.CompareAndSwap(ctx, "k", 0, nil)
	if err != nil || made.Life == e.Life {
		t.Errorf("%+v, %v", made, err)
	}
}
