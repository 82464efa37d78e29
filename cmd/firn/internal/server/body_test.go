package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Paths of other systems may have any prefix, also one that looks like that of an RPC: what
// they bring is bounded all the same, before anybody is asked who they are.
func TestAPrefixLikeThatOfAnRPCDoesNotLiftTheLimitOfBodies(t *testing.T) {
	v := serve(t, "namespaces: {items: {kind: segment}}\n")
	for _, prefix := range []string{"/firn.v1.IDService", "/firn.v1.x", "/grpc.health.v1.Health", "/grpc.reflection.v1.ServerReflection", "/grpc.x", ""} {
		// Of unknown length, so that it has to be read.
		body := io.MultiReader(strings.NewReader("bizType=items&x="), strings.NewReader(strings.Repeat("x", 1<<20)))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+v.addr+prefix+"/tinyid/id/nextId", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := fresh(t).Do(req)
		if err != nil {
			continue // the connection was closed at that
		}
		said, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Errorf("%s: %d %s", prefix, answer.StatusCode, said)
		}
	}
}
