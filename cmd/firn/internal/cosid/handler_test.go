package cosid_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/cosid"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/register"
	"github.com/firn-id/firn/store/storetest"
)

var start = time.UnixMilli(1795260245263)

// config is a configuration whose clock stands still.
func config() cosid.Config {
	var mu sync.Mutex
	issued := map[string]int{}
	return cosid.Config{
		Store: memstore.New(nil), Time: firntest.NewClock(start),
		Issue: func(_ context.Context, _ *access.Caller, name string, _ bool) (string, error) {
			switch name {
			case "nope":
				return "", failure.New(http.StatusNotFound, "unknown_namespace", "unknown name: %q", name)
			case "uuid":
				return "0197b6d8-0000-7000-8000-000000000000", nil
			case "down":
				return "", errors.New("out of order")
			case "limited":
				return "", refusal(http.StatusTooManyRequests, "too many", 1500*time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			issued[name]++
			return fmt.Sprint(issued[name]), nil
		},
	}
}

func refusal(status int, text string, retry time.Duration) error {
	f := failure.New(status, "refused", "%s", text)
	f.Retry = retry
	return f
}

// serve serves a configuration in which hooks that are nil allow everything.
func serve(t testing.TB, cfg cosid.Config) http.Handler {
	t.Helper()
	if cfg.Allow == nil {
		cfg.Allow = func(*http.Request, string) (*access.Caller, error) { return nil, nil }
	}
	if cfg.Segment == nil {
		cfg.Segment = func(string) (cosid.Segment, error) { return cosid.Segment{MaxStep: cosid.DefaultMaxStep}, nil }
	}
	cfg.Create = func(*access.Caller) (func(), error) { return func() {}, nil }
	cfg.Skip = func(*access.Caller) error { return nil }
	cfg.Take = func(*access.Caller, string, int64) (func(error), error) { return func(error) {}, nil }
	if cfg.Observe == nil {
		cfg.Observe = func(string, int, time.Duration) {}
	}
	h, err := cosid.Handler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask returns the answer to a request written as "GET /path", and its body.
func ask(h http.Handler, request string) (*httptest.ResponseRecorder, string) {
	method, target, _ := strings.Cut(request, " ")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w, w.Body.String()
}

const machine = "/machines/ns1?"

// exchanges run in this order on one server. A body that ends in … is a prefix.
var exchanges = []struct {
	request string
	status  int
	body    string
}{
	{"POST " + machine + "machineBit=1&instanceId=a:1&stable=false&safeGuardDuration=PT5M", 200, `{"machineId":0,"lastTimeStamp":1795260245263}`},
	{"POST " + machine + "machineBit=1&instanceId=a:1&stable=false&safeGuardDuration=PT5M", 200, `{"machineId":0,"lastTimeStamp":1795260245263}`},
	{"POST " + machine + "machineBit=1&instanceId=b:1&stable=true&safeGuardDuration=PT5M", 200, `{"machineId":1,"lastTimeStamp":1795260245263}`},
	{"POST " + machine + "machineBit=1&instanceId=c:1&stable=false&safeGuardDuration=PT5M", 400, `{"code":"M-01","msg":"no machine number is left in \"ns1\" for instance \"c:1\": all 2 are assigned; use more machine bits, or return the numbers of instances that are gone","errors":[]}`},
	{"POST " + machine + "machineBit=1&instanceId=c:1&stable=false&safeGuardDuration=PT2562047788015H12M55.807S", 400, `{"code":"M-01",…`},
	{"PATCH " + machine + "instanceId=a:1&stable=false&safeGuardDuration=PT5M", 200, ``},
	{"PATCH " + machine + "instanceId=zz:1&stable=false&safeGuardDuration=PT5M", 400, `{"code":"M-02","msg":"instance \"zz:1\" has no machine number in \"ns1\": request one first","errors":[]}`},
	{"DELETE " + machine + "instanceId=zz:1&stable=false", 400, `{"code":"M-02",…`},
	{"DELETE " + machine + "instanceId=a:1&stable=false", 200, ``},
	{"DELETE " + machine + "instanceId=a:1&stable=false", 400, `{"code":"M-02",…`},
	{"PATCH " + machine + "instanceId=a:1&stable=false&safeGuardDuration=PT5M", 400, `{"code":"M-02",…`},
	{"DELETE " + machine + "instanceId=b:1&stable=true", 200, ``},
	{"POST " + machine, 500, `{"code":"500","msg":"parameter machineBit is missing","errors":[]}`},
	{"POST " + machine + "machineBit=x&instanceId=a:1&stable=false&safeGuardDuration=PT5M", 500, `{"code":"500","msg":"parameter machineBit is \"x\", not an integer of 32 bits","errors":[]}`},
	{"POST " + machine + "machineBit=&instanceId=a:1&stable=false&safeGuardDuration=PT5M", 500, `{"code":"500",…`},
	{"POST " + machine + "machineBit=99999999999&instanceId=a:1&stable=false&safeGuardDuration=PT5M", 500, `{"code":"500",…`},
	{"POST " + machine + "machineBit=0&instanceId=a:1&stable=false&safeGuardDuration=PT5M", 400, `{"code":"500","msg":"machineBit is 0; 1 to 31 are allowed","errors":[]}`},
	{"POST " + machine + "machineBit=-1&instanceId=a:1&stable=false&safeGuardDuration=PT5M", 400, `{"code":"500",…`},
	{"POST " + machine + "machineBit=32&instanceId=a:1&stable=false&safeGuardDuration=PT5M", 400, `{"code":"500",…`},
	{"POST " + machine + "machineBit=31&instanceId=d:1&stable=false&safeGuardDuration=PT5M", 200, `{"machineId":0,"lastTimeStamp":1795260245263}`},
	{"POST " + machine + "machineBit=5&instanceId=&stable=false&safeGuardDuration=PT5M", 400, `{"code":"500","msg":"parameter instanceId is empty","errors":[]}`},
	{"POST " + machine + "machineBit=5&instanceId=" + strings.Repeat("x", 256) + "&stable=false&safeGuardDuration=PT5M", 400, `{"code":"500","msg":"parameter instanceId has 256 bytes; at most 255 are allowed","errors":[]}`},
	{"POST " + machine + "machineBit=5&instanceId=%ff&stable=false&safeGuardDuration=PT5M", 400, `{"code":"500","msg":"parameter instanceId is \"\\xff\", which is not UTF-8","errors":[]}`},
	{"POST " + machine + "machineBit=5&instanceId=%zz&stable=false&safeGuardDuration=PT5M", 500, `{"code":"500",…`},
	{"POST " + machine + "machineBit=5&instanceId=d:1&stable=maybe&safeGuardDuration=PT5M", 500, `{"code":"500","msg":"parameter stable is \"maybe\", neither true nor false","errors":[]}`},
	{"POST " + machine + "machineBit=5&instanceId=e:1&stable=yes&safeGuardDuration=PT5M", 200, `{"machineId":2,"lastTimeStamp":1795260245263}`},
	{"POST " + machine + "machineBit=5&instanceId=d:1&stable=false&safeGuardDuration=5m", 500, `{"code":"500",…`},
	{"POST " + machine + "machineBit=5&instanceId=d:1&stable=false&safeGuardDuration=", 500, `{"code":"500",…`},
	{"POST " + machine + "machineBit=5&instanceId=d:1&stable=false&safeGuardDuration=PT9223372036854775807S", 500, `{"code":"500",…`},
	{"POST " + machine + "machineBit=5&instanceId=d:1&stable=false&safeGuardDuration=PT0S", 400, `{"code":"500","msg":"parameter safeGuardDuration is 0 ms; it must be at least 1 ms, and is usually five minutes, PT5M","errors":[]}`},
	{"POST " + machine + "machineBit=5&instanceId=d:1&stable=false&safeGuardDuration=PT-5M", 400, `{"code":"500",…`},
	{"POST /machines/%E4%B8%AD%20x?machineBit=2&instanceId=%E4%B8%AD&stable=false&safeGuardDuration=PT5M", 200, `{"machineId":0,"lastTimeStamp":1795260245263}`},
	{"POST /machines/" + strings.Repeat("n", 256) + "?machineBit=2&instanceId=a&stable=false&safeGuardDuration=PT5M", 400, `{"code":"500",…`},
	{"GET /machines/ns1", 405, `{"code":"500","msg":"method GET is not allowed here: use POST, PATCH, DELETE","errors":[]}`},
	{"POST /machines", 404, `{"code":"500",…`},
	{"POST /machines/", 404, `{"code":"500",…`},
	{"POST /machines/a/b", 404, `{"code":"500",…`},

	{"POST /segments/distributor/ns1/seg?offset=0&step=100", 200, ``},
	{"POST /segments/distributor/ns1/seg?offset=50&step=100", 200, ``},
	{"PATCH /segments/ns1/seg?step=100", 200, `100`},
	{"PATCH /segments/ns1/seg?step=1", 200, `101`},
	{"POST /segments/distributor/ns1/seg?offset=0&step=100", 200, ``},
	{"PATCH /segments/ns1/seg?step=7", 200, `108`},
	{"PATCH /segments/ns1/fresh?step=7", 200, `7`},
	{"POST /segments/distributor/ns1/off?offset=50&step=100", 200, ``},
	{"PATCH /segments/ns1/off?step=10", 200, `60`},
	{"PATCH /segments/ns1/seg?step=%2B2", 200, `110`},
	{"PATCH /segments/ns1/seg?step=0", 400, `{"code":"500","msg":"step is 0; 1 to 1099511627776 are allowed","errors":[]}`},
	{"PATCH /segments/ns1/seg?step=-5", 400, `{"code":"500",…`},
	{"PATCH /segments/ns1/seg?step=9223372036854775807", 400, `{"code":"500",…`},
	{"PATCH /segments/ns1/seg?step=9223372036854775808", 500, `{"code":"500",…`},
	{"PATCH /segments/ns1/seg?step=x", 500, `{"code":"500",…`},
	{"PATCH /segments/ns1/seg", 500, `{"code":"500","msg":"parameter step is missing","errors":[]}`},
	{"PATCH /segments/ns1/seg?step=1", 200, `111`},
	{"POST /segments/distributor/ns1/neg?offset=-1&step=100", 400, `{"code":"500","msg":"offset is -1; 0 to 9223372036854775806 are allowed","errors":[]}`},
	{"POST /segments/distributor/ns1/st0?offset=0&step=0", 400, `{"code":"500",…`},
	{"POST /segments/distributor/ns1/st1?step=10", 500, `{"code":"500",…`},
	{"POST /segments/distributor/ns1/end?offset=9223372036854775800&step=10", 200, ``},
	{"PATCH /segments/ns1/end?step=5", 200, `9223372036854775805`},
	{"PATCH /segments/ns1/end?step=5", 400, `{"code":"500",…`},
	{"GET /segments/ns1/seg", 405, `{"code":"500",…`},
	{"GET /segments/distributor/ns1/seg", 405, `{"code":"500",…`},
	{"PATCH /segments/ns1/", 404, `{"code":"500",…`},

	{"GET /ids", 200, `1`},
	{"GET /ids/orders", 200, `1`},
	{"GET /ids/as-string", 200, `2`},
	{"GET /ids/as-string/orders", 200, `2`},
	{"GET /ids/__share__", 200, `3`},
	{"GET /ids/nope", 400, `{"code":"500","msg":"unknown name: \"nope\"","errors":[]}`},
	{"GET /ids/as-string/nope", 400, `{"code":"500",…`},
	{"GET /ids/down", 500, `{"code":"500","msg":"out of order","errors":[]}`},
	{"GET /ids/limited", 429, `{"code":"429","msg":"too many","errors":[]}`},
	{"GET /ids/as-string/uuid", 200, `0197b6d8-0000-7000-8000-000000000000`},
	{"POST /ids", 405, `{"code":"500",…`},
	{"HEAD /ids/orders", 405, `{"code":"500",…`},
	{"GET /ids/", 404, `{"code":"500",…`},
	{"GET /ids/a/b", 404, `{"code":"500",…`},
	{"GET /", 404, `{"code":"500",…`},
}

func TestAnswersAreThoseOfTheOriginal(t *testing.T) {
	h := serve(t, config())
	for _, e := range exchanges {
		r, body := ask(h, e.request)
		begin, partly := strings.CutSuffix(e.body, "…")
		fits := body == e.body
		if partly {
			fits = strings.HasPrefix(body, begin) && strings.HasSuffix(body, `,"errors":[]}`)
		}
		if r.Code != e.status || !fits {
			t.Errorf("%s: %d %s\nwant %d %s", e.request, r.Code, body, e.status, e.body)
		}
		want := "application/json"
		switch {
		case body == "":
			want = ""
		case e.status == 200 && strings.HasPrefix(e.request, "GET /ids/as-string"):
			want = "text/plain;charset=UTF-8"
		}
		if got := r.Header().Get("Content-Type"); got != want {
			t.Errorf("%s: Content-Type %q, want %q", e.request, got, want)
		}
		if got := r.Header().Get("Content-Length"); got != fmt.Sprint(len(body)) {
			t.Errorf("%s: Content-Length %q, but the body has %d bytes", e.request, got, len(body))
		}
	}
}

func TestAccessIsCheckedByFirnsName(t *testing.T) {
	cfg := config()
	var names []string
	cfg.Allow = func(r *http.Request, name string) (*access.Caller, error) {
		names = append(names, name)
		switch r.Header.Get("Authorization") {
		case "":
			return nil, refusal(http.StatusUnauthorized, "a token is needed", 0)
		default:
			return nil, refusal(http.StatusForbidden, "not yours", 0)
		}
	}
	h := serve(t, cfg)
	for request, name := range map[string]string{
		"POST " + machine + "machineBit=bad": "ns1",
		"PATCH /segments/ns1/seg?step=1":     "ns1.seg",
		"POST /segments/distributor/ns1/s@1": "cosid--ns1.s_401",
		"GET /ids/orders":                    "orders",
		"GET /ids/as-string":                 "__share__",
	} {
		names = nil
		r, body := ask(h, request)
		if r.Code != http.StatusUnauthorized || body != `{"code":"401","msg":"a token is needed","errors":[]}` || r.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s without a token: %d %s", request, r.Code, body)
		}
		if len(names) != 1 || names[0] != name {
			t.Errorf("%s: access was checked for %q, want %q", request, names, name)
		}
		method, target, _ := strings.Cut(request, " ")
		with := httptest.NewRequest(method, target, nil)
		with.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, with)
		if w.Code != http.StatusForbidden || w.Body.String() != `{"code":"403","msg":"not yours","errors":[]}` {
			t.Errorf("%s with a token: %d %s", request, w.Code, w.Body)
		}
	}
}

func TestAnUnavailableStoreIsA503(t *testing.T) {
	cfg := config()
	faulty := storetest.NewFaulty(cfg.Store)
	cfg.Store = faulty
	var seen []string
	cfg.Observe = func(operation string, status int, _ time.Duration) {
		seen = append(seen, fmt.Sprint(operation, status))
	}
	h := serve(t, cfg)
	faulty.SetDown(true)
	for _, request := range []string{
		"POST " + machine + "machineBit=1&instanceId=a:1&stable=false&safeGuardDuration=PT5M",
		"PATCH " + machine + "instanceId=a:1&stable=false&safeGuardDuration=PT5M",
		"DELETE " + machine + "instanceId=a:1&stable=false",
		"POST /segments/distributor/ns1/seg?offset=0&step=1",
		"PATCH /segments/ns1/seg?step=1",
	} {
		r, body := ask(h, request)
		if r.Code != http.StatusServiceUnavailable || r.Header().Get("Retry-After") != "1" || !strings.HasPrefix(body, `{"code":"500","msg":"`) {
			t.Errorf("%s: %d %s", request, r.Code, body)
		}
	}
	faulty.SetDown(false)
	if r, body := ask(h, "PATCH /segments/ns1/seg?step=1"); r.Code != http.StatusOK || body != "1" {
		t.Errorf("after the outage: %d %s", r.Code, body)
	}
	if got := fmt.Sprint(seen); got != "[machines503 machines503 machines503 segments503 segments503 segments200]" {
		t.Errorf("observed %s", got)
	}
}

func TestIdsFailWithTheStatusOfAllProtocols(t *testing.T) {
	cfg := config()
	var err error
	cfg.Issue = func(context.Context, *access.Caller, string, bool) (string, error) { return "", err }
	h := serve(t, cfg)
	for _, c := range []struct {
		err    error
		status int
		retry  string
	}{
		{store.ErrUnavailable, http.StatusServiceUnavailable, "1"},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, "1"},
		{firn.ErrFence, http.StatusServiceUnavailable, "1"},
		{fmt.Errorf("segment: wait for ids: %w", context.Canceled), 499, ""}, // its client has left
		{errors.New("a fault of ours"), http.StatusInternalServerError, ""},
	} {
		for _, err = range []error{c.err, failure.Of(c.err)} { // the service has made it a failure
			r, body := ask(h, "GET /ids/orders")
			if r.Code != c.status || r.Header().Get("Retry-After") != c.retry || !strings.HasPrefix(body, `{"code":"500","msg":"`) {
				t.Errorf("%v: %d %v %s", err, r.Code, r.Header(), body)
			}
		}
	}
}

