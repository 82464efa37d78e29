package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// Most requests for ids do not pass through the mux, and are answered as if they did.
func TestARequestForIDsIsFoundByItsPath(t *testing.T) {
	_, h := newServer(t, settings.Config{Namespaces: map[string]settings.Namespace{"orders": {}}})
	for _, test := range []struct {
		request string
		status  int
		has     string
	}{
		{"GET /v1/ids/orders", 200, `{"namespace":"orders","ids":["`},
		{"POST /v1/ids/orders?", 200, `{"namespace":"orders","ids":["`},
		{"GET /v1/ids/%6Frders", 200, `{"namespace":"orders","ids":["`},
		{"GET /v1/ids/orders%2Fx", 404, `orders/x`},
		{"GET /v1/ids/ord%20ers", 404, `ord ers`},
		{"GET /v1/ids/.orders", 404, `.orders`},
		{"GET /v1/ids/orders/", 404, "there is nothing at /v1/ids/orders/"},
		{"GET /v1/ids/orders/x", 404, "there is nothing at /v1/ids/orders/x"},
		{"GET /v1/ids/", 404, "there is nothing at /v1/ids/"},
		{"GET /v1/ids", 404, "there is nothing at /v1/ids"},
		{"GET /v1/ids/.", 307, "/v1/ids"},
		{"GET /v1/ids/..", 307, "/v1"},
		{"GET /v1//ids/orders", 307, "/v1/ids/orders"},
		{"PUT /v1/ids/orders", 405, "PUT is not allowed here: GET, POST"},
		{"HEAD /v1/ids/orders", 405, ""},
	} {
		conn := dial(t, strings.TrimPrefix(h.URL, "http://"))
		if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", test.request); err != nil {
			t.Fatal(err)
		}
		method, _, _ := strings.Cut(test.request, " ")
		answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != test.status || !strings.Contains(string(body), test.has) {
			t.Errorf("%s: %d %s, %v", test.request, answer.StatusCode, body, err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
