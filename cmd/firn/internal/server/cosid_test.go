package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// CosId clients take ids too, as ranges.
func TestRangesOfCosIDCountAgainstRates(t *testing.T) {
	v := serve(t, "cosid: true\nlimits: {rate: {shop.slow: 10/h}}\nnamespaces: {shop.slow: {kind: segment}, orders: {}}\n"+
		"tokens:\n  - {name: a, sha256: "+access.Hash("a")+", namespaces: ['*'], rate: 100/h}\n"+
		"  - {name: b, sha256: "+access.Hash("b")+", namespaces: ['*'], admin: true}\n")
	for _, step := range []struct {
		path, token string
		want        int
	}{
		{"/segments/shop/order?step=100", "a", 200},
		{"/segments/shop/order?step=1", "a", 429},
		{"/segments/shop/order?step=100", "b", 200}, // without a rate
		{"/segments/shop/order?step=1", "b", 200},
		{"/segments/shop/slow?step=11", "b", 413},
		{"/segments/shop/slow?step=10", "b", 200},
		{"/segments/shop/slow?step=1", "b", 429},
	} {
		a := does(t, fresh(t), http.MethodPatch, "http://"+v.addr+step.path, "Authorization", bearer(step.token))
		if a.status != step.want || (a.status == 429) != (a.header.Get("Retry-After") != "") {
			t.Errorf("%s of %s: %d %v", step.path, step.token, a.status, a.header)
		}
	}
	_, metrics := get(t, fresh(t), "http://"+v.addr+"/metrics", "b")
	for _, want := range []string{`firn_ids_total{namespace="shop.slow"} 10`, `firn_requests_total{code="rate_limited",namespace="",protocol="cosid"} 2`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestCosIDIsServedIfItIsConfigured(t *testing.T) {
	const segments = "namespaces: {__share__: {kind: segment}, orders: {}, visits: {kind: uuid}}\n"
	v := serve(t, segments+"cosid: true\n")
	do := func(method, path string) (int, string) {
		t.Helper()
		a := does(t, fresh(t), method, "http://"+v.addr+path)
		return a.status, a.body
	}
	for _, step := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"POST", "/machines/shop?machineBit=10&instanceId=a:1&stable=false&safeGuardDuration=PT5M", 200, `{"machineId":0,"lastTimeStamp":`},
		{"POST", "/segments/distributor/shop/order?offset=0&step=100", 201, ""},
		{"PATCH", "/segments/shop/order?step=100", 200, "100"},
		{"GET", "/ids", 200, "1"},
		{"GET", "/ids/as-string/orders", 200, "2"},
		{"GET", "/ids/visits", 400, "of kind uuid, are not 64-bit numbers"},
		{"GET", "/ids/nobody", 400, `"code"`},
	} {
		status, body := do(step.method, step.path)
		if status/100 != step.status/100 || !strings.HasPrefix(body, step.want) && !strings.Contains(body, step.want) {
			t.Errorf("%s %s: %d %s", step.method, step.path, status, body)
		}
	}
	_, metrics := do("GET", "/metrics")
	for _, want := range []string{
		`firn_ids_total{namespace="orders"} 1`, `firn_requests_total{code="ok",namespace="",protocol="cosid"} 3`,
		`firn_requests_total{code="ok",namespace="orders",protocol="cosid"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	// A token grants the names of its patterns.
	write(t, v.file, segments+"cosid: true\nanonymous: [\"shop.*\"]\n")
	v.hangup()
	if status, body := do("PATCH", "/segments/shop/order?step=100"); status != 200 || body != "200" {
		t.Errorf("a name that is open: %d %s", status, body)
	}
	for _, path := range []string{"/segments/other/order?step=100", "/machines/shops?instanceId=a:1&stable=false&safeGuardDuration=PT5M"} {
		if status, body := do("PATCH", path); status != 401 || !strings.Contains(body, "token") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	write(t, v.file, segments+"tokens: []\n")
	v.hangup()
	if status, body := do("GET", "/ids"); status != 404 || !strings.Contains(body, "there is nothing at /ids") {
		t.Errorf("where it is not configured: %d %s", status, body)
	}
}

// The declaration of a namespace holds for CosId too: only plain segments hand out ranges.
func TestOnlyPlainSegmentsHandOutRangesToCosID(t *testing.T) {
	t.Setenv("COSID_TEST_KEYS", "3:000102030405060708090a0b0c0d0e0f")
	v := serve(t, "cosid: true\nnamespaces:\n"+
		"  shop.txn: {kind: sequence}\n"+
		"  shop.codes: {kind: segment, veil: {key_env: COSID_TEST_KEYS}}\n"+
		"  shop.short: {kind: segment, prefix: ord}\n"+
		"  shop.flake: {}\n"+
		"  shop.bill: {kind: number, template: 'B{yyyy}-{n:6}'}\n"+
		"  shop.order: {kind: segment, from: 5000, min_step: 2000, max_step: 3000, target: 1m}\n")
	do := func(method, path string) (int, string) {
		t.Helper()
		a := does(t, fresh(t), method, "http://"+v.addr+path)
		return a.status, a.body
	}
	for name, is := range map[string]string{
		"txn": "of kind sequence", "codes": "of kind segment and veiled", "short": "of kind segment and written with a prefix",
		"flake": "of kind snowflake", "bill": "of kind number",
	} {
		for _, request := range []string{"POST /segments/distributor/shop/" + name + "?offset=0&step=3", "PATCH /segments/shop/" + name + "?step=3"} {
			method, path, _ := strings.Cut(request, " ")
			status, body := do(method, path)
			if status != 400 || !strings.HasPrefix(body, `{"code":"500","msg":"`) || !strings.Contains(body, "shop."+name) ||
				!strings.Contains(body, is) || !strings.Contains(body, "/ids/shop."+name) || !strings.Contains(body, "kind: segment") {
				t.Errorf("%s: %d %s", request, status, body)
			}
		}
		if status, body := do("GET", "/v1/ids/shop."+name); status != 200 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	for _, step := range []struct{ method, path, want string }{
		{"PATCH", "/segments/shop/order?step=10", "5009"},                 // as many as the client counts on, whatever min_step is
		{"POST", "/segments/distributor/shop/order?offset=7&step=10", ""}, // it is there, and stays where it is
		{"PATCH", "/segments/shop/order?step=10", "5019"},
		{"POST", "/segments/distributor/shop/free?offset=7&step=10", ""},
		{"PATCH", "/segments/shop/free?step=10", "17"}, // of no namespace that is declared
	} {
		if status, body := do(step.method, step.path); status/100 != 2 || body != step.want {
			t.Errorf("%s %s: %d %s, want %s", step.method, step.path, status, body, step.want)
		}
	}
	if status, body := do("PATCH", "/segments/shop/order?step=3001"); status != 400 || !strings.Contains(body, "1 to 3000 are allowed") {
		t.Errorf("above max_step: %d %s", status, body)
	}
	if status, body := do("GET", "/v1/ids/shop.order"); status != 200 || !strings.Contains(body, `"5020"`) {
		t.Errorf("beside it: %d %s", status, body)
	}
}

// A request for a number that a namespace does not have must not use up an id: business numbers would get gaps.
func TestARefusedNumberOfCosIDUsesNoIDUp(t *testing.T) {
	v := serve(t, "cosid: true\nnamespaces: {bill: {kind: number, template: 'B{n:6}'}}\n")
	if status, body := get(t, fresh(t), "http://"+v.addr+"/ids/bill", ""); status != http.StatusBadRequest || !strings.Contains(body, "of kind number, are not 64-bit numbers: use /ids/as-string/bill") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get(t, fresh(t), "http://"+v.addr+"/ids/as-string/bill", ""); status != http.StatusOK || body != "B000001" {
		t.Errorf("%d %s", status, body)
	}
}

// Two requests would use up a counter, such as the one of the next month.
func TestOnlyKnownClientsOfCosIDSkipIDs(t *testing.T) {
	v := serve(t, "cosid: true\nnamespaces: {shop.orders: {kind: segment}}\nanonymous: ['*']\n"+"tokens:\n  - {name: a, sha256: "+access.Hash("a")+", namespaces: ['*']}\n")
	for _, step := range []struct {
		offset, token string
		want          int
	}{
		{"9223372036854775806", "", 403}, {"1000002", "", 403}, {"1000000", "", 201}, {"9223372036854775806", "a", 201},
	} {
		for _, name := range []string{"orders", "other" + step.offset + step.token} {
			a := does(t, fresh(t), http.MethodPost, "http://"+v.addr+"/segments/distributor/shop/"+name+"?step=1&offset="+step.offset, "Authorization", bearer(step.token))
			if a.status/100 != step.want/100 {
				t.Errorf("%s begins at %s, token %q: %d", name, step.offset, step.token, a.status)
			}
		}
	}
}
