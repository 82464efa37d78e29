package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/memstore"
)

// A leased is an answer of /v1/leases.
type leased struct {
	Lease         string
	Pool          string
	Clock         uint64  `json:",string"`
	First         uint64  `json:",string"`
	End           uint64  `json:",string"`
	Base          firn.ID `json:",string"`
	Unit          int64   `json:"unit_ns,string"`
	SequenceBits  int     `json:"sequence_bits"`
	TimeShift     int     `json:"time_shift"`
	SequenceShift int     `json:"sequence_shift"`
	LookMS        int64   `json:"look_ms"`
	Worker        int64
	Error         struct{ Code, Message string }
}

// post makes a request of a lease.
func post(t *testing.T, h *httptest.Server, token, path, lease string) (int, leased) {
	t.Helper()
	a := does(t, h.Client(), http.MethodPost, h.URL+"/v1/leases/"+path, "Authorization", bearer(token), "Firn-Lease", lease)
	var l leased
	if err := json.Unmarshal([]byte(a.body), &l); err != nil {
		t.Fatal(err)
	}
	if got := a.header.Get("Cache-Control"); !strings.Contains(got, "no-store") {
		t.Errorf("Cache-Control is %q: a second client may get the lease of the first", got)
	}
	return a.status, l
}

func TestALeaseIsGrantedAndRenewed(t *testing.T) {
	for _, layout := range []string{"41/0/10/12", "sonyflake", "discord"} {
		t.Run(layout, func(t *testing.T) {
			_, h := newServer(t, settings.Config{Namespaces: map[string]settings.Namespace{"orders": {Kind: "snowflake", Pooled: settings.Pooled{Layout: layout}}}})
			status, l := post(t, h, "", "default", "")
			if status != http.StatusOK || l.Clock > l.First || l.First >= l.End || l.LookMS != 3000 || l.Pool != "default" {
				t.Fatalf("%d %+v", status, l)
			}
			of, err := firn.ParseLayout(layout)
			if err != nil {
				t.Fatal(err)
			}
			if ticks := int64(l.End-l.Clock) >> l.SequenceBits; ticks > int64(20.5e9)/l.Unit+2 {
				t.Errorf("the first grant lasts %d ticks of %d ns, not 10 s and the tolerance of clocks: a lost answer would take a worker away for that long", ticks, l.Unit)
			}
			p := l.First + 5
			id := firn.ID(p>>l.SequenceBits<<l.TimeShift|(p&(1<<l.SequenceBits-1))<<l.SequenceShift) | l.Base
			parts, err := of.Decompose(id)
			if want := (firn.Parts{Tick: firn.Tick(l.First >> l.SequenceBits), Worker: l.Worker, Sequence: 5}); err != nil || parts != want {
				t.Errorf("the sixth id has %+v, %v; want %+v", parts, err, want)
			}
			last := l
			for range 2 {
				status, r := post(t, h, "", "default/renew"+end(last), l.Lease)
				if status != http.StatusOK || r.End <= l.End || r.Clock < last.Clock || r.Lease != l.Lease || r.Pool != "default" || r.First != 0 {
					t.Errorf("renewed: %d %+v", status, r)
				}
				last = r
			}
			last.End += 1 << l.SequenceBits
			if status, r := post(t, h, "", "default/renew"+end(last), l.Lease); status != http.StatusGone || r.Error.Code != "lease_lost" {
				t.Errorf("the program knows more than the store: %d %+v", status, r)
			}
		})
	}
}

func end(l leased) string { return "?end=" + strconv.FormatUint(l.End, 10) }

// Two servers over one store.
func TestALeaseGoesOnAtAnotherServer(t *testing.T) {
	one := 1
	cfg := settings.Config{
		Namespaces: map[string]settings.Namespace{"orders": {Kind: "snowflake"}},
		Tokens:     []settings.Token{{Name: "shop", SHA256: access.Hash("a"), Leases: []string{"*"}, MaxLeases: &one}, {Name: "two", SHA256: access.Hash("b"), Leases: []string{"*"}, MaxLeases: &one}},
	}
	mem := memstore.New(nil)
	_, first := newServerOver(t, mem, cfg)
	_, second := newServerOver(t, mem, cfg)
	status, l := post(t, first, "a", "default", "")
	if status != http.StatusOK {
		t.Fatalf("%d %+v", status, l)
	}
	status, r := post(t, second, "a", "default/renew"+end(l), l.Lease)
	if status != http.StatusOK || r.End <= l.End {
		t.Errorf("at another server: %d %+v", status, r)
	}
	// It counts there too; and a renewal that is not due counts nowhere.
	if status, l := post(t, second, "a", "default", ""); status != http.StatusTooManyRequests {
		t.Errorf("a second lease: %d %+v", status, l)
	}
	_, other := post(t, first, "b", "default", "")
	if status, l := post(t, second, "a", "default/renew"+end(other), other.Lease); status != http.StatusTooManyRequests || l.Error.Code != "too_many_leases" {
		t.Errorf("taken over beyond the limit: %d %+v", status, l)
	}
	if status, k := post(t, first, "a", "default/renew"+end(r), l.Lease); status != http.StatusOK || k.End != r.End {
		t.Errorf("back at the first: %d %+v", status, k)
	}
	// Beyond the limit it is looked at: a loss is not hidden.
	lost := other
	lost.End += 1 << other.SequenceBits
	if status, l := post(t, second, "a", "default/renew"+end(lost), other.Lease); status != http.StatusGone || l.Error.Code != "lease_lost" {
		t.Errorf("lost beyond the limit: %d %+v", status, l)
	}
	_, other = post(t, first, "b", "default/renew"+end(other), other.Lease)
	if status, k := post(t, second, "a", "default/renew"+end(other), other.Lease); status != http.StatusOK || k.End != other.End {
		t.Errorf("only looked at, beyond the limit: %d %+v", status, k)
	}
}

