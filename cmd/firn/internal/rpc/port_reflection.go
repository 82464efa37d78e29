package rpc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"google.golang.org/grpc"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
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
	out, err := c.watching(a, stream)
	if err != nil {
		return err
	}
	questions, failed := make(chan *reflectionv1.ServerReflectionRequest), make(chan error, 1)
	done := stream.Context().Done() // also when this returns
	go func() {
		for {
			question := new(reflectionv1.ServerReflectionRequest)
			r := request{message: question}
			err := stream.RecvMsg(&r)
			if err == nil && r.err != nil {
				err = unreadable(r.err)
			}
			if err != nil {
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
	receive := func() (*reflectionv1.ServerReflectionRequest, error) {
		timer.Reset(p.cfg.Read)
		select {
		case question := <-questions:
			return question, nil
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			return nil, transportError{err}
		case <-a.ending.Done():
			return nil, shuttingDown()
		case <-timer.C:
			return nil, failure.New(http.StatusTooManyRequests, "too_slow", "the stream ends because its client has asked nothing for %v: begin another", p.cfg.Read)
		case <-done:
			return nil, context.Cause(c.ctx)
		}
	}
	send := func(answer *reflectionv1.ServerReflectionResponse) error { return out.sendMessage(answer) }
	return reflectionStream{receive: receive, send: send}.answer()
}