func TestACounterIsSharedWithFirnsOwnSegments(t *testing.T) {
	cfg := config()
	h := serve(t, cfg)
	if r, body := ask(h, "POST /segments/distributor/shop/orders?offset=0&step=10"); r.Code != http.StatusOK {
		t.Fatal(body)
	}
	own, err := segment.New(segment.Config{Store: cfg.Store, MinStep: 5, MaxStep: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := own.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	seen := map[int64]bool{}
	take := func(from, to int64) {
		for id := from; id <= to; id++ {
			if seen[id] {
				t.Errorf("id %d twice", id)
			}
			seen[id] = true
		}
	}
	for range 20 {
		r, body := ask(h, "PATCH /segments/shop/orders?step=10")
		var most int64
		if _, err := fmt.Sscan(body, &most); err != nil || r.Code != http.StatusOK {
			t.Fatal(r.Code, body)
		}
		take(most-9, most)
		for range 7 {
			id, err := own.Next(context.Background(), "shop.orders")
			if err != nil {
				t.Fatal(err)
			}
			take(int64(id), int64(id))
		}
	}
}

// The store is set back between two ranges, of clients or of a namespace of the same server.
func TestNoIDIsIssuedTwiceInAServerWhoseStoreWasSetBack(t *testing.T) {
	cfg, mem := config(), memstore.New(nil)
	var log strings.Builder
	cfg.Store, cfg.Memory, cfg.Log = mem, &register.Memory{}, slog.New(slog.NewTextHandler(&log, nil))
	h := serve(t, cfg)
	own, err := segment.New(segment.Config{Store: mem, Memory: cfg.Memory, MinStep: 10, MaxStep: 10, Log: cfg.Log})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[firn.ID]bool{}
	note := func(id firn.ID) {
		t.Helper()
		if seen[id] {
			t.Fatalf("%d again", id)
		}
		seen[id] = true
	}
	issue := func() {
		t.Helper()
		r, body := ask(h, "PATCH /segments/shop/orders?step=100")
		last, err := firn.ParseID(body)
		if r.Code != http.StatusOK || err != nil {
			t.Fatal(r.Code, body)
		}
		for id := last - 99; id <= last; id++ {
			note(id)
		}
		for range 50 {
			id, err := own.Next(t.Context(), "shop.orders")
			if err != nil {
				t.Fatal(err)
			}
			note(id)
		}
	}
	issue()
	older := mem.Snapshot()
	issue()
	mem.Restore(older)
	issue()
	mem.Restore(nil)
	issue()
	if err := own.Close(t.Context()); err != nil { // then nothing is logged any more
		t.Error(err)
	}
	if n := cfg.Memory.SetBacks()["shop.orders"]; n != 2 || strings.Count(log.String(), "was set back") == 0 {
		t.Errorf("%d set backs:\n%s", n, &log)
	}
}

// Neither by a client's request for one, nor by one for ids, and whether or not the server has had ids of it.
func TestACounterThatMustExistIsNotMade(t *testing.T) {
	cfg, mem := config(), memstore.New(nil)
	cfg.Store = mem
	cfg.Segment = func(string) (cosid.Segment, error) {
		return cosid.Segment{MaxStep: cosid.DefaultMaxStep, MustExist: true}, nil
	}
	h := serve(t, cfg)
	refused := func(when, text string, requests ...string) {
		t.Helper()
		before := mem.Snapshot()
		for _, request := range requests {
			if r, body := ask(h, request); r.Code == http.StatusOK || !strings.Contains(body, text) {
				t.Errorf("%s: %s: %d %s", when, request, r.Code, body)
			}
		}
		if now := mem.Snapshot(); len(now) != len(before) {
			t.Errorf("%s: a refusal wrote %v", when, now)
		}
	}
	answered := func(request, want string) {
		t.Helper()
		if r, body := ask(h, request); r.Code != http.StatusOK || body != want {
			t.Errorf("%s: %d %s, want %s", request, r.Code, body, want)
		}
	}
	const make, take = "POST /segments/distributor/shop/orders?offset=0&step=10", "PATCH /segments/shop/orders?step=10"
	raised := func(last firn.ID) {
		t.Helper()
		if _, err := segment.RaiseCounter(t.Context(), mem, "shop.orders", last, segment.Stripe{Stride: 1}); err != nil {
			t.Fatal(err)
		}
	}
	refused("new", `no counter \"shop.orders\"`, make, take)
	raised(0)
	answered(make, "")
	answered(take, "10")
	mem.Restore(nil)
	refused("lost", `has lost the counter \"shop.orders\"`, make, take)
	raised(5)
	refused("raised below what the server has had", "ids up to 10", take)
	raised(10)
	answered(take, "20")
}

func TestACounterWithAStripeIsRefused(t *testing.T) {
	cfg := config()
	if _, err := segment.RaiseCounter(context.Background(), cfg.Store, "shop.odd", 1, segment.Stripe{Offset: 1, Stride: 2}); err != nil {
		t.Fatal(err)
	}
	h := serve(t, cfg)
	for _, request := range []string{"POST /segments/distributor/shop/odd?offset=0&step=10", "PATCH /segments/shop/odd?step=10"} {
		if r, body := ask(h, request); r.Code != http.StatusBadRequest || !strings.Contains(body, "offset 1 of stride 2") {
			t.Errorf("%s: %d %s", request, r.Code, body)
		}
	}
}

func TestTheHandlerWorksBelowAPrefix(t *testing.T) {
	s := httptest.NewServer(http.StripPrefix("/cosid", serve(t, config())))
	defer s.Close()
	r, err := http.Get(s.URL + "/cosid/ids/as-string/a%2Fb")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if body, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK || string(body) != "1" {
		t.Errorf("%d %s %v", r.StatusCode, body, err)
	}
}

func TestAStoreIsRequired(t *testing.T) {
	if _, err := cosid.Handler(cosid.Config{}); err == nil {
		t.Error("no error")
	}
}

// A name that a store has for something else has no ranges, whether or not this server serves it.
func TestTheStoreRefusesRangesOfOtherCounters(t *testing.T) {
	cfg := config()
	for name, value := range map[string]string{"sequence": `{"kind":"sequence","last":"7"}`, "veiled": `{"kind":"segment","form":"veil of 63 bits","next":"7","stride":1}`} {
		key := register.CounterKey("ns." + name)
		if _, err := cfg.Store.CompareAndSwap(t.Context(), key, 0, []byte(value)); err != nil {
			t.Fatal(err)
		}
		w, body := ask(serve(t, cfg), "PATCH /segments/ns/"+name+"?step=10")
		if w.Code != 400 || !strings.Contains(body, "use another name") {
			t.Errorf("%s: %d %s", name, w.Code, body)
		}
		if e, err := cfg.Store.Get(t.Context(), key); err != nil || string(e.Value) != value {
			t.Errorf("%s became %s, %v", name, e.Value, err)
		}
	}
}
