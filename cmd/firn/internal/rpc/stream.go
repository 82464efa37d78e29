package rpc

import (
	"context"
	"net/http"
	"time"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
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

// A plan is what a stream has to send.
type plan struct {
	request *firnv1.GenerateStreamRequest
	total   int64
	batch   int // ids in a message
}

// open returns the plan of a stream and takes its places. The error is counted.
func (a *API) open(client *share.Client, from *access.Caller, r *firnv1.GenerateStreamRequest) (p plan, leave func(), err error) {
	if p, err = a.plan(r); err != nil {
		return p, nil, a.front.Refuse(err)
	}
	if leave, err = a.enterStream(client, from); err != nil {
		return p, nil, a.front.Refuse(err)
	}
	return p, leave, nil
}

// A sender sends the messages of a stream over a transport.
type sender interface {
	// extend gives the client time before a wait that is not its fault.
	extend() error
	// next returns the memory of the next message. It may wait until the client has taken an earlier one.
	next(ctx context.Context) (*issuing.Batch, error)
	// send sends what issue has put into the memory.
	send(b *issuing.Batch) error
}

// pump sends batch after batch. The client's flow control decides when the next batch is made. The error is counted,
// except of send.
func (a *API) pump(ctx context.Context, from *access.Caller, p plan, to sender) error {
	for left := p.total; left > 0; {
		n := int(min(left, int64(p.batch)))
		b, err := to.next(ctx)
		if err != nil {
			return a.front.Refuse(err)
		}
		start := time.Now()
		if err := a.paced(ctx, to.extend, func() error { // Front refuses further batches once the token of from is revoked
			return a.issue(ctx, from, p.request.GetNamespace(), n, p.request.GetForm(), b)
		}); err != nil {
			return err
		}
		a.front.Observe(time.Since(start))
		if err := to.extend(); err != nil {
			return a.front.Refuse(err)
		}
		if err := to.send(b); err != nil {
			return err // the client has gone or reads too slowly; these ids are lost
		}
		left -= int64(n)
	}
	return nil
}

// plan returns how many ids a stream has in total and in a batch.
func (a *API) plan(r *firnv1.GenerateStreamRequest) (plan, error) {
	p := plan{request: r, total: maxTotal, batch: min(usualBatch, a.front.Limits().MaxBatch())}
	if r.Total != nil {
		p.total = *r.Total
	}
	if r.Batch != nil {
		p.batch = int(*r.Batch)
	}
	if p.total < 1 || p.total > maxTotal {
		return p, failure.BadRequest("bad_count", "total %d is out of range: it is a number from 1 to %d", p.total, int64(maxTotal))
	}
	if p.batch < 1 {
		return p, failure.BadRequest("bad_count", "batch %d is out of range: it is a number from 1 to %d", p.batch, a.front.Limits().MaxBatch())
	}
	return p, nil
}

// paced calls issue until it succeeds. While the client exceeds its rate it waits, so that a
// stream of millions of ids continues at that rate.
func (a *API) paced(ctx context.Context, extend func() error, issue func() error) error {
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
		if err := extend(); err != nil {
			return a.front.Refuse(err)
		}
		pause := min(f.Retry, longestPause)
		waited += pause
		select {
		case <-time.After(pause):
		case <-a.ending.Done():
		case <-ctx.Done():
			return a.front.Refuse(context.Cause(ctx))
		}
	}
}

func shuttingDown() error {
	return failure.New(http.StatusServiceUnavailable, "shutting_down", "the server is shutting down; the ids sent so far are valid: ask another server for the rest").After(time.Second)
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
