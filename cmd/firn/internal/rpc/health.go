package rpc

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"
	health "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// healthService is the name of the standard health service. It is open to everyone, since
// probes have no token.
const healthService = "grpc.health.v1.Health"

// watchInterval is how often a watch reads the server's status.
const watchInterval = time.Second

func (a *API) registerHealth(mux *http.ServeMux, options connect.HandlerOption) {
	const path = "/" + healthService + "/"
	mux.Handle(path+"Check", a.plain(connect.NewUnaryHandler(path+"Check", a.check, options)))
	mux.Handle(path+"List", a.plain(connect.NewUnaryHandler(path+"List", a.list, options)))
	mux.Handle(path+"Watch", a.plain(connect.NewServerStreamHandler(path+"Watch", a.watch, options)))
}

// status returns the status of a service, which may be unknown; "" is the whole server.
func (a *API) status(service string) health.HealthCheckResponse_ServingStatus {
	switch {
	case service != "" && service != firnv1connect.IDServiceName && service != healthService:
		return health.HealthCheckResponse_SERVICE_UNKNOWN
	case a.ending.Err() != nil || a.service.Ready() != nil:
		return health.HealthCheckResponse_NOT_SERVING
	default:
		return health.HealthCheckResponse_SERVING
	}
}

func (a *API) check(ctx context.Context, r *connect.Request[health.HealthCheckRequest]) (*connect.Response[health.HealthCheckResponse], error) {
	status := a.status(r.Msg.GetService())
	if status == health.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, a.fail(ctx, failure.New(http.StatusNotFound, "unknown_service",
			"unknown service %q: known are %q, %s and %s", r.Msg.GetService(), "", firnv1connect.IDServiceName, healthService))
	}
	return connect.NewResponse(&health.HealthCheckResponse{Status: status}), nil
}

func (a *API) list(context.Context, *connect.Request[health.HealthListRequest]) (*connect.Response[health.HealthListResponse], error) {
	answer := &health.HealthListResponse{Statuses: map[string]*health.HealthCheckResponse{}}
	for _, service := range []string{"", firnv1connect.IDServiceName, healthService} {
		answer.Statuses[service] = &health.HealthCheckResponse{Status: a.status(service)}
	}
	return connect.NewResponse(answer), nil
}

// watch sends the current status and each change. At shutdown the last status is
// NOT_SERVING.
func (a *API) watch(ctx context.Context, r *connect.Request[health.HealthCheckRequest], to *connect.ServerStream[health.HealthCheckResponse]) error {
	leave, err := enter(share.Watches, clientIn(ctx))
	if err != nil {
		return a.fail(ctx, err)
	}
	defer leave()
	s, err := a.steer(ctx)
	if err != nil {
		return a.fail(ctx, err)
	}
	defer s.release()
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	sent := health.HealthCheckResponse_UNKNOWN
	for {
		if err := s.extend(); err != nil {
			return a.fail(ctx, err)
		}
		over := a.ending.Err() != nil // read before the status, so that the last one sent is that of the shutdown
		if now := a.status(r.Msg.GetService()); now != sent {
			sent = now
			if err := to.Send(&health.HealthCheckResponse{Status: now}); err != nil {
				return err // the client has gone
			}
		}
		if over {
			return a.fail(ctx, shuttingDown())
		}
		select {
		case <-ticker.C:
		case <-a.ending.Done():
		case <-ctx.Done():
			return a.fail(ctx, context.Cause(ctx))
		}
	}
}
