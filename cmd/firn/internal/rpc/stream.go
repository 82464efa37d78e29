package rpc

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

const (
	// maxTotal bounds a stream, which would otherwise last for ever if a client sets no total.
	maxTotal = 1_000_000_000
	// usualBatch is the default number of ids in a message.
	usualBatch = 1000
	// longestPause and longestWait bound how long a stream waits for its client's rate:
	// in one pause, and in total between two batches.
	longestPause = 5 * time.Second
	longestWait  = time.Minute
)

// GenerateStream sends batch after batch. The client's flow control decides when the next
// batch is made.
func (a *API) GenerateStream(ctx context.Context, r *connect.Request[firnv1.GenerateStreamRequest], to *connect.ServerStream[firnv1.GenerateResponse]) error {
	from := callerIn(ctx) // Front refuses further batches once its token is revoked
	left, batch, err := a.plan(r.Msg)
	if err != nil {
		return a.fail(ctx, a.front.Refuse(err))
	}
	leave, err := a.enterStream(clientIn(ctx), from)
	if err != nil {
		return a.fail(ctx, a.front.Refuse(err))
	}
	defer leave()
	s, err := a.steer(ctx)
	if err != nil {
		return a.fail(ctx, a.front.Refuse(err))
	}
	defer s.release()

	m := a.reuse()
	defer a.recycle(m)
	for left > 0 {
		n := int(min(left, int64(batch)))
		start := time.Now()
		if err := a.paced(ctx, s, func() error {
			return a.issue(ctx, from, r.Msg.GetNamespace(), n, r.Msg.GetForm(), m)
		}); err != nil {
			return a.fail(ctx, err)
		}
		a.front.Observe(time.Since(start))
		if err := s.extend(); err != nil {
			return a.fail(ctx, a.front.Refuse(err))
		}
		if err := to.Send(m.write()); err != nil {
			return err // the client has gone or reads too slowly; these ids are lost
		}
		s.sent()
		m.batch.Release()
		m.shrink()
		left -= int64(n)
	}
	return nil
}

// plan returns how many ids a stream has in total and in a batch.
func (a *API) plan(r *firnv1.GenerateStreamRequest) (total int64, batch int, err error) {
	total, batch = maxTotal, min(usualBatch, a.front.Limits().Batch)
	if r.Total != nil {
		total = *r.Total
	}
	if r.Batch != nil {
		batch = int(*r.Batch)
	}
	if total < 1 || total > maxTotal {
		return 0, 0, failure.BadRequest("bad_count", "total %d is out of range: it is a number from 1 to %d", total, int64(maxTotal))
	}
	if batch < 1 {
		return 0, 0, failure.BadRequest("bad_count", "batch %d is out of range: it is a number from 1 to %d", batch, a.front.Limits().Batch)
	}
	return total, batch, nil
}

// paced calls issue until it succeeds. While the client exceeds its rate it waits, so that a
// stream of millions of ids continues at that rate.
func (a *API) paced(ctx context.Context, s *steering, issue func() error) error {
	for waited := time.Duration(0); ; {
		if a.ending.Err() != nil {
			return a.front.Refuse(shuttingDown())
		}
		err := issue()
		if err == nil {
			return nil
		}
		f := failure.Of(err)
		if f.Status != http.StatusTooManyRequests || f.Retry <= 0 || waited >= longestWait {
			return err
		}
		if err := s.extend(); err != nil {
			return a.front.Refuse(err)
		}
		pause := min(f.Retry, longestPause)
		waited += pause
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-a.ending.Done():
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return a.front.Refuse(context.Cause(ctx))
		}
	}
}

func shuttingDown() error {
	f := failure.New(http.StatusServiceUnavailable, "shutting_down", "the server is shutting down; the ids sent so far are valid: ask another server for the rest")
	f.Retry = time.Second
	return f
}

// enterStream takes a place for a stream, of those of the client's address and of those of the caller's token.
func (a *API) enterStream(client *share.Client, from *access.Caller) (leave func(), err error) {
	leaveAddress, err := enter(share.Streams, client)
	if err != nil || from.Token() == "" {
		return leaveAddress, err
	}
	token := a.service.Shares().Token(from.Token())
	if !token.Take(share.TokenStreams, 1) {
		defer token.Leave()
		leaveAddress()
		return nil, token.Refusal(share.TokenStreams)
	}
	return func() { token.Give(share.TokenStreams, 1); token.Leave(); leaveAddress() }, nil
}

// enter takes a place of a resource.
func enter(r share.Resource, client *share.Client) (leave func(), err error) {
	if !client.Take(r, 1) {
		return nil, client.Refusal(r)
	}
	return func() { client.Give(r, 1) }, nil
}

// clientIn returns the client of a request.
func clientIn(ctx context.Context) *share.Client {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return e.client
	}
	return nil
}
