package server_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// newServer serves over a memory store.
func newServer(t *testing.T, cfg settings.Config) (*server.Server, *httptest.Server) {
	t.Helper()
	return newServerOver(t, memstore.New(nil), cfg)
}

func newServerOver(t *testing.T, st store.Store, cfg settings.Config) (*server.Server, *httptest.Server) {
	t.Helper()
	return newServerOf(t, server.Config{Settings: cfg, Store: st})
}

func newServerOf(t *testing.T, cfg server.Config) (*server.Server, *httptest.Server) {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	s, err := server.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, h
}

// ask makes a request and returns status and body.
func ask(t *testing.T, h *httptest.Server, method, path, accept string) (int, string, http.Header) {
	t.Helper()
	a := does(t, h.Client(), method, h.URL+path, "Accept", accept)
	return a.status, a.body, a.header
}

func TestReadOnlyEndpointsRefuseOtherMethods(t *testing.T) {
	_, h := newServer(t, settings.Config{})
	for _, path := range []string{"/", "/metrics", "/livez", "/readyz", "/v1/namespaces"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
			status, body, header := ask(t, h, method, path, "")
			if status != 405 || !strings.Contains(body, `"method_not_allowed"`) || header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d %s, Allow: %q", method, path, status, body, header.Get("Allow"))
			}
		}
		for _, method := range []string{"GET", "HEAD"} {
			if status, body, _ := ask(t, h, method, path, ""); status != 200 {
				t.Errorf("%s %s: %d %s", method, path, status, body)
			}
		}
	}
	for _, path := range []string{"/metrics/", "/nothing"} {
		if status, body, _ := ask(t, h, "POST", path, ""); status != 404 {
			t.Errorf("POST %s: %d %s", path, status, body)
		}
	}
}

