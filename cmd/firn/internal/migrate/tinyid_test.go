package migrate_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/migrate"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// tinyidNamespaces are served in the tests.
func tinyidNamespaces() map[string]settings.Namespace {
	return map[string]settings.Namespace{
		"test":     {Kind: "segment", Segment: settings.Segment{MinStep: 1000}},
		"test_odd": {Kind: "segment", Segment: settings.Segment{MinStep: 100, Stride: 2, Offset: 1}},
		"even":     {Kind: "segment", Segment: settings.Segment{MinStep: 100, Stride: 2}},
		"small":    {Kind: "segment", Segment: settings.Segment{MaxStep: 3}},
		"wide":     {Kind: "segment", Segment: settings.Segment{MinStep: 1 << 30, MaxStep: 1 << 30}},
		"txn":      {Kind: "sequence", Counted: settings.Counted{From: 100_001}},
		"flake":    {Pooled: settings.Pooled{Layout: "leaf"}},
		"carts":    {Kind: "segment", Prefixed: settings.Prefixed{Prefix: "cart"}},
		"uuids":    {Kind: "uuid"},
	}
}

func serveTinyID(t *testing.T, s store.Store, cfg settings.Config) (*issuing.Service, http.Handler) {
	t.Helper()
	if len(cfg.Tokens) == 0 {
		cfg.Anonymous = []string{"*"}
	}
	service := serve(t, s, cfg)
	return service, handler(migrate.NewTinyID(service, slog.New(slog.DiscardHandler)))
}

// serve opens a service until the test ends.
func serve(t *testing.T, s store.Store, cfg settings.Config) *issuing.Service {
	t.Helper()
	service, err := issuing.Open(t.Context(), issuing.Config{Settings: cfg, Store: s, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return service
}

// handler has the paths of an interface, with and without a prefix.
func handler(api interface {
	Register(mux *http.ServeMux)
	Prefixed(next http.Handler) http.Handler
}) http.Handler {
	mux := http.NewServeMux()
	api.Register(mux)
	mux.Handle("/", api.Prefixed(http.NotFoundHandler()))
	return mux
}

// askTinyID makes a request; its body, if any, is a form.
func askTinyID(t *testing.T, h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	var content io.Reader = http.NoBody
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, content)
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAnswersAreThoseOfTinyID sends its requests to one server in this order.
func TestAnswersAreThoseOfTinyID(t *testing.T) {
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces(), Limits: settings.Limits{Batch: new(50)}})
	const plain, js = "text/plain;charset=UTF-8", "application/json;charset=UTF-8"
	for _, c := range []struct{ method, path, body, typ, want, code string }{
		{"GET", "/tinyid/id/nextId?bizType=test&token=x", "", js, `{"data":[1],"code":200,"message":""}`, ""},
		{"POST", "/tinyid/id/nextId", "bizType=test&token=x&batchSize=2", js, `{"data":[2,3],"code":200,"message":""}`, ""},
		{"POST", "/tinyid/id/nextIdSimple?batchSize=1", "bizType=test&token=x&batchSize=9", plain, `4`, ""},
		{"GET", "/tinyid/id/nextIdSimple?bizType=test&token=x&batchSize=3", "", plain, `5,6,7`, ""},
		{"GET", "/tinyid/id/nextIdSimple?bizType=test&token=x&batchSize=", "", plain, `8`, ""},
		{"GET", "/tinyid/id/nextIdSimple/?bizType=test&token=x&batchSize=%202%20", "", plain, `9,10`, ""},
		{"GET", "/tinyid/id/nextId?bizType=test&token=x&batchSize=0", "", js, `{"data":[],"code":200,"message":""}`, ""},
		{"GET", "/tinyid/id/nextId?bizType=test&token=x&batchSize=-3", "", js, `{"data":[],"code":200,"message":""}`, ""},
		{"GET", "/tinyid/id/nextIdSimple?bizType=test&token=x&batchSize=0", "", plain, ``, ""},
		{"PUT", "/tinyid/id/nextSegmentIdSimple?bizType=test&token=x", "", plain, `10,208,1000,1,0`, ""},
		{"GET", "/tinyid/id/nextSegmentId?bizType=test&token=x", "", js,
			`{"data":{"maxId":2000,"loadingId":1200,"currentId":1000,"delta":1,"remainder":0},"code":200,"message":""}`, ""},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=test_odd&token=x&batchSize=none", "", plain, `0,39,199,2,1`, ""},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=test_odd&token=x", "", plain, `199,239,399,2,1`, ""},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=even&token=x", "", plain, `0,40,200,2,0`, ""},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=small&token=x", "", plain, `0,0,3,1,0`, ""},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=txn&token=x", "", plain, `100000,100200,101000,1,0`, ""},
		{"GET", "/tinyid/id/nextId?bizType=txn", "", js, `{"data":[101001],"code":200,"message":""}`, ""},

		{"GET", "/tinyid/id/nextId", "", js, `{"data":null,"code":5,"message":"token is error"}`, "forbidden"},
		{"POST", "/tinyid/id/nextSegmentId", "bizType=&token=x", js, `{"data":null,"code":5,"message":"token is error"}`, "forbidden"},
		{"GET", "/tinyid/id/nextIdSimple?token=x", "", plain, ``, "forbidden"},
		{"GET", "/tinyid/id/nextSegmentIdSimple?token=x", "", plain, ``, "forbidden"},
		{"GET", "/tinyid/id/nextId?bizType=x&token=x", "", js, `{"data":null,"code":6,"message":"error query segmentId: can not find biztype:x"}`, "unknown_namespace"},
		{"GET", "/tinyid/id/nextSegmentId?bizType=%3Cx%3E&token=x", "", js, `{"data":null,"code":6,"message":"can not find biztype:<x>"}`, "unknown_namespace"},
		{"GET", "/tinyid/id/nextIdSimple?bizType=x&token=x", "", plain, ``, "unknown_namespace"},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=x&token=x", "", plain, ``, "unknown_namespace"},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=flake", "", plain, ``, "no_ranges"},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=carts", "", plain, ``, "no_ranges"},
		{"GET", "/tinyid/id/nextIdSimple?bizType=carts", "", plain, ``, "bad_format"},
		{"GET", "/tinyid/id/nextId?bizType=uuids&token=x", "", js,
			`{"data":null,"code":6,"message":"the ids of namespace uuids, of kind uuid, are not numbers"}`, "bad_format"},
	} {
		answer := askTinyID(t, h, c.method, c.path, c.body)
		if got := answer.Body.String(); answer.Code != http.StatusOK || got != c.want {
			t.Errorf("%s %s %q: %d %s, want %s", c.method, c.path, c.body, answer.Code, got, c.want)
		}
		if typ, code := answer.Header().Get("Content-Type"), answer.Header().Get("Firn-Error"); typ != c.typ || code != c.code {
			t.Errorf("%s %s: type %q and code %q, want %q and %q", c.method, c.path, typ, code, c.typ, c.code)
		}
	}
}

