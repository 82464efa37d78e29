package openapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// leases returns the requests of programs that lease workers.
func leases(t *testing.T, address string) []request {
	post := func(path, lease string, status int, code string) request {
		q := request{method: "POST", path: "/v1/leases/" + path, token: "root", status: status, code: code}
		if lease != "" {
			q.header = http.Header{"Firn-Lease": {lease}}
		}
		return q
	}
	as := func(token string, q request) request { q.token = token; return q }
	l := leased(t, address)
	renew := "default/renew?end=" + l.End
	return []request{
		post("default", "", 200, ""), post("default?once=a1", "", 200, ""), post("default?x=1", "", 400, "bad_request"),
		post("fixed", "", 400, "not_leasable"), post("absent", "", 404, "unknown_pool"),
		as("one", post("default", "", 403, "forbidden")),
		as("few", post("default", "", 200, "")), as("few", post("default", "", 429, "too_many_leases")),
		post("narrow", "", 200, ""), post("narrow", "", 503, "pool_full"), // the server has a worker, too
		post(renew, l.Lease, 200, ""), post(renew+"&once=a1", l.Lease, 200, ""), post("default/renew?end=8388608", strings.Repeat("A", 26)+".0.1", 410, "lease_lost"),
		post("default/renew", l.Lease, 400, "bad_request"), post(renew, "x", 400, "bad_lease"),
		post("fixed/renew?end="+l.End, l.Lease, 410, "lease_lost"), post("absent/renew?end="+l.End, l.Lease, 404, "unknown_pool"),
		as("one", post(renew, l.Lease, 403, "forbidden")),
	}
}

// leased returns a lease of the server.
func leased(t *testing.T, address string) (l struct{ Lease, End string }) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/v1/leases/default", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer root")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if err := json.NewDecoder(answer.Body).Decode(&l); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("a lease: %d %+v %v", answer.StatusCode, l, err)
	}
	return l
}
