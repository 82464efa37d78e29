package etcdstore

import (
	"context"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// calling is how a client with so many members makes each call. They take turns.
//
//   - A call fails where it would wait for a connection.
//   - A member that has no leader says so at once, instead of after 7 s; and one that did not
//     begin with a call, a write too, leaves it to the next.
//   - Nothing else is made again here. What a server or a proxy gave up is not, either, which
//     the client would do: a write that was applied would look as if another had been quicker.
func calling(members int) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, answer any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		outgoing := ctx
		if strings.HasPrefix(method, "/etcdserverpb.KV/") {
			outgoing = clientv3.WithRequireLeader(ctx)
		}
		options = append(options, grpc.WaitForReady(false))
		err := invoke(outgoing, method, request, answer, cc, options...)
		for range members {
			if !turnedAway(err) {
				break
			}
			err = invoke(outgoing, method, request, answer, cc, options...)
		}
		if code := status.Code(err); (code == codes.Canceled || code == codes.DeadlineExceeded) && ctx.Err() == nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		return err
	}
}

// turnedAway reports whether a member refused a call before it began with it.
func turnedAway(err error) bool {
	before := []error{rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCNotSupportedForLearner}
	return err != nil && slices.ContainsFunc(before, func(e error) bool { return rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(e) })
}
