package server_test

import (
	"context"
	"strings"
	"testing"

	"connectrpc.com/connect"
	health "google.golang.org/grpc/health/grpc_health_v1"
)

// An HTTP/2 connection carries many requests, so a limit on connections alone is not enough.
func TestRequestsInFlightAreBoundedAsConnectionsAre(t *testing.T) {
	v := serve(t, "limits: {connections: 3, share: 100}\nnamespaces: {orders: {}}\n")
	client := overHTTP2(t)
	watch := connect.NewClient[health.HealthCheckRequest, health.HealthCheckResponse](client, "http://"+v.addr+"/grpc.health.v1.Health/Watch")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 3 {
		s, err := watch.CallServerStream(ctx, connect.NewRequest(&health.HealthCheckRequest{}))
		if err != nil || !s.Receive() {
			t.Fatal(err, s.Err())
		}
		defer s.Close()
	}
	if status, body := get(t, client, "http://"+v.addr+"/v1/ids/orders", ""); status != 503 || !strings.Contains(body, `"overloaded"`) {
		t.Errorf("%d %s", status, body)
	}
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		if status, body := get(t, client, "http://"+v.addr+path, ""); status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	cancel()
	settles(t, "answers that are refused", 200, func() int {
		status, _ := get(t, client, "http://"+v.addr+"/v1/ids/orders", "")
		return status
	})
}
