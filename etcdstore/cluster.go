package etcdstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/store"
)

// calling configures how a client of n members, which take turns, makes each call. It fails instead of
// waiting for a connection, and bounds its answer. A member without a leader says so at once, instead of after 7 s. A call that a
// member did not begin, a write too, goes to the next member, or to the next connection of the only one. A read that a member
// does not answer within patience goes to the next as well, which gets half of that more, since the answer may be large. Nothing else is
// repeated: the client would also repeat what a server or proxy gave up, and a write that was applied would then look like a
// conflict.
func calling(n int) grpc.UnaryClientInterceptor {
	codec := newBounded()
	return func(ctx context.Context, method string, request, answer any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		outgoing := ctx
		if strings.HasPrefix(method, "/etcdserverpb.KV/") {
			outgoing = clientv3.WithRequireLeader(ctx)
		}
		options = append(options, grpc.WaitForReady(false), grpc.ForceCodecV2(codec))
		r, reads := request.(*pb.RangeRequest)
		if !reads || string(r.GetRangeEnd()) == after(string(r.GetKey())) { // it lists nothing
			options = append(options, grpc.MaxCallRecvMsgSize(maxOther))
		}
		call := func(try int) (again bool, err error) {
			var at peer.Peer
			begun, asked, cancel := time.Now(), outgoing, func() {}
			if reads && n > 1 {
				asked, cancel = context.WithTimeout(outgoing, patience+patience/2*time.Duration(try))
			}
			defer cancel()
			err = invoke(asked, method, request, answer, cc, append(options, grpc.Peer(&at))...)
			ended(at, begun, err)
			return turnedAway(err) || err != nil && asked.Err() != nil && ctx.Err() == nil, err
		}
		again, err := true, error(nil)
		for try := 0; try <= n && again; try++ {
			again, err = call(try)
		}
		if code := status.Code(err); (code == codes.Canceled || code == codes.DeadlineExceeded) && ctx.Err() == nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		return err
	}
}

// turnedAway reports whether a member refused a call before it began to execute it.
func turnedAway(err error) bool {
	return noLeader(err) || is(err, rpctypes.ErrGRPCNotSupportedForLearner)
}

func noLeader(err error) bool { return is(err, rpctypes.ErrGRPCNoLeader) }

// is compares by the text: client and server use different types.
func is(err, of error) bool { return err != nil && rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(of) }

// askTimeout bounds how long members may take to name their cluster.
const askTimeout = time.Second

// agree returns nil if the answer comes from the same cluster as all earlier ones. An answer from another
// cluster counts if all members that have a leader belong to it: it replaced the first, whose last members may still
// run. Otherwise no answer counts until they agree: members of two clusters are two stores, and calls would alternate
// between them. Each member is asked over its own connection: a single name may lead to several.
func (s *Store) agree(ctx context.Context, header *pb.ResponseHeader) error {
	id := header.GetClusterId()
	named := s.client.Endpoints()
	if s.cluster.Load() == id {
		return nil
	}
	s.cluster.Store(0)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	of := make([]uint64, len(named))
	var group sync.WaitGroup
	for i, member := range named {
		group.Go(func() {
			if status, err := s.client.Status(ctx, member); err == nil && status.Leader != 0 {
				of[i] = status.Header.GetClusterId()
			}
		})
	}
	group.Wait()
	for i, other := range of {
		if other != 0 && other != id {
			return fmt.Errorf("%w: %s belongs to the cluster %x, but an answer came from %x: name the members of one cluster", store.ErrUnavailable, named[i], other, id)
		}
	}
	s.cluster.Store(id)
	return nil
}