// TestATokenAllowsItsTypes and no others. The answer does not say what is wrong with a token.
func TestATokenAllowsItsTypes(t *testing.T) {
	const token = "0f673adf80504e2eaa552f5d791b644c"
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces(), Tokens: []settings.Token{
		{Name: "tinyid-1", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(token))), Namespaces: []string{"test", "gone"}},
	}})
	const denied = `{"data":null,"code":5,"message":"token is error"}`
	for _, c := range []struct{ query, want, code string }{
		{"?bizType=test&token=" + token, `{"data":[1],"code":200,"message":""}`, ""},
		{"?bizType=gone&token=" + token, `{"data":null,"code":6,"message":"error query segmentId: can not find biztype:gone"}`, "unknown_namespace"},
		{"?bizType=test_odd&token=" + token, denied, "forbidden"},
		{"?bizType=test&token=" + token + "0", denied, "unauthorized"},
		{"?bizType=test&token=", denied, "unauthorized"},
		{"?bizType=test", denied, "unauthorized"},
		{"?bizType=none&token=wrong", denied, "unauthorized"},
	} {
		answer := askTinyID(t, h, "GET", "/tinyid/id/nextId"+c.query, "")
		if got, code := answer.Body.String(), answer.Header().Get("Firn-Error"); answer.Code != http.StatusOK || got != c.want || code != c.code {
			t.Errorf("%s: %d %s (%s), want %s (%s)", c.query, answer.Code, got, code, c.want, c.code)
		}
		for _, simple := range []string{"nextIdSimple", "nextSegmentIdSimple"} {
			if answer := askTinyID(t, h, "POST", "/tinyid/id/"+simple, strings.TrimPrefix(c.query, "?")); (answer.Body.Len() == 0) != (c.code != "") {
				t.Errorf("%s%s: %s", simple, c.query, answer.Body)
			}
		}
	}
}

// TestARangeCountsAgainstTheRate: a range is no larger than the rate allows at once, and the next must wait.
func TestARangeCountsAgainstTheRate(t *testing.T) {
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces(), Limits: settings.Limits{Rate: map[string]string{"test": "100/h"}}})
	if got := askTinyID(t, h, "POST", "/tinyid/id/nextSegmentIdSimple?bizType=test", "").Body.String(); got != "0,20,100,1,0" {
		t.Error(got)
	}
	answer := askTinyID(t, h, "POST", "/tinyid/id/nextSegmentIdSimple?bizType=test", "")
	if answer.Body.Len() > 0 || answer.Header().Get("Firn-Error") != "rate_limited" || answer.Header().Get("Retry-After") == "" {
		t.Errorf("%s, %v", answer.Body, answer.Header())
	}
}

