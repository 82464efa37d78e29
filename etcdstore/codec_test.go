package etcdstore_test

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/firn-id/firn/etcdstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/dial"
)

// bytesCodec passes messages on as bytes.
type bytesCodec struct{ encoding.CodecV2 }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(b mem.BufferSlice, v any) error {
	*v.(*[]byte) = b.Materialize()
	return nil
}

func (bytesCodec) Name() string { return "proto" }

// saying is the address of a server that gives one answer to reads, and one to the rest.
func saying(t *testing.T, toReads, toRest []byte) string {
	t.Helper()
	server := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.MaxSendMsgSize(1<<30), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		var question []byte
		if err := s.RecvMsg(&question); err != nil {
			return err
		}
		if method, _ := grpc.MethodFromServerStream(s); method == "/etcdserverpb.KV/Range" {
			return s.SendMsg(&toReads)
		}
		return s.SendMsg(&toRest)
	}))
	return serving(t, server)
}

// serving returns the address of a server, which the end of the test stops.
func serving(t *testing.T, server *grpc.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// Each of these took all memory.
func TestAHostileServerIsAnError(t *testing.T) {
	t.Parallel()
	empty := []byte{0x12, 0} // a key without anything
	for what, test := range map[string]struct {
		answer []byte
		says   string
	}{
		"a large answer":    {make([]byte, dial.MaxAnswer+1), "received message larger than max"},
		"many empty keys":   {bytes.Repeat(empty, dial.MaxPieces+2), "more than 131072 pieces"},
		"garbage":           {[]byte{0xff, 0xff, 0xff}, "not a message"},
		"a field cut short": {[]byte{0x12, 0x7f}, "not a message"},
	} {
		_, err := etcdstore.Open(t.Context(), "etcd://"+saying(t, test.answer, nil))
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", what, err, test.says)
		}
	}
	// To a write its outcome is open.
	long, err := etcdstore.Open(t.Context(), "etcd://"+saying(t, nil, bytes.Repeat([]byte{0x1a, 0x10, 0x0a, 0x0e, 0x12, 0x0c, 0x12, 0, 0x12, 0, 0x12, 0, 0x12, 0, 0x12, 0, 0x12, 0}, 100_000)))
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	if _, err := long.CompareAndSwap(t.Context(), "k", 0, nil); !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || !strings.Contains(err.Error(), "received message larger than max (1800000") {
		t.Errorf("a long answer to a write: %v", err)
	}
}