func TestEveryKindIsServed(t *testing.T) {
	key := filepath.Join(t.TempDir(), "order.key")
	if err := os.WriteFile(key, []byte("1:000102030405060708090a0b0c0d0e0f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("USER_KEYS", "3:000102030405060708090a0b0c0d0e0f")
	path := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(path, []byte(`
namespaces:
  plain:    {}
  orders:   {layout: firn, veil: {key_file: `+key+`}}
  short:    {kind: segment, min_step: 10, max_step: 100, target: 1m, from: 500}
  striped:  {kind: segment, offset: 1, stride: 4}
  hidden:   {kind: segment, veil: {key_env: USER_KEYS, bits: 53}}
  txn:      {kind: sequence}
  invoices: {kind: number, template: "INV{yyyy}-{n:5}", zone: "+08:00"}
  sessions: {kind: uuid}
  random:   {kind: uuid, version: 4}
  objects:  {kind: objectid}
  pays:     {kind: serial, prefix: PAY, check: luhn}
  carts:    {prefix: cart}
  visits:   {kind: uuid, prefix: visit}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := settings.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	_, h := newServer(t, cfg)
	for name, want := range map[string]string{
		"plain": `"\d{18,19}"`, "orders": `"\d+"`, "short": `"50\d"`, "striped": `"\d+"`, "hidden": `"\d{1,16}"`, "txn": `"[123]"`,
		"invoices": `"INV20\d\d-0000[123]"`, "sessions": `"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"`,
		"random":  `"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"`,
		"objects": `"[0-9a-f]{24}"`, "pays": `"PAY20\d{27}"`, "carts": `"cart_[0-9A-Z]{13}"`, "visits": `"visit_[0-9A-Z]{26}"`,
	} {
		status, body, _ := ask(t, h, "POST", "/v1/ids/"+name+"?count=3", "")
		if status != 200 || !regexp.MustCompile(`^\{"namespace":"`+name+`","ids":\[`+want+`,`+want+`,`+want+`\]\}\n$`).MatchString(body) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		status, body, _ = ask(t, h, "GET", "/v1/namespaces/"+name, "")
		if status != 200 || !strings.Contains(body, `"namespace":"`+name+`","kind":"`) || strings.Contains(body, `"error"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		status, body, _ = ask(t, h, "POST", "/v1/ids/"+name, "text/plain")
		if status != 200 || strings.Count(body, "\n") != 1 {
			t.Errorf("%s: %d %q", name, status, body)
		}
	}
	for path, want := range map[string]string{
		"/v1/ids/sessions?format=hex":       "bad_format",
		"/v1/ids/carts?numbers=true":        "bad_format",
		"/v1/ids/txn?format=readable":       "bad_format",
		"/v1/ids/orders?format=readable":    "bad_format",
		"/v1/decode/1?namespace=txn":        `"note":"a counter made this id`,
		"/v1/decode/1?namespace=orders":     `"note":"the time is in the future: most likely this namespace did not make the id"`, // every number unveils to some id
		"/v1/ids/nobody":                    "unknown_namespace",
		"/v1/ids/invoices?count=100000":     "bad_request",
		"/v1/decode/1?namespace=plain":      `"layout":"firn"`,
		"/v1/ids/txn?format=base58&count=2": `"ids":["1`,
	} {
		if _, body, _ := ask(t, h, "GET", path, ""); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s", path, body, want)
		}
	}
	for path, want := range map[string]int{
		"/readyz": 200, "/readyz?namespace=txn": 200, "/readyz?namespace=nope": 404, "/readyz?namespace=nope;": 400, "/readyz?namespace=no%zzpe": 400, "/readyz?namespaces=txn": 400, "/readyz?namespace=txn&namespace=orders": 200, "/readyz?namespace=txn&namespace=nobody": 404,
	} {
		if status, body, _ := ask(t, h, "GET", path, ""); status != want || want == 200 && body != "ok\n" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestIDsHaveTheRequestedFormat(t *testing.T) {
	_, h := newServer(t, settings.Config{})
	for _, method := range []string{"GET", "POST"} {
		status, body, header := ask(t, h, method, "/v1/ids/orders?count=3", "")
		var answer struct {
			Namespace string
			IDs       []firn.ID
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 200 || answer.Namespace != "orders" || len(answer.IDs) != 3 {
			t.Errorf("%s: %d %s, %v", method, status, body, err)
		}
		if answer.IDs[0] >= answer.IDs[1] || !strings.Contains(body, `"ids":["`) {
			t.Errorf("%s: %s", method, body)
		}
		if header.Get("Cache-Control") != "private, no-store" || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", method, header)
		}
	}
	for path, encoding := range map[string]firn.Encoding{
		"?format=base62": firn.Base62, "?format=hex": firn.Hex, "": firn.Decimal, "?format=base64url": firn.Base64URL, "?format=decimal": firn.Decimal,
	} {
		status, body, _ := ask(t, h, "POST", "/v1/ids/orders"+path, "text/plain")
		if id, err := encoding.Parse(strings.TrimSuffix(body, "\n")); status != 200 || err != nil || id < 1<<50 {
			t.Errorf("%q: %d %q, %v", path, status, body, err)
		}
	}
	if _, body, _ := ask(t, h, "POST", "/v1/ids/orders?numbers=true", ""); strings.Contains(body, `["`) || !json.Valid([]byte(body)) {
		t.Errorf("numbers: %s", body)
	}
	if _, body, _ := ask(t, h, "POST", "/v1/ids/orders?format=readable", "text/html, text/plain;q=0.5"); !strings.Contains(body, "-w") {
		t.Errorf("readable: %s", body)
	}
}

// A client can tell an answer to its request from one to another request, also if it is plain text.
func TestAnAnswerRepeatsWhatDiffers(t *testing.T) {
	_, h := newServer(t, settings.Config{})
	for _, accept := range []string{"text/plain", "application/json"} {
		if status, body, header := ask(t, h, "POST", "/v1/ids/orders?once=R7_-", accept); status != http.StatusOK || header.Get("Firn-Once") != "R7_-" {
			t.Errorf("%s: %d %s, Firn-Once %q", accept, status, body, header.Get("Firn-Once"))
		}
	}
	if _, _, header := ask(t, h, "POST", "/v1/ids/orders?count=2", ""); header["Firn-Once"] != nil {
		t.Errorf("Firn-Once is %q without a once", header["Firn-Once"])
	}
}

func TestBadRequestsGetTheirStatusAndAReason(t *testing.T) {
	_, h := newServer(t, settings.Config{Limits: settings.Limits{Batch: new(1000)}})
	for _, c := range []struct {
		method, path string
		status       int
		code, words  string
	}{
		{"POST", "/v1/ids/orders?count=0", 400, "bad_count", "from 1 to 1000"},
		{"POST", "/v1/ids/orders?count=-1", 400, "bad_count", "-1"},
		{"POST", "/v1/ids/orders?count=", 400, "bad_count", "from 1"},
		{"POST", "/v1/ids/orders?count=1.5", 400, "bad_count", "1.5"},
		{"POST", "/v1/ids/orders?count=99999999999999999999", 400, "bad_count", "99999999999999999999"},
		{"POST", "/v1/ids/orders?count=1001", 413, "batch_too_large", "limit of 1000"},
		{"POST", "/v1/ids/orders?count=1;count=5", 400, "bad_request", "semicolon"},
		{"POST", "/v1/ids/orders?count=%5", 400, "bad_request", "%5"},
		{"POST", "/v1/ids/orders?cuont=3", 400, "bad_request", "cuont"},
		{"POST", "/v1/ids/orders?count=3&Format=hex", 400, "bad_request", "count, format, numbers, once"},
		{"POST", "/v1/ids/orders?once=a%0Ab", 400, "bad_request", "up to 64 letters, digits, - and _"},
		{"POST", "/v1/leases/default?once=a.b", 400, "bad_request", "up to 64 letters, digits, - and _"},
		{"POST", "/v1/ids/orders?count=3&count=4", 400, "bad_request", "count is given 2 times"},
		{"GET", "/v1/decode/7?layuot=twitter", 400, "bad_request", "Allowed: format, namespace, layout, unit, epoch"},
		{"GET", "/v1/decode/5?namespace=x;y", 400, "bad_request", "semicolon"},
		{"GET", "/v1/decode/5?namespace=x%zz", 400, "bad_request", "%zz"},
		{"GET", "/v1/decode/5?namespace=", 400, "bad_request", "namespace is empty"},
		{"GET", "/v1/decode/5?layout=", 400, "bad_request", "layout is empty"},
		{"GET", "/v1/decode/5?namespace=a&namespace=b", 400, "bad_request", "namespace is given 2 times"},
		{"GET", "/v1/namespaces?name=orders", 400, "bad_request", `"name" is not a parameter here: there are none`},
		{"GET", "/v1/namespaces/none?x=1", 400, "bad_request", `"x" is not a parameter`},
		{"GET", "/v1/pools/none/workers?state=held", 400, "bad_request", `"state" is not a parameter`},
		{"GET", "/v1/store?fresh=true", 400, "bad_request", `"fresh" is not a parameter`},
		{"GET", "/v1/pools/default/workers/7/release", 405, "method_not_allowed", "POST"},
		{"POST", "/v1/pools/default/workers/x/release", 400, "bad_request", `"x"`},
		{"POST", "/v1/pools/default/workers/1024/release", 400, "bad_request", "1023"},
		{"POST", "/v1/pools/default/workers/7/release?datacenter=x", 400, "bad_request", `"x"`},
		{"POST", "/v1/pools/default/workers/7/release?datacenter=1", 400, "bad_request", "datacenter"},
		{"POST", "/v1/pools/default/workers/7/release?gone=true", 400, "bad_request", `"gone"`},
		{"POST", "/v1/pools/none/workers/7/release", 404, "not_found", "none"},
		{"POST", "/v1/store", 405, "method_not_allowed", "GET, HEAD"},
		{"GET", "/readyz?namespace=nope;", 400, "bad_request", "semicolon"},
		{"GET", "/readyz?namespace=no%zzpe", 400, "bad_request", "%zz"},
		{"GET", "/readyz?namespase=nope", 400, "bad_request", "Allowed: namespace"},
		{"GET", "/readyz?namespace=a%20b", 400, "bad_request", "namespace name"}, // which no request can make
		{"GET", "/readyz?namespace=", 400, "bad_request", "namespace name"},
		{"POST", "/v1/ids/orders?format=roman", 400, "bad_format", "base58"},
		{"POST", "/v1/ids/orders?numbers=maybe", 400, "bad_request", "maybe"},
		{"POST", "/v1/ids/orders?numbers=true&format=hex", 400, "bad_format", "hex"},
		{"POST", "/v1/ids/a%20b", 400, "bad_request", "namespace name"},
		{"POST", "/v1/ids/" + strings.Repeat("x", 65), 400, "bad_request", "1 to 64"},
		{"DELETE", "/v1/ids/orders", 405, "method_not_allowed", "GET, POST"},
		{"HEAD", "/v1/ids/orders", 405, "", ""},
		{"POST", "/v1/namespaces", 405, "method_not_allowed", "GET"},
		{"GET", "/v1/nothing", 404, "not_found", "/v1/nothing"},
		{"GET", "/v1/ids/", 404, "not_found", "/v1/ids/"},
		{"GET", "/v1/namespaces/none", 404, "unknown_namespace", "first use"},
		{"GET", "/v1/decode/xyz!", 400, "bad_id", "xyz!"},
		{"GET", "/v1/decode/-1", 400, "bad_id", "-1"},
		{"GET", "/v1/decode/ORD20261130-000001", 400, "bad_id", "name the namespace that made it"},
		{"GET", "/v1/decode/1?format=nope", 400, "bad_format", "nope"},
		{"GET", "/v1/decode/xyz!?format=base58", 400, "bad_id", "xyz!"},
		{"GET", "/v1/decode/7?layout=nosuch", 400, "bad_layout", "twitter"},
		{"GET", "/v1/decode/7?unit=0s", 400, "bad_layout", "1ns"},
		{"GET", "/v1/decode/7?namespace=none", 404, "unknown_namespace", "none"},
		{"GET", "/v1/decode/7?namespace=x&layout=firn", 400, "bad_request", "not both"},
		{"GET", "/v1/pools/none/workers", 404, "not_found", "none"},
		{"GET", "/v1/pools/a%2Fb/workers", 400, "bad_request", "pool name"},
	} {
		status, body, _ := ask(t, h, c.method, c.path, "")
		var answer struct {
			Error struct{ Code, Message string }
		}
		err := json.Unmarshal([]byte(body), &answer)
		if c.method == "HEAD" {
			err = nil
		}
		if status != c.status || err != nil || answer.Error.Code != c.code || !strings.Contains(answer.Error.Message, c.words) {
			t.Errorf("%s %s: %d %s, want %d %s with %q", c.method, c.path, status, body, c.status, c.code, c.words)
		}
	}
}

func TestForeignContentInTheStoreIsAMismatch(t *testing.T) {
	mem := memstore.New(nil)
	for key, value := range map[string]string{
		"firn/other/pool": `{"layout":"41/0/10/12","open":true}`, "firn/other/slot/0/0007": `{"fence":"9223372036854775807","owner":"x"}`,
	} {
		if _, err := mem.CompareAndSwap(t.Context(), key, 0, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := server.New(t.Context(), server.Config{Settings: settings.Config{}, Store: mem, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	status, body, _ := ask(t, h, "GET", "/v1/pools/other/workers", "")
	if status != 503 || !strings.Contains(body, `"store_mismatch"`) || !strings.Contains(body, "firn/other/slot/0/0007") {
		t.Errorf("%d %s", status, body)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestANewNamespaceSharesTheGeneratorAndItsIDs(t *testing.T) {
	_, h := newServer(t, settings.Config{})
	var set idset.Set
	var group sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		group.Go(func() {
			for range 50 {
				_, body, _ := ask(t, h, "POST", "/v1/ids/"+name+"?count=100", "text/plain")
				for line := range strings.Lines(body) {
					id, err := firn.ParseID(strings.TrimSpace(line))
					if err != nil {
						t.Error(err)
						return
					}
					set.Add([]firn.ID{id})
				}
			}
		})
	}
	group.Wait()
	if set.Added() != 20_000 || set.Duplicates() != 0 {
		t.Errorf("%d ids, %d duplicates", set.Added(), set.Duplicates())
	}
	_, body, _ := ask(t, h, "GET", "/v1/namespaces", "")
	var list struct {
		Namespaces []struct {
			Namespace, Kind, Pool, Layout, Clock string
			Left                                 float64 `json:"fence_seconds"`
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Namespaces) != 4 {
		t.Fatalf("%s, %v", body, err)
	}
	if n := list.Namespaces[0]; n.Namespace != "a" || n.Kind != "snowflake" || n.Pool != "default" || n.Layout != "firn" || n.Clock != "steady" || n.Left < 200 {
		t.Errorf("%+v", n)
	}
}

func TestIssuedIDsDecode(t *testing.T) {
	_, h := newServer(t, settings.Config{})
	_, id, _ := ask(t, h, "POST", "/v1/ids/orders?format=base58", "text/plain")
	status, body, _ := ask(t, h, "GET", "/v1/decode/"+strings.TrimSpace(id)+"?namespace=orders", "")
	if status != 200 || !strings.Contains(body, `"layout":"firn"`) || !strings.Contains(body, `"tick":"`) {
		t.Errorf("%d %s", status, body)
	}
	_, body, _ = ask(t, h, "GET", "/v1/decode/1541815603606036480?layout=twitter", "")
	if want := `{"id":"1541815603606036480","layout":"twitter","time":"2022-06-28T16:07:40.105Z","tick":"367597485448","datacenter":0,"worker":378,"sequence":0}` + "\n"; body != want {
		t.Errorf("%s, want %s", body, want)
	}
	status, body, _ = ask(t, h, "GET", "/v1/pools/default/workers", "")
	if status != 200 || !strings.Contains(body, `"state":"held"`) || !strings.Contains(body, `"workers":1024`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestHealthAndMetrics(t *testing.T) {
	s, h := newServer(t, settings.Config{})
	// A parameter that a probe adds, as for caches, must not fail it.
	for _, path := range []string{"/livez", "/readyz", "/", "/livez?at=1", "/?at=1", "/metrics?at=1", "/openapi.json?at=1"} {
		if status, body, _ := ask(t, h, "GET", path, ""); status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	ask(t, h, "POST", "/v1/ids/orders?count=7", "")
	_, body, _ := ask(t, h, "GET", "/metrics", "")
	for _, want := range []string{`firn_ids_total{namespace="orders"} 7`, `firn_lease_fence_seconds{pool="default"} `, `firn_requests_total{code="ok",namespace="orders",protocol="http"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	status, body, header := ask(t, h, "POST", "/v1/ids/orders", "")
	if status != 503 || header.Get("Retry-After") == "" || !strings.Contains(body, "shutting_down") {
		t.Errorf("after Close: %d %s", status, body)
	}
}

func TestAConfigurationDeclaresTheNamespaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.yaml")
	write(t, path, `
store: "memory:"
listen: {http: 127.0.0.1:0}
namespaces:
  orders: {layout: firn}
  users:  {}
  legacy: {pool: legacy, layout: twitter, clock: wall, rollback: [wait 500ms, history 2000, switch, refuse]}
  flakes: {pool: flakes, layout: sonyflake, ahead: 1s, worker: 9}
  custom: {pool: custom, layout: 39/4/8/12, unit: 10ms, epoch: 2026-01-01, datacenter: 3}
limits: {batch: 50}
`)
	cfg, err := settings.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	_, h := newServer(t, cfg)
	for name, want := range map[string]string{
		"orders": `"layout":"firn"`, "users": `"pool":"default"`, "legacy": `"clock":"wall"`, "flakes": `"worker":9`, "custom": `"layout":"39/4/8/12,unit=10ms,epoch=2026-01-01T00:00:00Z"`,
	} {
		if status, body, _ := ask(t, h, "POST", "/v1/ids/"+name+"?count=50", ""); status != 200 {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if _, body, _ := ask(t, h, "GET", "/v1/namespaces/"+name, ""); !strings.Contains(body, want) {
			t.Errorf("%s: %s lacks %s", name, body, want)
		}
	}
	if status, body, _ := ask(t, h, "POST", "/v1/ids/other", ""); status != 404 || !strings.Contains(body, "not in the configuration") {
		t.Errorf("an undeclared namespace: %d %s", status, body)
	}
	if status, _, _ := ask(t, h, "POST", "/v1/ids/orders?count=51", ""); status != 413 {
		t.Errorf("above the file's limit: %d", status)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// gatedTime holds short sleeps, those of callers that wait for the clock, until the gate
// opens.
type gatedTime struct {
	firn.TimeSource
	entered chan struct{}
	gate    chan struct{}
	once    sync.Once
	armed   atomic.Bool
}

func (g *gatedTime) Sleep(ctx context.Context, d time.Duration) error {
	if d < 100*time.Millisecond && g.armed.Load() {
		g.once.Do(func() { close(g.entered) })
		<-g.gate
	}
	return g.TimeSource.Sleep(ctx, d)
}

// newGated returns a server of few ids a tick, and the time source and the store of its workers.
func newGated(t *testing.T) (*server.Server, *gatedTime, store.Store) {
	t.Helper()
	layout, err := firn.ParseLayout("41/0/10/2")
	if err != nil {
		t.Fatal(err)
	}
	gated := &gatedTime{TimeSource: firn.SystemTime(), entered: make(chan struct{}), gate: make(chan struct{})}
	base := lease.Config{Generator: firn.Config{Layout: layout, Time: gated}}
	st := memstore.New(nil)
	s, err := server.New(t.Context(), server.Config{Settings: settings.Config{}, Base: base, Store: st, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s, gated, st
}

func TestRequestsInFlightEndBeforeWorkersAreGivenBack(t *testing.T) {
	s, gated, store := newGated(t)
	listener := listen(t)
	gated.armed.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	served := open(ctx, t, s, server.Listeners{HTTP: listener})
	url := "http://" + listener.Addr().String()
	answered := make(chan string, 1)
	go func() { // more ids than may run ahead of the clock: it must wait
		answer, err := http.Post(url+"/v1/ids/orders?count=200", "", nil)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer answer.Body.Close()
		answered <- answer.Status
	}()
	<-gated.entered
	stop()
	for { // until it takes no new connections
		answer, err := http.Get(url + "/livez")
		if err != nil {
			break
		}
		answer.Body.Close()
	}
	select {
	case err := <-served:
		t.Fatalf("it stopped serving with a request under way: %v", err)
	default:
	}
	close(gated.gate)
	if status := <-answered; status != "200 OK" {
		t.Errorf("the request under way: %s", status)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	p, err := lease.Inspect(t.Context(), store, "default")
	if err != nil || !p.Slots[0].Free {
		t.Errorf("the worker after Close: %+v, %v", p.Slots, err)
	}
}
