package migrate_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/migrate"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest"
)

func serveLeaf(t *testing.T, s store.Store, namespaces map[string]settings.Namespace) (*issuing.Service, http.Handler) {
	t.Helper()
	service := serve(t, s, settings.Config{Namespaces: namespaces, Anonymous: []string{"*"}})
	return service, handler(migrate.NewLeaf(service, time.FixedZone("", 8*60*60), slog.New(slog.DiscardHandler)))
}

func askLeaf(t *testing.T, h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var leafNamespaces = map[string]settings.Namespace{
	"orders":     {Kind: "segment", Segment: settings.Segment{MinStep: 10}},
	"order.item": {Kind: "segment", Segment: settings.Segment{MinStep: 10}},
	"txn":        {Kind: "sequence"},
	"flake":      {Pooled: settings.Pooled{Layout: "leaf"}},
	"sony":       {Pooled: settings.Pooled{Layout: "sonyflake", Pool: "sony"}},
	"carts":      {Kind: "segment", Prefixed: settings.Prefixed{Prefix: "cart"}},
}

func TestAnswersAreThoseOfLeaf(t *testing.T) {
	_, h := serveLeaf(t, memstore.New(nil), leafNamespaces)
	const plain, js = "text/plain;charset=UTF-8", "application/json;charset=UTF-8"
	failed := func(code int, path string) string {
		return `\{"timestamp":\d{13},"status":500,"error":"Internal Server Error","exception":"com\.sankuai\.inf\.leaf\.server\.exception\.LeafServerException",` +
			`"message":"Result\{id=` + strconv.Itoa(code) + `, status=EXCEPTION\}","path":"` + path + `"\}`
	}
	missing := func(path string) string {
		return `\{"timestamp":\d{13},"status":404,"error":"Not Found","message":"No message available","path":"` + path + `"\}`
	}
	for _, c := range []struct {
		method, path string
		status       int
		typ, want    string
		code         string
	}{
		{"GET", "/api/segment/get/orders", 200, plain, `1`, ""},
		{"POST", "/api/segment/get/orders/", 200, plain, `2`, ""},
		{"DELETE", "/gateway/leaf/api/segment/get/orders", 200, plain, `3`, ""},
		{"GET", "/api/segment/get/order.item", 200, plain, `1`, ""},
		{"GET", "/api/segment/get/txn", 200, plain, `1`, ""},
		{"GET", "/api/snowflake/get/flake", 200, plain, `\d{19}`, ""},
		{"GET", "/gw/api/snowflake/get/flake", 200, plain, `\d{19}`, ""},
		{"GET", "/api/segment/get/none", 500, js, failed(-2, "/api/segment/get/none"), "unknown_namespace"},
		{"GET", "/api/segment/get/flake", 500, js, failed(-2, "/api/segment/get/flake"), "wrong_kind"},
		{"GET", "/api/segment/get/carts", 500, js, failed(-2, "/api/segment/get/carts"), "wrong_kind"},
		{"GET", "/api/snowflake/get/orders", 500, js, failed(-2, "/api/snowflake/get/orders"), "wrong_kind"},
		{"GET", "/api/snowflake/get/none", 500, js, failed(-2, "/api/snowflake/get/none"), "unknown_namespace"},
		{"GET", "/api/segment/get/a%20b%3C", 500, js, failed(-2, "/api/segment/get/a b<"), "unknown_namespace"},
		{"OPTIONS", "/api/segment/get/orders", 200, "", ``, ""},
		{"TRACE", "/api/segment/get/orders", 405, "", ``, ""},
		{"GET", "/api/segment/get/", 404, js, missing("/api/segment/get/"), ""},
		{"GET", "/api/segment/get", 404, js, missing("/api/segment/get"), ""},
		{"GET", "/api/segment/get/a/b", 404, js, missing("/api/segment/get/a/b"), ""},
		{"GET", "/gw/api/snowflake/get/a/b", 404, js, missing("/gw/api/snowflake/get/a/b"), ""},
		{"GET", "/gw/other", 404, "", `.*\n`, ""},
		{"POST", "/api/snowflake/x", 404, js, missing("/api/snowflake/x"), ""},
		{"GET", "/api/segment", 404, js, missing("/api/segment"), ""},
		{"GET", "/decodeSnowflakeId/x", 404, js, missing("/decodeSnowflakeId/x"), ""},

		{"GET", "/decodeSnowflakeId?snowflakeId=1169786042799259000", 200, js,
			`\{"workerId":"39","sequenceId":"3448","timestamp":"1567733700834\(2019-09-06 09:35:00\.834\)"\}`, ""},
		{"GET", "/gw/decodeSnowflakeId?snowflakeId=0", 200, js,
			`\{"workerId":"0","sequenceId":"0","timestamp":"1288834974657\(2010-11-04 09:42:54\.657\)"\}`, ""},
		{"GET", "/decodeSnowflakeId?snowflakeId=0&namespace=sony", 200, js,
			`\{"workerId":"0","sequenceId":"0","timestamp":"1409529600000\(2014-09-01 08:00:00\.000\)"\}`, ""},
		{"GET", "/decodeSnowflakeId?snowflakeId=abc", 200, js, `\{"errorMsg":"snowflake Id反解析发生异常!"\}`, "bad_id"},
		{"GET", "/decodeSnowflakeId?snowflakeId=", 200, js, `\{"errorMsg":"snowflake Id反解析发生异常!"\}`, "bad_id"},
		{"GET", "/decodeSnowflakeId?snowflakeId=9223372036854775808", 200, js, `\{"errorMsg":"snowflake Id反解析发生异常!"\}`, "bad_id"},
		{"GET", "/decodeSnowflakeId", 400, js, `\{"timestamp":\d+,"status":400,"error":"Bad Request",.*"message":"Required String parameter 'snowflakeId' is not present",.*`, "bad_request"},
		{"GET", "/decodeSnowflakeId?snowflakeId=1&namespace=none", 404, js, `.*"status":404,.*`, "unknown_namespace"},
		{"GET", "/decodeSnowflakeId?snowflakeId=1&namespace=txn", 400, js, `.*"status":400,.*`, "bad_request"},
	} {
		answer := askLeaf(t, h, c.method, c.path)
		body := answer.Body.String()
		if answer.Code != c.status || !regexp.MustCompile(`^`+c.want+`$`).MatchString(body) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, answer.Code, body, c.status, c.want)
		}
		if typ := answer.Header().Get("Content-Type"); c.typ != "" && typ != c.typ {
			t.Errorf("%s %s: type %s", c.method, c.path, typ)
		}
		if code := answer.Header().Get("Firn-Error"); code != c.code {
			t.Errorf("%s %s: code %s", c.method, c.path, code)
		}
	}
	if body := askLeaf(t, h, "GET", "/api/segment/get/orders").Body.String(); body != "4" {
		t.Errorf("after bad requests: %s", body)
	}
	if answer := askLeaf(t, h, "GET", "/api/segment/get/orders", "Accept", "application/json, application/*+json"); answer.Header().Get("Content-Type") != js {
		t.Errorf("for a client that accepts only JSON: %v", answer.Header())
	}
	if answer := askLeaf(t, h, "GET", "/api/segment/get/orders", "Authorization", "Basic eDp5"); answer.Code != http.StatusUnauthorized {
		t.Errorf("a scheme other than Bearer: %d", answer.Code)
	}
}