// TestABatchIsCapped at the limit, as TinyId does, and not refused.
func TestABatchIsCapped(t *testing.T) {
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces(), Limits: settings.Limits{Batch: new(50)}})
	for _, size := range []string{"50", "51", "2147483647"} {
		got := askTinyID(t, h, "GET", "/tinyid/id/nextIdSimple?bizType=test&batchSize="+size, "").Body.String()
		if n := strings.Count(got, ",") + 1; n != 50 {
			t.Errorf("batchSize=%s returns %d ids", size, n)
		}
	}
}

func TestARangeIsBoundedWhateverTheStep(t *testing.T) {
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces()})
	if got := askTinyID(t, h, "GET", "/tinyid/id/nextSegmentIdSimple?bizType=wide", "").Body.String(); got != "0,209715,1048576,1,0" {
		t.Error(got)
	}
}

func TestRequestsThatDoNotReachTinyIDsCodeGetSpringsError(t *testing.T) {
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces()})
	for _, c := range []struct {
		method, path, body string
		status             int
		word               string
	}{
		{"GET", "/tinyid/id/nextId?bizType=test&batchSize=many", "", 400, `"status":400,"error":"Bad Request"`},
		{"GET", "/tinyid/id/nextIdSimple?bizType=test&batchSize=2147483648", "", 400, `2147483648`},
		{"GET", "/tinyid/id/nextIdSimple?bizType=test&batchSize=1.5", "", 400, `"path":"/tinyid/id/nextIdSimple"`},
		{"OPTIONS", "/tinyid/id/nextId?bizType=test", "", 200, ``},
		{"TRACE", "/gateway/tinyid/id/nextId?bizType=test", "", 405, ``},
		{"GET", "/tinyid/id/nextid?bizType=test", "", 404, `"status":404,"error":"Not Found","message":"No message available","path":"/tinyid/id/nextid"}`},
		{"GET", "/tinyid/nextId?bizType=test", "", 404, `"No message available"`},
		{"GET", "/tinyid/id/nextId/x?bizType=test", "", 404, `"No message available"`},
		{"GET", "/gateway/tinyid/id/x", "", 404, `"No message available"`},
		{"GET", "/tinyid", "", 404, `"No message available"`},
		{"GET", "/", "", 404, ``},
	} {
		answer := askTinyID(t, h, c.method, c.path, c.body)
		if got := answer.Body.String(); answer.Code != c.status || !strings.Contains(got, c.word) {
			t.Errorf("%s %s: %d %s, want %d with %s", c.method, c.path, answer.Code, got, c.status, c.word)
		}
	}
	if got := askTinyID(t, h, "GET", "/tinyid/id/nextIdSimple?bizType=test", "").Body.String(); got != "1" {
		t.Errorf("after bad requests: %q", got)
	}
}

// TestThePathMayHaveAnyPrefix: a client's tinyid.server may be host:9999/gateway, and the
// original server may have any context path.
func TestThePathMayHaveAnyPrefix(t *testing.T) {
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces()})
	for i, prefix := range []string{"/tinyid", "/gateway/tinyid", "/a/b/c/tinyid", "/ids", "", "/v1/tinyid"} {
		if got := askTinyID(t, h, "POST", prefix+"/id/nextIdSimple?token=x&bizType=test", "").Body.String(); got != strconv.Itoa(i+1) {
			t.Errorf("%s: %q", prefix, got)
		}
	}
}

// The expected types are those of Spring Boot 1.5.18 with TinyId's controllers.
func TestTheClientDecidesTheTypeOfANumber(t *testing.T) {
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces()})
	for accept, want := range map[string]string{
		"application/json, application/*+json": "application/json;charset=UTF-8",
		"text/plain, application/json, */*":    "text/plain;charset=UTF-8",
		"*/*;q=0.1":                            "text/plain;charset=UTF-8",
		"image/png":                            "image/png;charset=UTF-8",
		"application/*":                        "application/json;charset=UTF-8",
		"text/*":                               "text/plain;charset=UTF-8",
		"*/*, application/json":                "application/json;charset=UTF-8",
		"application/xml;q=0.5, application/json;q=0.9":        "application/json;charset=UTF-8",
		"application/json;q=0.5, application/xml;q=0.9":        "application/xml;charset=UTF-8",
		"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2": "text/html;charset=UTF-8",
		"nonsense": "",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/tinyid/id/nextIdSimple?bizType=test", http.NoBody)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("Accept: %s returns %s", accept, got)
		}
	}
}

