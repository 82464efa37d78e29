package rpc

import (
	"context"
	"net/http"
	"slices"
	"time"

	health "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// healthService is the name of the standard health service. It is open to everyone, since
// probes have no token.
const healthService = "grpc.health.v1.Health"

// watchInterval is how often a watch reads the server's status.
const watchInterval = time.Second

// status returns the status of a service, which may be unknown; "" is the whole server.
func (a *API) status(service string) health.HealthCheckResponse_ServingStatus {
	switch {
	case !slices.Contains(services[:], service):
		return health.HealthCheckResponse_SERVICE_UNKNOWN
	case a.ending.Err() != nil || a.service.Ready() != nil:
		return health.HealthCheckResponse_NOT_SERVING
	default:
		return health.HealthCheckResponse_SERVING
	}
}

// services are those that health knows; "" is the whole server.
var services = [...]string{"", firnv1connect.IDServiceName, firnv1connect.LeaseServiceName, healthService}

func (a *API) check(_ context.Context, _ *access.Caller, r *health.HealthCheckRequest) (answer *health.HealthCheckResponse, release func(), err error) {
	status := a.status(r.GetService())
	if status == health.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, nil, failure.New(http.StatusNotFound, "unknown_service",
			"unknown service %q: known are %q", r.GetService(), services)
	}
	return &health.HealthCheckResponse{Status: status}, nil, nil
}

func (a *API) statuses(context.Context, *access.Caller, *health.HealthListRequest) (answer *health.HealthListResponse, release func(), err error) {
	answer = &health.HealthListResponse{Statuses: map[string]*health.HealthCheckResponse{}}
	for _, service := range services {
		answer.Statuses[service] = &health.HealthCheckResponse{Status: a.status(service)}
	}
	return answer, nil, nil
}

// watch sends the current status and each change. At shutdown the last status is NOT_SERVING. It always returns an
// error; extend is called before each wait.
func (a *API) watch(ctx context.Context, r *health.HealthCheckRequest, extend func() error, send func(*health.HealthCheckResponse) error) error {
	sent := health.HealthCheckResponse_UNKNOWN
	for tick := time.Tick(watchInterval); ; {
		if err := extend(); err != nil {
			return err
		}
		over := a.ending.Err() != nil // read before the status, so that the last one sent is that of the shutdown
		if now := a.status(r.GetService()); now != sent {
			sent = now
			if err := send(&health.HealthCheckResponse{Status: now}); err != nil {
				return err // the client has gone
			}
		}
		if over {
			return shuttingDown()
		}
		select {
		case <-tick:
		case <-a.ending.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
