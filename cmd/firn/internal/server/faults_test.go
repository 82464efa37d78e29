package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/server"
)

// Each of many clients repeats its request.
func TestAPanicIsAnErrorInTheLogOnce(t *testing.T) {
	var s *server.Server
	v := serve(t, "namespaces: {orders: {}}\n", func(of *server.Server) { s = of })
	s.Panic()
	for _, client := range []*http.Client{fresh(t), fresh(t), overHTTP2(t)} {
		if status, _, err := try(t, client, "http://"+v.addr+"/v1/ids/orders", ""); err == nil {
			t.Errorf("%d", status)
		}
	}
	settles(t, "panics in the log", 3, func() int { return strings.Count(v.log.String(), "a fault of ours") })
	if n := strings.Count(v.log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d are errors: %s", n, v.log)
	}
}