func TestAClientThatDoesNotAcceptJSONGetsNoIDInIt(t *testing.T) {
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces()})
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/tinyid/id/nextId?bizType=test", http.NoBody)
	r.Header.Set("Accept", "application/xml")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusNotAcceptable || w.Body.Len() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := askTinyID(t, h, "GET", "/tinyid/id/nextIdSimple?bizType=test", "").Body.String(); got != "1" {
		t.Errorf("after it: %q", got)
	}
}

// A span is a range as a client reads it, with delta 1.
type span struct{ current, max int64 }

func readSpan(t *testing.T, answer string) span {
	t.Helper()
	fields := strings.Split(answer, ",")
	if len(fields) != 5 {
		t.Fatalf("%q is not a range", answer)
	}
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if n[0] >= n[2] || n[1] < n[0] || n[1] > n[2] {
		t.Fatalf("%q: the numbers are out of order", answer)
	}
	return span{n[0], n[2]}
}

// TestServersOfOneStoreIssueDifferentIDs takes ranges and single ids of three servers.
func TestServersOfOneStoreIssueDifferentIDs(t *testing.T) {
	s := memstore.New(nil)
	var servers []http.Handler
	for range 3 {
		_, h := serveTinyID(t, s, settings.Config{Namespaces: tinyidNamespaces()})
		servers = append(servers, h)
	}
	seen := map[int64]bool{}
	var before int64
	for i := range 60 {
		h := servers[i%3]
		var ids []int64
		if i%4 == 3 {
			id, err := strconv.ParseInt(askTinyID(t, h, "GET", "/tinyid/id/nextIdSimple?bizType=test", "").Body.String(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		} else {
			r := readSpan(t, askTinyID(t, h, "GET", "/tinyid/id/nextSegmentIdSimple?bizType=test", "").Body.String())
			for id := r.current + 1; id <= r.max; id++ {
				ids = append(ids, id)
			}
		}
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%d was issued twice", id)
			}
			seen[id] = true
		}
		// Ranges of a sequence increase across all servers.
		r := readSpan(t, askTinyID(t, h, "GET", "/tinyid/id/nextSegmentIdSimple?bizType=txn", "").Body.String())
		if r.current < before {
			t.Fatalf("a range that begins after %d follows one that ended at %d", r.current, before)
		}
		before = r.max
	}
}

// TestRangesContinueWhileTheConfigurationChanges: no request fails, and no ranges overlap.
func TestRangesContinueWhileTheConfigurationChanges(t *testing.T) {
	service, h := serveTinyID(t, memstore.New(nil), settings.Config{Namespaces: tinyidNamespaces()})
	ctx, stop := context.WithCancel(t.Context())
	var changes sync.WaitGroup
	changes.Go(func() {
		for step := int64(1); ctx.Err() == nil; step++ {
			all := tinyidNamespaces()
			all["test"] = settings.Namespace{Kind: "segment", Segment: settings.Segment{MinStep: 10 + step%5}}
			if err := service.Apply(context.Background(), settings.Config{Namespaces: all, Anonymous: []string{"*"}}); err != nil {
				t.Error(err)
			}
		}
	})
	var mu sync.Mutex
	seen := map[int64]bool{}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 200 {
				answer := askTinyID(t, h, "POST", "/tinyid/id/nextSegmentIdSimple?token=x&bizType=test", "").Body.String()
				if answer == "" {
					t.Error("a range was refused")
					continue
				}
				r := readSpan(t, answer)
				mu.Lock()
				for id := r.current + 1; id <= r.max; id++ {
					if seen[id] {
						t.Errorf("%d was issued twice", id)
					}
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	stop()
	changes.Wait()
}

// A snowflake namespace has no ranges.
func TestWithoutAConfigurationABizTypeIsASnowflake(t *testing.T) {
	_, h := serveTinyID(t, memstore.New(nil), settings.Config{})
	got := askTinyID(t, h, "GET", "/tinyid/id/nextIdSimple?bizType=anything&token=x", "").Body.String()
	if id, err := strconv.ParseInt(got, 10, 64); err != nil || id < 1<<50 {
		t.Errorf("%q, %v", got, err)
	}
	answer := askTinyID(t, h, "GET", "/tinyid/id/nextSegmentIdSimple?bizType=anything&token=x", "")
	if got := answer.Body.String(); got != "" || answer.Header().Get("Firn-Error") != "no_ranges" {
		t.Errorf("%q, %v", got, answer.Header())
	}
}
