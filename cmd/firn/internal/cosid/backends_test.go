package cosid_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/cosid"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store/storetest/servers"
)

// front returns a handler with its own connection to the store.
func front(t testing.TB, url string) http.Handler {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := storeurl.Create(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return serve(t, cosid.Config{Store: s})
}

// TestServersShareARealStore sends concurrent requests to three servers.
func TestServersShareARealStore(t *testing.T) {
	for _, store := range []struct {
		name string
		url  func(t *testing.T) string
	}{
		{"SQLite", func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "firn.db") }},
		{"Redis", func(t *testing.T) string { return "redis://" + servers.Redis(t).Addr() }},
		{"PostgreSQL", func(t *testing.T) string { return "postgres://postgres:@" + servers.Postgres(t).Addr() + "/postgres" }},
		{"etcd", func(t *testing.T) string { return "etcd://" + servers.Etcd(t).Addr() }},
		{"ZooKeeper", func(t *testing.T) string { return "zookeeper://" + servers.ZooKeeper(t).Addr() + "/test" }},
	} {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			url := store.url(t)
			fronts := []http.Handler{front(t, url), front(t, url), front(t, url)}
			numbers(t, fronts)
			counters(t, fronts)
			later := front(t, url)
			if r, body := ask(later, distribute(3)); r.Code != http.StatusOK {
				t.Errorf("a server started later: %d %s", r.Code, body)
			}
			if r, body := ask(later, "PATCH /machines/shop?instanceId=i5&stable=false&safeGuardDuration=PT5M"); r.Code != http.StatusOK {
				t.Errorf("a guard at a server started later: %d %s", r.Code, body)
			}
		})
	}
}

const instances = 32

func distribute(i int) string {
	return fmt.Sprintf("POST /machines/shop?machineBit=5&instanceId=i%d&stable=false&safeGuardDuration=PT5M", i)
}

// numbers lets 32 instances request the 32 existing numbers, each from two servers at once.
func numbers(t *testing.T, fronts []http.Handler) {
	t.Helper()
	var mu sync.Mutex
	of := map[int]map[int]bool{} // by instance
	var wait sync.WaitGroup
	for i := range instances {
		for k := range 2 {
			wait.Go(func() {
				r, body := ask(fronts[(i+k)%len(fronts)], distribute(i))
				var got struct{ MachineID int }
				if err := json.Unmarshal([]byte(body), &got); err != nil || r.Code != http.StatusOK {
					t.Errorf("instance %d: %d %s", i, r.Code, body)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if of[i] == nil {
					of[i] = map[int]bool{}
				}
				of[i][got.MachineID] = true
			})
		}
	}
	wait.Wait()
	seen := map[int]int{}
	for i, has := range of {
		if len(has) != 1 {
			t.Errorf("instance %d has numbers %v", i, has)
		}
		for id := range has {
			if other, ok := seen[id]; ok {
				t.Errorf("instances %d and %d have number %d", i, other, id)
			}
			seen[id] = i
		}
	}
	if r, body := ask(fronts[0], distribute(instances)); short(r.Code, body) != "400 M-01" {
		t.Errorf("one instance too many: %d %s", r.Code, body)
	}
}

// insist asks again while the answer is to do so: 120 writes of one counter may not all end within the server's time.
func insist(f http.Handler, request string) (r *httptest.ResponseRecorder, body string) {
	for range 5 {
		if r, body = ask(f, request); r.Code != http.StatusServiceUnavailable {
			break
		}
	}
	return r, body
}

// counters takes ranges of one segment from all servers at once.
func counters(t *testing.T, fronts []http.Handler) {
	t.Helper()
	const ranges, step = 60, 10
	var mu sync.Mutex
	seen := map[int]bool{}
	var wait sync.WaitGroup
	for i := range ranges {
		wait.Go(func() {
			f := fronts[i%len(fronts)]
			if r, body := insist(f, "POST /segments/distributor/shop/orders?offset=0&step=10"); r.Code != http.StatusOK {
				t.Errorf("%d %s", r.Code, body)
			}
			r, body := insist(f, "PATCH /segments/shop/orders?step="+strconv.Itoa(step))
			most, err := strconv.Atoi(body)
			if err != nil || r.Code != http.StatusOK {
				t.Errorf("%d %s", r.Code, body)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for id := most - step + 1; id <= most; id++ {
				if seen[id] || id < 1 {
					t.Errorf("id %d is a duplicate or below 1", id)
				}
				seen[id] = true
			}
		})
	}
	wait.Wait()
	if len(seen) != ranges*step {
		t.Errorf("%d ids, want %d", len(seen), ranges*step)
	}
}

// TestRedisOutage sends requests before, while and after Redis is down.
func TestRedisOutage(t *testing.T) {
	redis := servers.Redis(t)
	s := httptest.NewServer(front(t, "redis://"+redis.Addr()))
	defer s.Close()
	post := func(instance int) string {
		t.Helper()
		method, path, _ := strings.Cut(distribute(instance), " ")
		r, err := http.NewRequest(method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var got struct {
			MachineID int
			Code      string
		}
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(answer.StatusCode, got.Code, got.MachineID)
	}
	if got := post(1); got != "2000" {
		t.Errorf("before the outage: %s", got)
	}
	redis.Kill()
	if got := post(1); got != "5035000" {
		t.Errorf("during the outage: %s", got)
	}
	redis.Restart()
	if got := post(1); got != "2000" {
		t.Errorf("after the outage: %s", got)
	}
	if got := post(2); got != "2001" {
		t.Errorf("after the outage, another instance: %s", got)
	}
}