func TestALeaseNeedsAPermissionAndAPlace(t *testing.T) {
	sum := func(s string) string { return access.Hash(s) }
	two := 2
	_, h := newServer(t, settings.Config{
		Namespaces: map[string]settings.Namespace{"orders": {Kind: "snowflake"}, "lines": {Kind: "snowflake", Pooled: settings.Pooled{Pool: "other"}}, "big": {Kind: "snowflake", Pooled: settings.Pooled{Pool: "pinned", Worker: new(int64)}}},
		Tokens: []settings.Token{
			{Name: "shop", SHA256: sum("a"), Namespaces: []string{"*"}, Leases: []string{"default", "pinned"}, MaxLeases: &two},
			{Name: "ids", SHA256: sum("b"), Namespaces: []string{"*"}, Admin: true},
			{Name: "only", SHA256: sum("c"), Leases: []string{"*"}},
		},
		Anonymous: []string{"orders"},
	})
	forged := strings.Repeat("A", 26)
	for _, c := range []struct {
		token, pool, lease string
		status             int
		code               string
	}{
		{"", "default", "", 401, "unauthorized"},
		{"x", "default", "", 401, "unauthorized"},
		{"b", "default", "", 403, "forbidden"},
		{"a", "other", "", 403, "forbidden"},
		{"c", "none", "", 404, "unknown_pool"},
		{"c", "pinned", "", 400, "not_leasable"},
		{"c", "default?count=2", "", 400, "bad_request"},
		{"c", "default/renew?end=8192", "", 400, "bad_lease"},
		{"c", "default/renew?end=8192", "A.0.1", 400, "bad_lease"},
		{"c", "default/renew?end=8192", forged + ".0.01", 400, "bad_lease"},
		{"c", "default/renew", forged + ".0.1", 400, "bad_request"},
		{"c", "default/renew?end=8193", forged + ".0.1", 400, "bad_request"},
		{"c", "default/renew?end=-8192", forged + ".0.1", 400, "bad_request"},
		{"c", "default/renew?end=18446744073709547520", forged + ".0.1", 400, "bad_request"},
		{"c", "default/renew?end=8192&end=8192", forged + ".0.1", 400, "bad_request"},
		{"c", "default/renew?end=8192&x=1", forged + ".0.1", 400, "bad_request"},
		{"c", "default/renew?end=8192", forged + ".0.1", 410, "lease_lost"},
		{"c", "default/renew?end=9223372036854771712", forged + ".0.1", 410, "lease_lost"},
	} {
		if status, l := post(t, h, c.token, c.pool, c.lease); status != c.status || l.Error.Code != c.code {
			t.Errorf("token %q, %s: %d %s %s, want %d %s", c.token, c.pool, status, l.Error.Code, l.Error.Message, c.status, c.code)
		}
	}
	var last leased
	for i := range 3 {
		status, l := post(t, h, "a", "default", "")
		if want := map[bool]int{true: 200, false: 429}[i < 2]; status != want {
			t.Errorf("lease %d of 2: %d %+v", i+1, status, l)
		}
		if status == 200 {
			last = l
		}
	}
	if _, l := post(t, h, "c", "orders", ""); !strings.HasSuffix(l.Error.Message, `a namespace without that setting has pool "default"`) {
		t.Error(l.Error.Message)
	}
	if status, _ := post(t, h, "b", "default/renew"+end(last), last.Lease); status != 403 {
		t.Errorf("a token without leases renews: %d", status)
	}
	if status, l := post(t, h, "c", "other/renew"+end(last), last.Lease); status != 410 {
		t.Errorf("in another pool: %d %+v", status, l)
	}
	if status, l := post(t, h, "a", "default/renew"+end(last), last.Lease); status != 200 {
		t.Errorf("renewed at the limit: %d %+v", status, l)
	}
	if status, _, header := ask(t, h, http.MethodGet, "/v1/leases/default", ""); status != 405 || header.Get("Allow") != "POST" {
		t.Errorf("GET: %d, Allow %q", status, header.Get("Allow"))
	}
}
