package etcdstore

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that this one wraps
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/firn-id/firn/store/dial"
)

// maxOther bounds answers that list no keys.
const maxOther = 1 << 20

// bounded is the client's codec, which refuses answers that take far more memory than their bytes: an empty key is two
// bytes, and becomes a hundred.
type bounded struct{ encoding.CodecV2 }

func newBounded() bounded { return bounded{encoding.GetCodecV2("proto")} }

// Unmarshal implements [encoding.CodecV2].
func (b bounded) Unmarshal(data mem.BufferSlice, v any) error {
	if _, list := v.(*pb.RangeResponse); !list {
		if n := data.Len(); n > maxOther {
			return dial.TooLong("an answer", n, maxOther)
		}
		return b.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	if err := countFields(whole.ReadOnlyData()); err != nil {
		return err
	}
	return b.CodecV2.Unmarshal(mem.BufferSlice{whole}, v)
}

// countFields bounds the fields of a message, of which each key and its value are one.
func countFields(message []byte) error {
	for n := 0; len(message) > 0; n++ {
		_, _, size := protowire.ConsumeField(message)
		if size < 0 {
			return dial.Malformed("not a message: %v", protowire.ParseError(size))
		}
		if n > dial.MaxPieces {
			return dial.TooMany()
		}
		message = message[size:]
	}
	return nil
}
