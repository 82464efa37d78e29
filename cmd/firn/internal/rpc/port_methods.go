package rpc

import (
	"google.golang.org/grpc"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// services describes the methods. All are streams to grpc-go, so that they decide when the message is read and when
// the answer is done.
func (p *Port) services() []*grpc.ServiceDesc {
	describe := func(service string, methods ...grpc.StreamDesc) *grpc.ServiceDesc {
		return &grpc.ServiceDesc{ServiceName: service, Streams: methods}
	}
	one := func(service, name string, do method) grpc.StreamDesc {
		return grpc.StreamDesc{StreamName: name, Handler: p.serve(service+"/"+name, do), ServerStreams: true}
	}
	const ids, leases, probe = firnv1connect.IDServiceName, firnv1connect.LeaseServiceName, healthService
	return []*grpc.ServiceDesc{
		describe(ids,
			one(ids, "Generate", p.generate),
			one(ids, "GenerateStream", p.generateStream),
			one(ids, "Decode", unary(p, (*API).decode, false)),
			one(ids, "ListNamespaces", unary(p, (*API).list, false)),
		),
		describe(leases,
			one(leases, "Lease", unary(p, (*API).lease, false)),
			one(leases, "Renew", unary(p, (*API).renew, false)),
		),
		describe(probe,
			one(probe, "Check", unary(p, (*API).check, true)),
			one(probe, "List", unary(p, (*API).statuses, true)),
			one(probe, "Watch", p.watchHealth),
		),
		describe(reflectionService, p.reflects(reflectionService)),
		describe(oldReflectionService, p.reflects(oldReflectionService)),
	}
}

// unread counts a request whose message cannot be read.
func (a *API) unread(err error) error {
	_ = a.front.Refuse(errUnread) // the client gets err
	return err
}

// generate returns ids. It is the path that must be fast.
func (p *Port) generate(a *API, c *call, stream grpc.ServerStream) error {
	from, err := c.caller(a)
	if err != nil {
		return err
	}
	m := p.answer(c)
	if err := c.receive(stream, &m.request); err != nil {
		m.recycle()
		return a.unread(err)
	}
	if err := a.generate(c.ctx, from, &m.asked, &m.batch); err != nil {
		m.recycle()
		return err
	}
	m.encode()
	return m.send(stream)
}

func (p *Port) generateStream(a *API, c *call, stream grpc.ServerStream) error {
	from, err := c.caller(a)
	if err != nil {
		return err
	}
	var r firnv1.GenerateStreamRequest
	if err := c.receive(stream, &request{message: &r}); err != nil {
		return a.unread(err)
	}
	plan, leave, err := a.open(c.conn.client, from, &r)
	if err != nil {
		return err
	}
	c.leave = leave
	return a.pump(c.ctx, from, plan, newPortStream(a, c, stream))
}

// unary returns the method of a question. One that is open needs no caller, and is not counted.
func unary[R, A any, M interface {
	*R
	proto.Message
}, N interface {
	*A
	proto.Message
}](p *Port, do question[R, A], open bool) method {
	return func(a *API, c *call, stream grpc.ServerStream) (err error) {
		var from *access.Caller
		if !open {
			if from, err = c.caller(a); err != nil {
				return err
			}
		}
		r := new(R)
		if err := c.receive(stream, &request{message: M(r)}); err != nil {
			if open {
				return err
			}
			return a.unread(err)
		}
		answer, release, err := do(a, c.ctx, from, r)
		if err != nil {
			return err
		}
		return p.reply(c, stream, N(answer), release)
	}
}

func (p *Port) watchHealth(a *API, c *call, stream grpc.ServerStream) error {
	var r health.HealthCheckRequest
	if err := c.receive(stream, &request{message: &r}); err != nil {
		return err
	}
	out, err := c.watching(a, stream)
	if err != nil {
		return err
	}
	return a.watch(c.ctx, &r, out.extend, func(now *health.HealthCheckResponse) error { return out.sendMessage(now) })
}

// reply sends the only message of an answer. Release is called when it is written; it may be nil.
func (p *Port) reply(c *call, stream grpc.ServerStream, message proto.Message, release func()) error {
	m := p.answer(c)
	m.release = release
	var err error
	if m.bytes, err = (proto.MarshalOptions{}).MarshalAppend(m.bytes[:0], message); err != nil {
		m.free()
		m.recycle()
		return err
	}
	return m.send(stream)
}
