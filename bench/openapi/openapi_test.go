package openapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/firn-id/firn/bench/internal/program"
)

// configuration has a namespace of each kind, and some that fail. The tokens are the secrets shop, one, few and root.
const configuration = `
store: sqlite:%s
listen: {http: %s, resp: off, grpc: off}
limits: {batch: 1000, body: 1024, rate: {slow: 1/h}}
tokens:
  - {name: shop, sha256: 8d9001d32c6a703d95921a77115050f33dd823d3f1730bd35215dcbecad6dc20, namespaces: ["*"]}
  - {name: one, sha256: 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed, namespaces: [orders]}
  - {name: few, sha256: fa95e5080882f52bd40ccab2dee9c88c4d1fad7ad1093f93a0edcd8fb42d2bee, leases: ["*"], max_leases: 1}
  - {name: root, sha256: 4813494d137e1631bba301d5acab6e7bb7aa74ce1185d456565ef51d737677b2, namespaces: ["*"], admin: true, unveil: true, leases: ["*"]}
namespaces:
  orders:   {}
  slow:     {}
  narrow:   {pool: narrow, layout: 41/0/1/12}
  fixed:    {pool: fixed, worker: 1}
  items:    {kind: segment}
  turns:    {kind: sequence}
  last:     {kind: sequence, from: 9223372036854775807}
  taken:    {kind: segment}
  hidden:   {kind: segment, veil: {key_file: %s}}
  invoices: {kind: number, template: "INV{yyyyMMdd}-{n:5}"}
  pays:     {kind: serial, prefix: PAY, check: luhn}
  sessions: {kind: uuid}
  carts:    {kind: uuid, prefix: cart}
  objects:  {kind: objectid}
`

// elsewhere are the ends of what this test does not provoke: these have tests of their own.
var elsewhere = []string{
	"internal",                                                                             // a bug
	"overloaded", "too_many_connections", "too_many_names", "too_many_streams", "canceled", // needs more clients, or slower ones
	"starting", "joining", "shutting_down", "namespace_changed", // the moments before and after
	"clock_back", "fence_reached", "time_exhausted", // clocks
	"store_unavailable", "set_back", "timed_out", "/workers 503 store_mismatch", "/release 503 store_mismatch", // stores
	"leases/{pool} 503 store_mismatch", "/renew 503 store_mismatch", "/renew 429 too_many_leases", "/renew 400 not_leasable", "wrong_clock",
}

// A request is sent to a server. Its answer has a status, and a code unless that is 200.
type request struct {
	method, path string
	token        string
	header       http.Header
	body         string
	status       int
	code         string
	wrong        bool // by its form: the validator refuses it too
}

// A described is what the test reads of the description.
type described struct {
	Paths map[string]map[string]struct {
		Parameters []struct{ Name, In string }
		Responses  map[string]struct {
			Codes []string `json:"x-codes"`
		}
	}
}

