package etcdstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// All tokens end, as after a restart, while one of two members hangs. Newcomers wait 12 s for a holder.
func TestALoginGoesToAnotherMemberIfOneHangs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := servers.Etcd(t)
	requireUser(t, server)
	hangs, answers := servers.NewProxy(t, server.Addr(), nil), servers.NewProxy(t, server.Addr(), nil)
	s := open(t, "etcd://root:geheim@"+hangs.Addr()+","+answers.Addr())
	root := raw(t, server, "root", "geheim")
	silent := servers.Silent(t)
	hangs.Choose(func(int) string { return silent })
	hangs.Silence()
	must[*clientv3.AuthUserChangePasswordResponse](t)(root.UserChangePassword(ctx, "root", "geheim"))
	for begun := time.Now(); ; {
		look, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := s.Get(look, "k")
		cancel()
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if took := time.Since(begun); took > 11*time.Second {
			t.Fatalf("no call was answered for %v: %v", took, err)
		}
	}
}