// The expected answers are those of Spring Boot 1.5.18 with Leaf's controllers.
func TestTheClientDecidesTheTypeOfAnAnswer(t *testing.T) {
	_, h := serveLeaf(t, memstore.New(nil), leafNamespaces)
	for _, c := range []struct {
		accept, path string
		status       int
		typ, body    string
	}{
		{"application/xml", "/api/segment/get/orders", 200, "application/xml;charset=UTF-8", "1"},
		{"nonsense", "/api/segment/get/orders", 406, "", ""},
		{"text/plain", "/api/segment/get/none", 406, "", ""},
		{"application/xml", "/api/segment/get/a/b", 406, "", ""},
		{"application/xml", "/decodeSnowflakeId?snowflakeId=1", 406, "", ""},
		{"*/*", "/api/segment/get/orders", 200, "text/plain;charset=UTF-8", "2"},
	} {
		answer := askLeaf(t, h, "GET", c.path, "Accept", c.accept)
		if typ := answer.Header().Get("Content-Type"); answer.Code != c.status || typ != c.typ || answer.Body.String() != c.body {
			t.Errorf("%s for %s: %d %s %s", c.path, c.accept, answer.Code, typ, answer.Body)
		}
	}
}

func TestLeafsPagesLeadToTheNamespaces(t *testing.T) {
	_, h := serveLeaf(t, memstore.New(nil), leafNamespaces)
	for _, page := range []string{"/cache", "/db"} {
		if answer := askLeaf(t, h, "GET", page); answer.Code != http.StatusFound || answer.Header().Get("Location") != "v1/namespaces" {
			t.Errorf("%s: %d %v", page, answer.Code, answer.Header())
		}
		if answer := askLeaf(t, h, "GET", page, "Accept", "text/html,*/*;q=0.8"); answer.Code != http.StatusFound || answer.Header().Get("Location") != "./#/namespaces" {
			t.Errorf("%s for a browser: %d %v", page, answer.Code, answer.Header())
		}
	}
}

