package etcdstore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Other calls take turns too, so that one call may reach a member that hangs several times.
func TestTheTriesOfARead(t *testing.T) {
	hang := time.Hour
	for name, c := range map[string]struct {
		takes []time.Duration // what the tries take
		read  bool
		want  time.Duration // 0: the call fails
		tries int
	}{
		"a member hangs":               {[]time.Duration{hang, 0}, true, 1500 * time.Millisecond, 2},
		"it is reached three times":    {[]time.Duration{hang, hang, hang, 0}, true, 6750 * time.Millisecond, 4},
		"the answer is large":          {[]time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}, true, 6750 * time.Millisecond, 3},
		"a write is not made again":    {[]time.Duration{hang, 0}, false, 0, 1},
		"a write waits for its answer": {[]time.Duration{9 * time.Second}, false, 9 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				tries := 0
				invoke := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					tries++
					select {
					case <-ctx.Done():
						return status.FromContextError(ctx.Err()).Err()
					case <-time.After(c.takes[tries-1]):
						return nil
					}
				}
				var request any = &pb.TxnRequest{}
				if c.read {
					request = &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("b")}
				}
				began := time.Now()
				err := calling(3)(ctx, "/etcdserverpb.KV/Any", request, nil, nil, invoke)
				if took := time.Since(began); (err == nil) != (c.want > 0) || err == nil && took != c.want || tries != c.tries {
					t.Errorf("%d tries in %v, want %d in %v: %v", tries, took, c.tries, c.want, err)
				}
			})
		})
	}
}
