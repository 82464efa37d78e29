package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// An examined store counts its examinations, which wait for open.
type examined struct {
	store.Store
	times atomic.Int32
	open  chan struct{}
}

func (e *examined) Traits() store.Traits { return store.Traits{Embedded: true, Examine: e.examine} }

func (e *examined) examine(context.Context) ([]store.Finding, error) {
	e.times.Add(1)
	<-e.open
	return []store.Finding{{Subject: "persistence", Verdict: store.Doubtful, Says: "it forgets", Advice: "remind it"}, {Subject: "replicas", Says: "2"}}, nil
}

func (e *examined) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	entry, err := e.Store.CompareAndSwap(ctx, key, old, value)
	entry.Life = "first"
	return entry, err
}

func TestAllWhoAskForTheStoreGetOneExamination(t *testing.T) {
	st := &examined{Store: memstore.New(nil), open: make(chan struct{})}
	_, h := newServerOver(t, st, settings.Config{})
	var all sync.WaitGroup
	bodies := make([]string, 8)
	for i := range bodies {
		all.Go(func() { _, bodies[i], _ = ask(t, h, "GET", "/v1/store", "") })
	}
	close(st.open)
	all.Wait()
	if n := st.times.Load(); n != 1 {
		t.Errorf("%d examinations", n)
	}
	var v issuing.StoreView
	if err := json.Unmarshal([]byte(bodies[0]), &v); err != nil {
		t.Fatalf("%v in %s", err, bodies[0])
	}
	if v.Durability != "doubtful" || v.Life == nil || v.Life.Name != "first" || v.Life.Earlier != 0 || v.Life.Since.IsZero() {
		t.Errorf("%s", bodies[0])
	}
	subjects := ""
	for _, f := range v.Findings {
		subjects += f.Subject + " " + f.Verdict + ", "
	}
	if subjects != "latency good, clock good, persistence doubtful, replicas good, pool good, " ||
		!slices.Contains(v.Findings, issuing.Finding{Subject: "persistence", Verdict: "doubtful", Says: "it forgets", Advice: "remind it"}) {
		t.Errorf("findings %s in %s", subjects, bodies[0])
	}
	for _, b := range bodies[1:] {
		if b != bodies[0] {
			t.Errorf("%s differs from %s", b, bodies[0])
		}
	}
}

func TestAStoreThatCannotBeExaminedHasUnknownDurability(t *testing.T) {
	_, h := newServer(t, settings.Config{})
	if _, body, _ := ask(t, h, "GET", "/v1/store", ""); !strings.Contains(body, `"durability":"unknown"`) {
		t.Errorf("%s", body)
	}
}

func TestAnAdministratorReleasesAWorkerAndTheAuditLogHasIt(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\n"+ofShop+access.Hash("boss")+forBoss)
	release := func(worker int64, header ...string) (status int, slot issuing.Slot) {
		t.Helper()
		a := does(t, fresh(t), http.MethodPost, fmt.Sprintf("http://%s/v1/pools/default/workers/%d/release", v.addr, worker), header...)
		if a.status == http.StatusOK {
			if err := json.Unmarshal([]byte(a.body), &slot); err != nil {
				t.Fatal(err)
			}
		}
		return a.status, slot
	}
	pool := func() (p issuing.Pool) {
		t.Helper()
		_, body := get(t, fresh(t), "http://"+v.addr+"/v1/pools/default/workers", "boss")
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	was := pool().Slots[0]
	for what, header := range map[string][]string{
		"no token": nil, "a token without admin": {"Authorization", "Bearer shop"},
		"a page of another origin": {"Sec-Fetch-Site", "cross-site"},
	} {
		if status, _ := release(was.Worker, header...); status != 401 && status != 403 {
			t.Errorf("%s: %d", what, status)
		}
	}
	if now := pool().Slots[0]; now.Owner != was.Owner || strings.Contains(v.log.String(), "release worker") {
		t.Fatalf("a caller without the right released it: %+v, was %+v", now, was)
	}
	status, slot := release(was.Worker, "Authorization", "Bearer boss")
	if status != 200 || slot.State != issuing.SlotReleased || slot.Fence != was.Fence || slot.Host != was.Host {
		t.Errorf("%d %+v, was %+v", status, slot, was)
	}
	v.log.has(t, `what="release worker"`, "outcome=ok", "who=boss", "pool=default", fmt.Sprintf("worker=%d", was.Worker))
	unused := (was.Worker + 1) % 1024
	if status, _ := release(unused, "Authorization", "Bearer boss"); status != 404 {
		t.Errorf("a worker never used: %d", status)
	}
	v.log.has(t, `what="release worker"`, "outcome=failed", fmt.Sprintf("worker=%d", unused))
}
