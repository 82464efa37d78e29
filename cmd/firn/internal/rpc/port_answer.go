package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// An answer is a message in the memory of its ids, and the right to that memory: grpc-go calls Put when it has written
// it, or has dropped it. A connection that ends may drop it without a word; then conn frees what it has of the shares.
type answer struct {
	batch   issuing.Batch
	asked   firnv1.GenerateRequest // of unary calls
	request request                // for asked
	bytes   []byte
	call    *call
	release func()       // called when it is written; may be nil
	back    chan *answer // receives it after that; nil: the pool
	waiting entry        // guarded by the mutex of call.conn
}

// maxPooled bounds the ids whose memory is kept for later answers. It is less than for a batch of the service: an answer
// keeps its memory until its client has taken it, so that there may be thousands.
const maxPooled = 4 << 10

// leastCapacity is above the size from which grpc-go calls Put for a buffer.
const leastCapacity = 1<<10 + 128

// answer returns an answer to a call.
func (p *Port) answer(c *call) *answer {
	a, ok := p.answers.Get().(*answer)
	if !ok {
		a = &answer{bytes: make([]byte, 0, leastCapacity)}
		a.request.message = &a.asked
	}
	a.call = c
	return a
}

// recycle keeps an answer for a later request, unless it is large or of a stream.
func (a *answer) recycle() {
	p := a.call.conn.port
	a.call = nil
	if a.back == nil && max(cap(a.batch.IDs), cap(a.batch.Stretches), cap(a.batch.Texts), cap(a.bytes)/8) <= maxPooled {
		p.answers.Put(a)
	}
}

// free gives back what the answer has of the shares.
func (a *answer) free() {
	a.batch.Release()
	if a.release != nil {
		a.release()
		a.release = nil
	}
}

// send sends the answer, which the caller must not use afterwards.
func (a *answer) send(stream grpc.ServerStream) error {
	c := a.call
	c.refs.Add(1)
	if err := c.conn.send(a); err != nil {
		a.free()
		a.recycle()
		c.unref()
		return err
	}
	if err := stream.SendMsg(a); err != nil { // calls Put in any case
		return transportError{err}
	}
	return nil
}

// Put implements [mem.BufferPool].
func (a *answer) Put(*[]byte) {
	if c := a.call; c.conn.taken(a) {
		defer c.unref()
	}
	if a.back != nil {
		a.back <- a // it has room for all answers of its stream
		return
	}
	a.recycle()
}

// Get implements [mem.BufferPool]. It is not called.
func (a *answer) Get(int) *[]byte { return nil }

// shrink drops the memory of a large message of a stream.
func (a *answer) shrink() {
	shrink(&a.batch)
	if cap(a.bytes) > 8*maxBetween {
		a.bytes = make([]byte, 0, leastCapacity)
	}
}

// encode writes the ids of the batch as a firnv1.GenerateResponse.
func (a *answer) encode() {
	a.bytes = appendResponse(a.bytes[:0], &a.batch)
	a.batch.Texts = nil // they take more than their bytes, and the answer may wait for its client
}

// The tags of a GenerateResponse and of a Run: the number of a field and how it is encoded.
const (
	tagIDs    = 1<<3 | uint64(protowire.BytesType)
	tagRuns   = 2<<3 | uint64(protowire.BytesType)
	tagTexts  = 3<<3 | uint64(protowire.BytesType)
	tagFirst  = 1<<3 | uint64(protowire.VarintType)
	tagCount  = 2<<3 | uint64(protowire.VarintType)
	tagStride = 3<<3 | uint64(protowire.VarintType)
)

// appendResponse appends a batch as a GenerateResponse. Without messages in between a list takes a third of the time.
func appendResponse(to []byte, b *issuing.Batch) []byte {
	if len(b.IDs) > 0 {
		to = protowire.AppendVarint(to, tagIDs)
		to = protowire.AppendVarint(to, uint64(8*len(b.IDs)))
		for _, id := range b.IDs {
			to = binary.LittleEndian.AppendUint64(to, uint64(id))
		}
	}
	for _, s := range b.Stretches {
		to = protowire.AppendVarint(to, tagRuns)
		first, count, stride := uint64(s.First), uint64(s.Count), uint64(s.Stride)
		to = protowire.AppendVarint(to, uint64(3+protowire.SizeVarint(first)+protowire.SizeVarint(count)+protowire.SizeVarint(stride)))
		to = protowire.AppendVarint(protowire.AppendVarint(to, tagFirst), first)
		to = protowire.AppendVarint(protowire.AppendVarint(to, tagCount), count)
		to = protowire.AppendVarint(protowire.AppendVarint(to, tagStride), stride)
	}
	for _, text := range b.Texts {
		to = protowire.AppendString(protowire.AppendVarint(to, tagTexts), text)
	}
	return to
}

// A request is a message to read, and why it cannot be read.
type request struct {
	message proto.Message
	err     error
}

// codec is the codec of grpc-go for requests and answers.
type codec struct{}

// Name implements [encoding.CodecV2].
func (codec) Name() string { return "proto" }

var _ encoding.CodecV2 = codec{}

var errMessage = errors.New("a message of this package")

// Marshal implements [encoding.CodecV2]. The answer is encoded already.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	a, ok := v.(*answer)
	if !ok {
		return nil, errMessage
	}
	return mem.BufferSlice{mem.NewBuffer(&a.bytes, a)}, nil
}

// Unmarshal implements [encoding.CodecV2]. A message that cannot be read is for the method to refuse, as grpc-go would
// call it an internal error.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	to, ok := v.(*request)
	if !ok {
		return errMessage
	}
	if len(data) == 1 {
		to.err = proto.Unmarshal(data[0].ReadOnlyData(), to.message)
		return nil
	}
	to.err = proto.Unmarshal(data.Materialize(), to.message)
	return nil
}

// A transportError is an error of grpc-go. It stays as it is, unlike those of stores, which may be errors of grpc too.
type transportError struct{ error }

// statusOf returns the error for a client of grpc-go, nil for nil.
func statusOf(ctx context.Context, log *slog.Logger, err error) error {
	if err == nil {
		return nil
	}
	if of, ok := errors.AsType[transportError](err); ok {
		return of.error
	}
	all := answeredOf(ctx, err)
	out := status.New(codes.Code(all.code), all.failure.Error())
	var lacks error
	for _, message := range all.details {
		detailed, err := out.WithDetails(protoadapt.MessageV1Of(message))
		if err != nil {
			lacks = errors.Join(lacks, err)
			continue
		}
		out = detailed
	}
	logFailed(log, all.code, lacks, err)
	return out.Err()
}
