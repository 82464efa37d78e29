package etcdstore_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/internal/servers"
	"github.com/firn-id/firn/store"
)

// A giver is a proxy that passes calls on, and gives up waiting for the answer to a write.
type giver struct {
	pb.UnimplementedKVServer
	to   pb.KVClient
	says codes.Code // of the next write; 0: it waits
	txns atomic.Int64
}

func (g *giver) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	return g.to.Range(ctx, r)
}

func (g *giver) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	answer, err := g.to.Txn(ctx, r)
	if g.txns.Add(1) == 1 && g.says != 0 {
		return nil, status.Error(g.says, "the proxy does not wait any longer")
	}
	return answer, err
}

func newGiver(t *testing.T, server *servers.Server, says codes.Code) (*giver, string) {
	t.Helper()
	g := &giver{to: pb.NewKVClient(raw(t, server, "", "").ActiveConnection()), says: says}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := grpc.NewServer()
	pb.RegisterKVServer(front, g)
	go func() { _ = front.Serve(l) }() // until the test ends
	t.Cleanup(front.Stop)
	return g, l.Addr().String()
}

// A write that is repeated finds that it was applied, which would look as if another had
// been quicker.
func TestAWriteIsNotRepeatedOnceItMayHaveBeenApplied(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Unknown, codes.ResourceExhausted} {
		g, address := newGiver(t, server, code)
		s := open(t, "etcd://"+address+"/"+code.String())
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
