package rpc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// reflects returns the method of a reflection service.
func (p *Port) reflects(service string) grpc.StreamDesc {
	serve := p.serve(service+"/"+reflectionMethod, p.reflect)
	return grpc.StreamDesc{
		StreamName: reflectionMethod, ServerStreams: true, ClientStreams: true,
		Handler: func(s any, stream grpc.ServerStream) error {
			callIn(stream.Context()).patient = true
			return serve(s, stream)
		},
	}
}

// reflect answers questions until the client has no more, or has asked none for the time that a message may take.
func (p *Port) reflect(a *API, c *call, stream grpc.ServerStream) error {
	leave, err := enter(share.Watches, c.conn.client)
	if err != nil {
		return err
	}
	c.leave = leave
	var of reflection
	out := newPortStream(a, c, stream)
	questions, failed := make(chan raw), make(chan error, 1)
	done := stream.Context().Done() // also when this returns
	go func() {
		for {
			var question raw
			if err := stream.RecvMsg(&question); err != nil {
				failed <- err
				return
			}
			select {
			case questions <- question:
			case <-done:
				return
			}
		}
	}()
	timer := time.NewTimer(p.cfg.Read)
	defer timer.Stop()
	for {
		timer.Reset(p.cfg.Read)
		select {
		case question := <-questions:
			answer, err := of.answer(question)
			if err != nil {
				return transportError{status.Errorf(codes.InvalidArgument, "the message cannot be read: %v", err)}
			}
			if _, err := out.next(c.ctx); err != nil {
				return err
			}
			out.current.bytes = append(out.current.bytes[:0], answer...)
			if err := out.push(); err != nil {
				return err
			}
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return transportError{err}
		case <-a.ending.Done():
			return shuttingDown()
		case <-timer.C:
			return failure.New(http.StatusTooManyRequests, "too_slow", "the stream ends because its client has asked nothing for %v: begin another", p.cfg.Read)
		case <-done:
			return context.Cause(c.ctx)
		}
	}
}
