package etcdstore_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A giver is a proxy that forwards calls, and may give up waiting for the answer to a write, or answer no reads.
type giver struct {
	pb.UnimplementedKVServer
	to   pb.KVClient
	says codes.Code  // for the next write; 0: wait for the answer
	away error       // the answer to all calls, which are then not forwarded; nil: forward them
	hung atomic.Bool // reads wait
	dead atomic.Bool // all calls do
	txns atomic.Int64
	gets atomic.Int64
}

func (g *giver) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	g.gets.Add(1)
	if g.hung.Load() || g.dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if g.away != nil {
		return nil, g.away
	}
	return g.to.Range(ctx, r)
}

func (g *giver) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	txns := g.txns.Add(1)
	if g.dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if g.away != nil {
		return nil, g.away
	}
	answer, err := g.to.Txn(ctx, r)
	if txns == 1 && g.says != 0 {
		return nil, status.Error(g.says, "the proxy does not wait any longer")
	}
	return answer, err
}

// front makes a giver pass calls on to a server, and returns its address.
func (g *giver) front(t *testing.T, server *servers.Server) (address string) {
	t.Helper()
	g.to = pb.NewKVClient(raw(t, server, "", "").ActiveConnection())
	front := grpc.NewServer()
	pb.RegisterKVServer(front, g)
	return serving(t, front)
}

// A repeated write finds itself applied, which would look as if another writer had been faster.
func TestAWriteIsNotRepeatedOnceItMayHaveBeenApplied(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Unknown, codes.ResourceExhausted} {
		g := &giver{says: code}
		s := open(t, "etcd://"+g.front(t, server)+"/"+code.String())
		_, err := s.CompareAndSwap(context.Background(), "k", 0, []byte("v"))
		if !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) {
			t.Errorf("%v: %v, want it to be left open", code, err)
		}
		if n := g.txns.Load(); n != 1 {
			t.Errorf("%v: the write was made %d times", code, n)
		}
		if e, err := s.Get(context.Background(), "k"); err != nil || string(e.Value) != "v" {
			t.Errorf("%v: it was not applied: %v", code, err)
		}
	}
}

// Members take turns: a read by a healthy one, the write over it by one that refuses.
func TestAMemberThatDoesNotBeginLeavesACallToTheNext(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	for _, away := range []error{rpctypes.ErrGRPCNotSupportedForLearner, rpctypes.ErrGRPCNoLeader} {
		g := &giver{away: away}
		s := open(t, "etcd://"+server.Addr()+","+g.front(t, server)+"/"+status.Convert(away).Message())
		revision := store.Revision(0)
		for g.txns.Load() < 5 {
			e, err := s.CompareAndSwap(t.Context(), "k", revision, nil)
			if err == nil {
				e, err = s.Get(t.Context(), "k")
			}
			if err != nil {
				t.Fatal(err)
			}
			revision = e.Revision
		}
	}
}

func TestAMemberWithoutALeaderSaysSo(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	s := open(t, "etcd://"+server.Addr())
	// Only one of two members is running.
	must[*clientv3.MemberAddResponse](t)(raw(t, server, "", "").MemberAdd(t.Context(), []string{"http://" + servers.Nowhere(t)}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	for ctx.Err() == nil && (err == nil || !strings.Contains(err.Error(), "no leader")) {
		_, err = s.Get(ctx, "k") // the first read waits while the member believes that it leads
	}
	expect(t, "without a leader", err, store.ErrUnavailable, "no leader", "most of its members must be up")
}

// A client that stays away from a server that is back does not tell it of the workers it holds.
func TestALostServerIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	proxy := servers.NewProxy(t, server.Addr(), nil)
	open(t, "etcd://"+proxy.Addr())
	tried := make(chan struct{}, 100)
	proxy.Choose(func(int) string {
		tried <- struct{}{}
		return server.Addr()
	})
	proxy.Refuse(true)
	const patience = 10 * time.Second // in which a client with the default settings tries five times
	late := time.After(patience)
	for attempt := range 10 {
		select {
		case <-tried:
		case <-late:
			t.Fatalf("%d attempts to connect in %v", attempt, patience)
		}
	}
}