func TestTheServerAnswersAsItsDescriptionSays(t *testing.T) {
	address := start(t)
	text := get(t, "http://"+address+"/openapi.json")
	var d described
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	check := validate(t, strict(t, text))

	listed, todo := d.all(), d.all()
	for _, q := range requests(t, address) {
		req, err := http.NewRequestWithContext(t.Context(), q.method, "http://"+address+q.path, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(req.Header, q.header)
		if q.token != "" {
			req.Header.Set("Authorization", "Bearer "+q.token)
		}
		if ok, errs := check.ValidateHttpRequest(req); ok == q.wrong {
			t.Errorf("%s %s: as a request valid %v: %v", q.method, q.path, ok, errs)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := read(answer)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		answer.Body = io.NopCloser(bytes.NewReader(body))
		if ok, errs := check.ValidateHttpResponse(req, answer); !ok {
			t.Errorf("%s %s: %d %s: %v", q.method, q.path, answer.StatusCode, body, errs)
		}
		var failed struct{ Error struct{ Code string } }
		_ = json.Unmarshal(body, &failed) // texts have no code
		if answer.StatusCode != q.status || failed.Error.Code != q.code {
			t.Errorf("%s %s: %d %s, want %d %s", q.method, q.path, answer.StatusCode, body, q.status, q.code)
		}
		for _, shown := range d.shown(req, q.status, q.code) {
			if !listed[shown] {
				t.Errorf("the description lacks %s", shown)
			}
			delete(todo, shown)
		}
	}
	for left := range todo {
		if !slices.ContainsFunc(elsewhere, func(end string) bool { return strings.HasSuffix(left, end) }) {
			t.Errorf("no request has shown %s", left)
		}
	}
}

// worker returns the worker of the server.
func worker(t *testing.T, address string) string {
	t.Helper()
	var pool struct{ Slots []struct{ Worker int64 } }
	if err := json.Unmarshal(get(t, "http://root@"+address+"/v1/pools/default/workers"), &pool); err != nil {
		t.Fatal(err)
	}
	return strconv.FormatInt(pool.Slots[0].Worker, 10)
}

// requests returns the requests, with ids of the server itself.
func requests(t *testing.T, address string) []request {
	all := []request{
		{path: "/livez", status: 200},
		{path: "/readyz", status: 200},
		{path: "/readyz?namespace=orders&namespace=items", status: 200},
		{path: "/readyz?namespace=absent", status: 404, code: "unknown_namespace"},
		{path: "/readyz?name=orders", status: 400, code: "bad_request"},
		{path: "/openapi.json", status: 200},
		{path: "/metrics", token: "root", status: 200},
		{path: "/metrics", token: "shop", status: 403, code: "forbidden"},
		{path: "/v1/namespaces", token: "root", status: 200},
		{path: "/v1/namespaces?all=true", token: "root", status: 400, code: "bad_request"},
		{path: "/v1/events?namespace=orders&namespace=items", token: "root", status: 200},
		{path: "/v1/events?name=orders", token: "root", status: 400, code: "bad_request"},
		{path: "/v1/namespaces/absent", token: "root", status: 404, code: "unknown_namespace"},
		{path: "/v1/namespaces/items", token: "one", status: 403, code: "forbidden"},
		{path: "/v1/pools/default/workers", token: "root", status: 200},
		{path: "/v1/pools/none/workers", token: "root", status: 404, code: "not_found"},
		{path: "/v1/pools/default/workers", token: "shop", status: 403, code: "forbidden"},
		{path: "/v1/store", token: "root", status: 200},
		{path: "/v1/store?x=1", token: "root", status: 400, code: "bad_request"},
		{path: "/v1/store", token: "shop", status: 403, code: "forbidden"},
		{path: "/v1/decode/249681087299011313", token: "shop", status: 200},
		{path: "/v1/decode/249681087299011313?layout=twitter&unit=2ms&epoch=2020-01-01&format=decimal", token: "shop", status: 200},
		{path: "/v1/decode/1?layout=many", token: "shop", status: 400, code: "bad_layout"},
		{path: "/v1/decode/1?format=runes", token: "shop", status: 400, code: "bad_format"},
		{path: "/v1/decode/%21", token: "shop", status: 400, code: "bad_id"},
		{path: "/v1/decode/1?namespace=absent", token: "root", status: 404, code: "unknown_namespace"},
		{path: "/v1/decode/1?namespace=items", token: "one", status: 403, code: "forbidden"},
	}
	for _, name := range []string{"orders", "items", "turns", "hidden", "invoices", "pays", "sessions", "carts", "objects"} {
		var made struct{ IDs []string }
		if err := json.Unmarshal(get(t, "http://root@"+address+"/v1/ids/"+name), &made); err != nil {
			t.Fatal(err)
		}
		all = append(all,
			request{path: "/v1/decode/" + url.PathEscape(made.IDs[0]) + "?namespace=" + name, token: "root", status: 200},
			request{path: "/v1/namespaces/" + name, token: "root", status: 200})
	}
	for i := range all {
		all[i].method = "GET"
	}
	for _, method := range []string{"GET", "POST"} {
		ids := func(query string, status int, code string, wrong bool) request {
			return request{method: method, path: "/v1/ids/" + query, token: "shop", status: status, code: code, wrong: wrong}
		}
		text, soon := ids("orders?count=2", 200, "", false), ids("orders", 200, "", false)
		text.header, soon.header = http.Header{"Accept": {"text/plain"}}, http.Header{"Firn-Timeout-Ms": {"5000"}}
		never := ids("orders", 400, "bad_request", true)
		never.header = http.Header{"Firn-Timeout-Ms": {"0"}}
		another := ids("items", 403, "forbidden", false)
		another.token = "one"
		all = append(all, text, soon, never, another,
			ids("orders?count=3&format=base62&numbers=false&once=7", 200, "", false),
			ids("items?numbers=true", 200, "", false),
			ids("orders?count=0", 400, "bad_count", true), ids("orders?count=many", 400, "bad_count", true),
			ids("orders?format=runes", 400, "bad_format", true), ids("orders?numbers=perhaps", 400, "bad_request", true),
			ids("orders?cuont=2", 400, "bad_request", false), ids("orders?count=1&count=2", 400, "bad_request", false),
			ids("absent", 404, "unknown_namespace", false), ids("orders?count=1001", 413, "batch_too_large", false),
			ids("last", map[string]int{"GET": 200, "POST": 503}[method], map[string]string{"POST": "exhausted"}[method], false),
			ids("last", 503, "exhausted", false), ids("taken", 503, "store_mismatch", false),
			ids("slow", map[string]int{"GET": 200, "POST": 429}[method], map[string]string{"POST": "rate_limited"}[method], false),
			ids("slow", 429, "rate_limited", false),
		)
	}
	release := func(path, token string, status int, code string, wrong bool) request {
		return request{method: "POST", path: "/v1/pools/" + path, token: token, status: status, code: code, wrong: wrong}
	}
	all = append(all,
		release("default/workers/"+worker(t, address)+"/release?datacenter=0", "root", 200, "", false),
		release("default/workers/0/release", "shop", 403, "forbidden", false),
		release("none/workers/0/release", "root", 404, "not_found", false),
		release("default/workers/x/release", "root", 400, "bad_request", true),
		release("default/workers/0/release?datacenter=x", "root", 400, "bad_request", true))
	all = append(all, leases(t, address)...)
	all = append(all, request{method: "GET", path: "/readyz?namespace=taken", status: 503, code: "not_ready"})
	// What each request may have in common with others.
	seen := map[string]bool{}
	for _, q := range slices.Clone(all) {
		path, _, _ := strings.Cut(q.path, "?")
		if q.status != 200 || seen[q.method+path] {
			continue
		}
		seen[q.method+path] = true
		part, long, many, stranger := q, q, q, q
		part.header, part.status, part.code = http.Header{"Range": {"bytes=1-"}}, 400, "bad_request"
		long.body, long.status, long.code = strings.Repeat("x", 2000), 413, "body_too_large"
		many.header, many.status, many.code = http.Header{"X-Many": slices.Repeat([]string{"x"}, 101)}, 431, "bad_request"
		all = append(all, part, long, many)
		if q.token != "" {
			stranger.token, stranger.status, stranger.code = "unknown", 401, "unauthorized"
			all = append(all, stranger)
		}
	}
	return all
}

// read returns the body of an answer, of a stream its first event.
func read(answer *http.Response) ([]byte, error) {
	if answer.Header.Get("Content-Type") != "text/event-stream" {
		return io.ReadAll(answer.Body)
	}
	var event []byte
	for lines := bufio.NewReader(answer.Body); ; {
		line, err := lines.ReadBytes('\n')
		event = append(event, line...)
		if err != nil || len(line) == 1 {
			return event, err
		}
	}
}

// all returns what the description lists, as texts. Each ends with a code, a parameter or 200.
func (d described) all() map[string]bool {
	all := map[string]bool{}
	for path, operations := range d.Paths {
		for method, o := range operations {
			at := strings.ToUpper(method) + " " + path + " "
			for _, p := range o.Parameters {
				all[at+p.In+" "+p.Name] = true
			}
			for status, answer := range o.Responses {
				for _, code := range answer.Codes {
					all[at+status+" "+code] = true
				}
				if len(answer.Codes) == 0 {
					all[at+status] = true
				}
			}
		}
	}
	return all
}

// shown returns what a request has shown, in the form of all.
func (d described) shown(req *http.Request, status int, code string) (all []string) {
	for path, operations := range d.Paths {
		if !matches(path, req.URL.Path) {
			continue
		}
		at := req.Method + " " + path + " "
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s%d %s", at, status, code)))
		if status != http.StatusOK {
			continue
		}
		for _, p := range operations[strings.ToLower(req.Method)].Parameters {
			if p.In == "path" || p.In == "query" && req.URL.Query().Has(p.Name) || p.In == "header" && req.Header.Get(p.Name) != "" {
				all = append(all, at+p.In+" "+p.Name)
			}
		}
	}
	return all
}

// matches reports whether a path is one of a template.
func matches(template, path string) bool {
	want, have := strings.Split(template, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == h || strings.HasPrefix(w, "{") })
}

// validate returns the validator of a description, which it checks first.
func validate(t *testing.T, text []byte) validator.Validator {
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, errs := v.ValidateDocument(); !ok {
		t.Fatal(errs)
	}
	return v
}

// strict returns a description whose objects have no other fields than it lists, so that a field that is missing in it
// is found.
func strict(t *testing.T, text []byte) []byte {
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	var close func(any)
	close = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, each := range v {
				close(each)
			}
			if v["type"] == "object" && v["properties"] != nil {
				v["additionalProperties"] = false
			}
		case []any:
			for _, each := range v {
				close(each)
			}
		}
	}
	close(whole)
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// start starts a server and returns its address.
func start(t *testing.T) string {
	t.Chdir("../..")
	dir := t.TempDir()
	firn, err := program.BuildFirn(dir)
	if err != nil {
		t.Fatal(err)
	}
	address, err := program.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	store, key, file := filepath.Join(dir, "firn.db"), filepath.Join(dir, "key"), filepath.Join(dir, "firn.yaml")
	if out, err := exec.CommandContext(t.Context(), firn, "store", "make", "sqlite:"+store).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The name is taken by a counter of another kind.
	if out, err := exec.CommandContext(t.Context(), firn, "next", "--kind", "sequence", "--name", "taken", "--store", "sqlite:"+store).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for path, text := range map[string]string{
		key: "1:000102030405060708090a0b0c0d0e0f\n", file: fmt.Sprintf(configuration, store, address, key),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := &program.Program{Address: address, Path: firn, Args: []string{"serve", "--config", file}, Says: program.Serving}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.End(); err != nil {
			t.Errorf("%v\n%s", err, server.Log.String())
		}
	})
	return address
}

// get returns the body of an answer. The user of the URL is a token.
func get(t *testing.T, at string) []byte {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token := req.URL.User.Username(); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", at, answer.StatusCode, body, err)
	}
	return body
}
