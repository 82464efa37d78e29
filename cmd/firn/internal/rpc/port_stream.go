package rpc

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

const (
	// window is how many messages of a stream its client may leave unread before the stream waits. One alone would make
	// each wait for the write of the one before.
	window = 4
	// largeMessage is above which size a message is sent only when its client has taken all before it. Window smaller
	// ones fit into what grpc-go lets a stream send: so it never blocks, where only the client could end the wait.
	largeMessage = 16 << 10
)

// A portStream sends the messages of a stream by grpc-go.
type portStream struct {
	lag
	api     *API
	call    *call
	stream  grpc.ServerStream
	back    chan *answer // answers that the client has taken
	idle    []*answer
	made    int
	large   bool // the latest message was
	current *answer
}

func newPortStream(a *API, c *call, stream grpc.ServerStream) *portStream {
	return &portStream{lag: lag{stall: a.stall}, api: a, call: c, stream: stream, back: make(chan *answer, window)}
}

// watching takes a place among the watches for a call, and returns its stream.
func (c *call) watching(a *API, stream grpc.ServerStream) (*portStream, error) {
	leave, err := enter(share.Watches, c.conn.client)
	if err != nil {
		return nil, err
	}
	c.leave = leave
	return newPortStream(a, c, stream), nil
}

func (s *portStream) extend() error { return nil } // only a message that waits for the client counts

// next returns an answer that is free. It waits until the client has taken an earlier one.
func (s *portStream) next(ctx context.Context) (*issuing.Batch, error) {
	for s.large && len(s.idle) < s.made || len(s.idle) == 0 && s.made == window {
		a, err := s.wait(ctx)
		if err != nil {
			return nil, err
		}
		a.shrink()
		s.idle = append(s.idle, a)
	}
	if n := len(s.idle); n > 0 {
		s.current, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		s.made++
		s.current = &answer{bytes: make([]byte, 0, leastCapacity), call: s.call, back: s.back}
	}
	return &s.current.batch, nil
}

func (s *portStream) wait(ctx context.Context) (*answer, error) {
	select {
	case a := <-s.back:
		return a, nil
	default:
	}
	start, left, ending := time.Now(), s.left(), s.api.ending.Done()
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		select {
		case a := <-s.back:
			s.waited(time.Since(start))
			return a, nil
		case <-ending:
			ending = nil
			timer.Reset(min(left, s.api.hurry))
		case <-timer.C:
			return nil, tooSlow(s.stall)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func tooSlow(stall time.Duration) error {
	return failure.New(http.StatusTooManyRequests, "too_slow",
		"the stream ends because its client has left messages unread for %v: the ids sent so far are valid; read faster, or request smaller batches", stall)
}

// send sends the batch of the current answer.
func (s *portStream) send(*issuing.Batch) error {
	s.current.encode()
	return s.push()
}

// sendMessage sends a message of another kind in the next answer.
func (s *portStream) sendMessage(message proto.Message) (err error) {
	if _, err = s.next(s.call.ctx); err != nil {
		return err
	}
	if s.current.bytes, err = (proto.MarshalOptions{}).MarshalAppend(s.current.bytes[:0], message); err != nil {
		return err
	}
	return s.push()
}

func (s *portStream) push() error {
	s.large = len(s.current.bytes) > largeMessage
	return s.current.send(s.stream)
}