func TestIssuedIDsDecode(t *testing.T) {
	_, h := serveLeaf(t, memstore.New(nil), leafNamespaces)
	text := askLeaf(t, h, "GET", "/api/snowflake/get/flake").Body.String()
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	made := time.UnixMilli(id>>22 + 1288834974657)
	if age := time.Since(made); age < -time.Minute || age > time.Minute {
		t.Errorf("the time of %d is %v", id, made)
	}
	body := askLeaf(t, h, "GET", "/decodeSnowflakeId?snowflakeId="+text).Body.String()
	want := `{"workerId":"` + strconv.FormatInt(id>>12&1023, 10) + `","sequenceId":"` + strconv.FormatInt(id&4095, 10) +
		`","timestamp":"` + strconv.FormatInt(made.UnixMilli(), 10) + `(` + made.UTC().Add(8*time.Hour).Format("2006-01-02 15:04:05.000") + `)"}`
	if body != want {
		t.Errorf("%s, want %s", body, want)
	}
}

func TestAFailureIsNeverAnID(t *testing.T) {
	s := storetest.NewFaulty(memstore.New(nil))
	service, h := serveLeaf(t, s, leafNamespaces)
	check := func(path, message, code, retry string) {
		t.Helper()
		answer := askLeaf(t, h, "GET", path)
		body := answer.Body.String()
		if answer.Code != http.StatusInternalServerError || !strings.Contains(body, `"message":"`+message+`"`) ||
			answer.Header().Get("Firn-Error") != code || answer.Header().Get("Retry-After") != retry {
			t.Errorf("%s: %d %v %s", path, answer.Code, answer.Header(), body)
		}
	}
	s.SetDown(true)
	check("/api/segment/get/orders", "Result{id=-3, status=EXCEPTION}", "store_unavailable", "1")
	check("/api/segment/get/txn", "Result{id=-3, status=EXCEPTION}", "store_unavailable", "1")
	if answer := askLeaf(t, h, "GET", "/api/snowflake/get/flake"); answer.Code != http.StatusOK || answer.Body.Len() != 19 {
		t.Errorf("a snowflake needs no store: %d %s", answer.Code, answer.Body)
	}
	s.SetDown(false)
	if err := service.Close(); err != nil {
		t.Error(err)
	}
	check("/api/segment/get/orders", "Result{id=-1, status=EXCEPTION}", "shutting_down", "1")
	check("/api/snowflake/get/flake", "Result{id=-1, status=EXCEPTION}", "shutting_down", "1")
}
