package server_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/access"
)

var counted = regexp.MustCompile(`(?m)^firn_requests_total\{code="([^"]*)",namespace="[^"]*",protocol="([^"]*)"\} (\d+)$`)

// Every request is counted once, under a code that the documentation has.
func TestEveryRequestIsCountedOnceByADocumentedCode(t *testing.T) {
	v := serve(t, "cosid: true\nanonymous_metrics: true\nlimits: {batch: 50, rate: {slow: 1/h}}\n"+
		"namespaces: {orders: {}, items: {kind: segment}, carts: {prefix: cart}, slow: {kind: segment}}\n"+
		"tokens:\n  - {name: shop, sha256: "+access.Hash("s")+", namespaces: [orders, items, carts, slow, 'shop.*']}\n")
	docs, err := os.ReadFile("../../../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	all := func() map[string]int {
		_, metrics := get(t, fresh(t), "http://"+v.addr+"/metrics", "")
		sums := map[string]int{}
		for _, m := range counted.FindAllStringSubmatch(metrics, -1) {
			n, err := strconv.Atoi(m[3])
			if err != nil {
				t.Fatal(err)
			}
			sums[m[2]+" "+m[1]] += n
		}
		return sums
	}
	for _, one := range []struct{ method, path, token, body, want string }{
		{"POST", "/v1/ids/orders", "s", "", "http ok"},
		{"POST", "/v1/ids/orders?count=51", "s", "", "http batch_too_large"},
		{"POST", "/v1/ids/orders?count=-9223372036854775808", "s", "", "http bad_count"},
		{"POST", "/v1/ids/orders?count=9223372036854775808", "s", "", "http bad_count"},
		{"PUT", "/v1/ids/orders", "s", "", "http method_not_allowed"},
		{"BREW", "/v1/ids/orders", "s", "", "http method_not_allowed"},
		{"POST", "/v1/ids/orders", "", "", "http unauthorized"},
		{"POST", "/v1/ids/users", "s", "", "http forbidden"},
		{"POST", "/v1/ids/slow", "s", "", "http ok"},
		{"POST", "/v1/ids/slow", "s", "", "http rate_limited"},
		{"GET", "/v1/pools/default/workers", "s", "", "http forbidden"},
		{"GET", "/api/segment/get/items", "s", "", "leaf ok"},
		{"GET", "/gateway/api/segment/get/orders", "s", "", "leaf wrong_kind"},
		{"GET", "/api/segment/get/items", "", "", "leaf unauthorized"},
		{"OPTIONS", "/api/segment/get/items", "s", "", "leaf method_not_allowed"},
		{"OPTIONS", "/decodeSnowflakeId?snowflakeId=1", "s", "", "leaf method_not_allowed"},
		{"POST", "/tinyid/id/nextId?bizType=items&token=s", "", "", "tinyid ok"},
		{"POST", "/tinyid/id/nextId?bizType=items&token=s&batchSize=0", "", "", "tinyid ok"},
		{"POST", "/tinyid/id/nextId?bizType=items&token=s&batchSize=x", "", "", "tinyid bad_count"},
		{"POST", "/tinyid/id/nextId?bizType=items&token=x", "", "", "tinyid unauthorized"},
		{"POST", "/tinyid/id/nextSegmentId?bizType=orders&token=s", "", "", "tinyid no_ranges"},
		{"TRACE", "/tinyid/id/nextId?bizType=items&token=s", "", "", "tinyid method_not_allowed"},
		{"PATCH", "/segments/shop/a?step=10", "s", "", "cosid ok"},
		{"PATCH", "/segments/shop/a?step=x", "s", "", "cosid bad_request"},
		{"PATCH", "/segments/other/a?step=1", "s", "", "cosid forbidden"},
		{"DELETE", "/segments/shop/a", "s", "", "cosid method_not_allowed"},
		{"GET", "/ids/orders", "s", "", "cosid ok"},
		{"GET", "/ids/%ff", "s", "", "cosid bad_request"},
		{"POST", "/ids/orders", "s", "", "cosid method_not_allowed"},
		{"POST", "/firn.v1.IDService/Generate", "s", `{"namespace":"orders"}`, "rpc ok"},
		{"POST", "/firn.v1.IDService/Generate", "", `{"namespace":"orders"}`, "rpc unauthorized"},
		{"POST", "/firn.v1.IDService/Generate", "s", `{"namespace":"orders","count":0}`, "rpc bad_count"},
		{"POST", "/firn.v1.IDService/Generate", "s", `{"namespace":`, "rpc bad_request"},
		{"POST", "/firn.v1.IDService/Generate", "s", `{"namespace":"` + strings.Repeat("x", 70_000) + `"}`, "rpc bad_request"},
	} {
		before := all()
		req, err := http.NewRequestWithContext(t.Context(), one.method, "http://"+v.addr+one.path, strings.NewReader(one.body))
		if err != nil {
			t.Fatal(err)
		}
		if one.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		if one.token != "" {
			req.Header.Set("Authorization", "Bearer "+one.token)
		}
		answer, err := fresh(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		var grown []string
		for what, n := range all() {
			for range n - before[what] {
				grown = append(grown, what)
			}
		}
		if fmt.Sprint(grown) != "["+one.want+"]" {
			t.Errorf("%s %s: %d %.200s: counted as %q, want %q", one.method, one.path[:min(len(one.path), 80)], answer.StatusCode, body, grown, one.want)
		}
	}
	for what := range all() {
		if _, code, _ := strings.Cut(what, " "); code != "ok" && !strings.Contains(string(docs), "`"+code+"`") {
			t.Errorf("code %s is not in docs/http.md", code)
		}
	}
}
